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
from replay import MODELS

sys.path.insert(0, str(Path(__file__).parents[1]))

from study_scripts import command, table

from fedsim import Scenario, Study, read_run, simulate
from fedsim.bridges.replay import write_replay

SYSTEM_PYTHON: Final = "/usr/bin/python3"


def main(rounds: int = 20, run: str = "", python: str = "", out: Path = Path("runs/simgrid")) -> None:
    if run:
        worlds = {Path(run).name: (Scenario.load(Path(run) / "scenario.toml"), read_run(run))}
    else:
        worlds = {name: (one, simulate(one)) for name, one in graphs(rounds).items()}
    rows = []
    for name, (scenario, history) in worlds.items():
        folder = out / name.replace(" ", "_").replace(",", "")
        flows = write_replay(scenario, history, folder)
        # Transfers that were cut take bandwidth until then, and have no end to compare.
        took_s, whole = flows.end_s - flows.start_s, flows.whole
        for model in MODELS:
            apart_s = np.abs(replayed(python or interpreter(), folder, model) - flows.end_s)[whole]
            relative, counts = apart_s / took_s[whole], [flows.bits.size, np.count_nonzero(whole)]
            largest, mean, latest_s = (f"{of:.1e}" for of in (relative.max(), relative.mean(), apart_s.max()))
            rows.append([name, *counts, model, largest, mean, f"{latest_s} s"])
    table(["graph", "flows", "whole", "model", "largest", "mean", "latest"], rows)


def graphs(rounds: int) -> dict[str, Scenario]:
    """Return scenarios on four graphs, about timing only; the last has ways of 5 to 157 ms over three regions."""
    study = Study.load(Path(__file__).with_name("graphs.toml"))
    found = {one.variant: one.scenario.replace({"rounds.count": rounds}) for one in study.points}
    nodes: list[dict[str, Any]] = [{"id": "cloud", "kind": "cloud"}]
    edges: list[dict[str, Any]] = []
    for region, delay_s in enumerate((0.004, 0.04, 0.15)):
        nodes.append({"id": f"region-{region}", "kind": "router"})
        edges.append({"source": f"region-{region}", "target": "cloud", "capacity_bps": 4e7, "delay_s": delay_s})
    for client in range(study.base.crowd.clients):
        nodes.append({"id": f"home-{client}", "kind": "client", "client": client})
        edge = {"source": f"home-{client}", "target": f"region-{client % 3}", "delay_s": 0.001 + 0.001 * (client % 7)}
        edges.append({**edge, "capacity_bps": 2e6 * (1 + client % 5)})
    wide = {"kind": "graph", "topology": {"kind": "given", "nodes": nodes, "edges": edges}}
    return {**found, "wide area": found["cells"].replace({"network": wide})}


def interpreter() -> str:
    """Return an interpreter that has SimGrid: this one if it has, else the system's."""
    # A folder of the same name beside a script is found too, without an origin.
    found = find_spec("simgrid")
    return sys.executable if found is not None and found.origin is not None else SYSTEM_PYTHON


def replayed(python: str, folder: Path, model: str) -> NDArray[np.float64]:
    """Return the instant at which SimGrid ends each flow, shape (n,)."""
    arguments = [python, str(Path(__file__).with_name("replay.py")), str(folder), model]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(
            f"{python} could not replay {folder}:\n{done.stderr.strip()}\n"
            "allowed: --python with an interpreter that has SimGrid (apt install python3-simgrid, pip install simgrid)"
        )
    return np.loadtxt(folder / f"ends_{model}.csv", delimiter=",", skiprows=1, usecols=1, ndmin=1)


if __name__ == "__main__":
    command(main, __doc__)
