"""Replay the flows of a folder with SimGrid. Needs Python and SimGrid alone, so that any interpreter with it will do.

    python3 scenarios/simgrid/replay.py FOLDER OUT.csv [--model CM02] [--delays after | links] [--set NAME:VALUE ...]

reads ``flows.csv`` and a platform, and writes one row for each flow: its number and the instant at which it ended.
With ``--delays after`` the links of the platform have no latency, and the delay of a flow's route passes after its last
bit. With ``--delays links`` SimGrid handles latencies in its own way.
"""

import argparse
import csv
import math
from importlib import import_module
from pathlib import Path
from typing import Any, Final

PLATFORMS: Final = {"after": "platform_without_delays.xml", "links": "platform.xml"}
BITS_PER_BYTE: Final = 8
# SimGrid takes whole bytes. Sizes and bandwidths are both this many times larger, which leaves all times as they are.
FINER: Final = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Replay the flows of a folder with SimGrid.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="CM02", help="network model of SimGrid: CM02, LV08, SMPI ...")
    parser.add_argument("--delays", choices=sorted(PLATFORMS), default="after")
    parser.add_argument("--finer", action="store_true", help=f"parts of a byte: sizes and bandwidths times {FINER}")
    parser.add_argument("--set", dest="settings", nargs="*", default=[], metavar="NAME:VALUE", help="of SimGrid")
    arguments = parser.parse_args()

    # SimGrid has no types, and a folder beside this one has its name.
    simgrid: Any = import_module("simgrid")
    with (arguments.folder / "flows.csv").open(encoding="utf-8", newline="") as file:
        flows = list(csv.DictReader(file))
    settings = [f"network/model:{arguments.model}", *arguments.settings]
    if arguments.finer:
        settings.append(f"network/bandwidth-factor:{FINER}")
    engine = simgrid.Engine(["replay", "--log=root.thres:error", *(f"--cfg={setting}" for setting in settings)])
    engine.load_platform(str(arguments.folder / PLATFORMS[arguments.delays]))
    host, comms = simgrid.Host.by_name, list[Any]()

    def send_all() -> None:
        for row in flows:
            simgrid.this_actor.sleep_until(float(row["start_s"]))
            size = math.ceil(float(row["bits"]) * (FINER if arguments.finer else 1) / BITS_PER_BYTE)
            ends = host(row["source"]), host(row["target"])
            comms.append(simgrid.Comm.sendto_async(*ends, size))
        for comm in comms:
            comm.wait()

    simgrid.Actor.create("flows", host(flows[0]["source"]), send_all)
    engine.run()
    after = arguments.delays == "after"
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["flow", "end_s"])
        for row, comm in zip(flows, comms, strict=True):
            writer.writerow([row["flow"], repr(comm.finish_time + (float(row["delay_s"]) if after else 0.0))])


if __name__ == "__main__":
    main()
