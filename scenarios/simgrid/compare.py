"""Does SimGrid end every transfer of a run at the same instant? The flows of runs on four graphs, one by one.

    python scenarios/simgrid/compare.py [--rounds N] [--run FOLDER] [--python INTERPRETER] [--out FOLDER]

Three models of SimGrid replay the flows:

- ``max-min``: CM02 on links without latency, the delay of a route after the last bit. These are fedsim's own rules.
- ``CM02``: latencies in SimGrid's way. A flow waits for its latency before it takes bandwidth, and flows share a link
  in inverse proportion to their latencies.
- ``LV08``: SimGrid's default, fitted to TCP. 97 % of a bandwidth are for data, latencies count 13 times,
  acknowledgements take 5 % of the way back, and a window bounds the rate.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from study_scripts import sizes, table

from fedsim import History, Scenario, Study, read_run, simulate
from fedsim.bridges.replay import write_replay

SYSTEM_PYTHON: Final = "/usr/bin/python3"
PLAIN: Final = ["network/TCP-gamma:0", "network/crosstraffic:0"]
MODELS: Final = {
    "max-min": ["--model", "CM02", "--delays", "after", "--finer", "--set", *PLAIN],
    "CM02": ["--model", "CM02", "--delays", "links", "--finer", "--set", *PLAIN],
    "LV08": ["--model", "LV08", "--delays", "links"],
}
GRAPHS: Final = Study.load(Path(__file__).with_name("graphs.toml"))


def main() -> None:
    given = sizes("simgrid", __doc__, rounds=20, run="", python="")
    python, rows = given.python or interpreter(), []
    for name, (scenario, history) in worlds(given.run, given.rounds).items():
        folder = given.out / name.replace(" ", "_").replace(",", "")
        flows = write_replay(scenario, history, folder)
        # Transfers that were cut take bandwidth until then, and have no end to compare.
        took_s, whole = flows.end_s - flows.start_s, flows.whole
        for model, options in MODELS.items():
            apart_s = np.abs(replayed(python, folder, model, options) - flows.end_s)[whole]
            relative, counts = apart_s / took_s[whole], [flows.bits.size, np.count_nonzero(whole)]
            largest, mean, latest_s = (f"{of:.1e}" for of in (relative.max(), relative.mean(), apart_s.max()))
            rows.append([name, *counts, model, largest, mean, f"{latest_s} s"])
    table(["graph", "flows", "whole", "model", "largest", "mean", "latest"], rows)


def worlds(run: str, rounds: int) -> dict[str, tuple[Scenario, History]]:
    """Return scenarios and what happened, by name: those of a run's folder, or of four graphs, about timing only."""
    if run:
        return {Path(run).name: (Scenario.load(Path(run) / "scenario.toml"), read_run(run))}
    found = {one.variant: one.scenario.replace({"rounds.count": rounds}) for one in GRAPHS.points}
    found["wide area"] = found["cells"].replace({"network": wide_area()})
    return {name: (scenario, simulate(scenario)) for name, scenario in found.items()}


def wide_area() -> dict[str, Any]:
    """Return clients whose ways to the cloud have delays from 5 to 157 ms, over three regions."""
    regions = [(f"region-{i}", delay_s) for i, delay_s in enumerate((0.004, 0.04, 0.15))]
    nodes: list[dict[str, Any]] = [
        {"id": "cloud", "kind": "cloud"},
        *({"id": at, "kind": "router"} for at, _ in regions),
    ]
    edges = [{"source": at, "target": "cloud", "capacity_bps": 4e7, "delay_s": delay_s} for at, delay_s in regions]
    for client in range(GRAPHS.base.crowd.clients):
        nodes.append({"id": f"home-{client}", "kind": "client", "client": client})
        edge = {"source": f"home-{client}", "target": f"region-{client % 3}", "delay_s": 0.001 + 0.001 * (client % 7)}
        edges.append({**edge, "capacity_bps": 2e6 * (1 + client % 5)})
    return {"kind": "graph", "topology": {"kind": "given", "nodes": nodes, "edges": edges}}


def interpreter() -> str:
    """Return an interpreter that has SimGrid: this one if it has, else the system's."""
    # A folder of the same name beside a script is found too, without an origin.
    found = find_spec("simgrid")
    return sys.executable if found is not None and found.origin is not None else SYSTEM_PYTHON


def replayed(python: str, folder: Path, model: str, options: list[str]) -> NDArray[np.float64]:
    """Return the instant at which SimGrid ends each flow, shape (n,)."""
    out = folder / f"ends_{model}.csv"
    command = [python, str(Path(__file__).with_name("replay.py")), str(folder), str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(
            f"{python} could not replay {folder}:\n{done.stderr.strip()}\n"
            "allowed: --python with an interpreter that has SimGrid (apt install python3-simgrid, pip install simgrid)"
        )
    return np.loadtxt(out, delimiter=",", skiprows=1, usecols=1, ndmin=1)


if __name__ == "__main__":
    main()
