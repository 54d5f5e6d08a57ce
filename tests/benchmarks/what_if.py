"""What a run costs whose results are all in the store, against the run that put them there.

    python tests/benchmarks/what_if.py [SCENARIO] [--set a.b=c ...] [--repeats 3]

Each run is a process of its own. The first of each turn starts with an empty store, the second finds all that the first
has trained, with the values of ``--set``, which must leave the cohorts as they are. Printed are medians of the wall
times: of the whole process, and of building and running the simulation alone. Not a test: it asserts nothing.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"


def run(file: str, changes: Sequence[str]) -> None:
    """Run a scenario and print its seconds without imports at the start, what was found, and if torch was imported."""
    from fedsim.scenario import Scenario, parse_assignment
    from fedsim.simulation import Simulation

    scenario = Scenario.load(file, dict(parse_assignment(change) for change in changes))
    began = time.perf_counter()
    simulation = Simulation(scenario)
    simulation.run()
    print(time.perf_counter() - began, simulation.context.learner.work.trained, "torch" in sys.modules, sep="\t")


def timed(file: str, changes: Sequence[str], cache: str) -> tuple[float, float, str, str]:
    """Return the seconds of a process and of its simulation, the trainings that ran, and whether torch was imported."""
    command = [sys.executable, __file__, file, "--alone", *(f"--set={change}" for change in changes)]
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603
        command, env={**os.environ, "FEDSIM_CACHE": cache}, capture_output=True, text=True, check=True
    )
    whole_s = time.perf_counter() - began
    took_s, trained, torch = done.stdout.splitlines()[-1].split("\t")
    return whole_s, float(took_s), trained, torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", default=str(QUICKSTART))
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="of the second run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="run once in this process")
    chosen = parser.parse_args()
    if chosen.alone:
        run(chosen.scenario, chosen.set)
        return
    turns = []
    for _ in range(chosen.repeats):
        with tempfile.TemporaryDirectory() as cache:
            turns.append([timed(chosen.scenario, changes, cache) for changes in ((), chosen.set)])
    print(f"{'':<10}{'process':>10}{'simulation':>12}{'trained':>9}{'torch':>7}")
    for name, found in zip(("first", "what-if"), zip(*turns, strict=True), strict=True):
        whole_s, took_s = (statistics.median(one[place] for one in found) for place in (0, 1))
        print(f"{name:<10}{whole_s:>8.2f} s{took_s:>10.3f} s{found[0][2]:>9}{found[0][3]:>7}")
    for place, name in enumerate(("process", "simulation")):
        share = statistics.median(again[place] / first[place] for first, again in turns)
        print(f"what-if / first, {name}: {100 * share:.1f} %")


if __name__ == "__main__":
    main()
