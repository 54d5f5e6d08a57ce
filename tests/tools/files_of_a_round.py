"""Prints which files of fedsim one round with a deadline enters.

    python tests/tools/files_of_a_round.py
    python tests/tools/files_of_a_round.py scenarios/quickstart.toml

Ten clients on latencies, a uniform cohort of five, no learning: what is left is the path that every round takes. The
second of two rounds is traced, from the report of the first to its own, so that building the run counts for nothing.
A file counts if one of its functions is called; run it in another checkout to compare.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import fedsim
from fedsim import Scenario
from fedsim.simulation import Simulation

HOME = Path(fedsim.__file__).resolve().parent
SCENARIO = {
    "name": "one-round",
    "crowd": {"clients": 10},
    "learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 20},
    "network": "pause-two-speed",
    "devices": {"compute": {"kind": "rate", "samples_per_s": 100.0}},
    "rounds": {"count": 2, "policy": {"kind": "deadline", "deadline_s": 0.6}},
    "selector": {"kind": "uniform", "cohort": 5},
    "results": {"audit": False},
}


def entered(scenario: Scenario) -> dict[str, int]:
    """Return how often functions of each file of fedsim are called in the second round."""
    calls: dict[str, int] = {}

    def count(frame: FrameType, event: str, argument: Any) -> None:
        place = frame.f_code.co_filename
        if event == "call" and place.startswith(f"{HOME}/") and frame.f_code.co_name != "<module>":
            name = str(Path(place).relative_to(HOME))
            calls[name] = calls.get(name, 0) + 1

    def on_round(progress: Any) -> None:
        sys.setprofile(count if sys.getprofile() is None else None)

    Simulation(scenario, on_round=on_round).run()
    sys.setprofile(None)
    calls.pop("simulation.py", None)
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", help="a scenario file, of which two rounds are run")
    given = parser.parse_args().scenario
    scenario = Scenario(**SCENARIO) if given is None else Scenario.load(given).replace({"rounds.count": 2})
    calls = entered(scenario)
    rooms = Counter(name.split("/")[0] for name in calls)
    for name in sorted(calls):
        print(f"{calls[name]:6d} calls  fedsim/{name}")
    print(", ".join(f"{room} {files}" for room, files in rooms.most_common()))
    print(f"{len(calls)} files of fedsim, {sum(calls.values())} calls")


if __name__ == "__main__":
    main()
