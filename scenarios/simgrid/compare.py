"""Does SimGrid end every transfer of a run at the same instant? The flows of runs on four graphs, one by one.

    python scenarios/simgrid/compare.py [--rounds N] [--run FOLDER] [--python INTERPRETER] [--out FOLDER]

takes 5 s. Three models of SimGrid replay the flows: its CM02 on links without latency, the delay of a route after the
last bit, which are fedsim's own rules (``max-min``); ``CM02`` with latencies; and ``LV08``, its default, fitted to TCP.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from graphs import recorded, simulated
from numpy.typing import NDArray
from replay import MODELS

sys.path.insert(0, str(Path(__file__).parents[1]))

from study_scripts import command, table

from fedsim.bridges.replay import write_replay


def main(rounds: int = 20, run: str = "", python: str = "", out: Path = Path("runs/simgrid")) -> None:
    rows = []
    for name, (scenario, history) in (recorded(Path(run)) if run else simulated(rounds)).items():
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


def interpreter() -> str:
    """Return this interpreter if it has SimGrid, else the system's; the folder of this script has no origin."""
    found = find_spec("simgrid")
    return sys.executable if found is not None and found.origin is not None else "/usr/bin/python3"


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
