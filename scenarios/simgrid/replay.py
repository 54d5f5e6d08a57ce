"""Replay the flows of a folder with SimGrid. Needs Python and SimGrid alone, so that any interpreter with it will do.

    python3 scenarios/simgrid/replay.py FOLDER MODEL

reads ``flows.csv`` and a platform, and writes ``ends_MODEL.csv`` with one row for each flow: its number and the instant
at which it ended. For ``max-min`` the links of the platform have no latency, and the delay of a flow's route passes
after its last bit; the other models handle latencies in SimGrid's own way.
"""

import argparse
import csv
import math
from importlib import import_module
from pathlib import Path
from typing import Any, Final

BITS_PER_BYTE: Final = 8
# SimGrid takes whole bytes. Sizes and bandwidths are both this many times larger, which leaves all times as they are.
FINER: Final = 1024
PLAIN: Final = ("network/TCP-gamma:0", "network/crosstraffic:0", f"network/bandwidth-factor:{FINER}")
MODELS: Final = {
    "max-min": ("network/model:CM02", *PLAIN),
    "CM02": ("network/model:CM02", *PLAIN),
    "LV08": ("network/model:LV08",),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Replay the flows of a folder with SimGrid.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("model", choices=MODELS)
    folder, model = vars(parser.parse_args()).values()

    # SimGrid has no types, and a folder beside this one has its name.
    simgrid: Any = import_module("simgrid")
    flows = list(csv.DictReader((folder / "flows.csv").read_text(encoding="utf-8").splitlines()))
    after, finer = model == "max-min", 1 if model == "LV08" else FINER
    engine = simgrid.Engine(["replay", "--log=root.thres:error", *(f"--cfg={setting}" for setting in MODELS[model])])
    engine.load_platform(str(folder / ("platform_without_delays.xml" if after else "platform.xml")))
    host, comms = simgrid.Host.by_name, list[Any]()

    def send_all() -> None:
        for row in flows:
            simgrid.this_actor.sleep_until(float(row["start_s"]))
            size = math.ceil(float(row["bits"]) * finer / BITS_PER_BYTE)
            comms.append(simgrid.Comm.sendto_async(host(row["source"]), host(row["target"]), size))
        for comm in comms:
            comm.wait()

    simgrid.Actor.create("flows", host(flows[0]["source"]), send_all)
    engine.run()
    lines = ["flow,end_s"]
    for row, comm in zip(flows, comms, strict=True):
        lines.append(f"{row['flow']},{comm.finish_time + (float(row['delay_s']) if after else 0.0)!r}")
    (folder / f"ends_{model}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
