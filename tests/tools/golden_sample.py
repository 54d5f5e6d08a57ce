"""Chooses the frozen scenarios of the default tier: one for each way through five rooms.

    pip install coverage
    python tests/tools/golden_sample.py --write        # minutes

A way is a jump from one line to another, as coverage.py counts them, which a frozen scenario about timing takes in
`fedsim/rounds`, `fedsim/network/medium`, `fedsim/devices`, `fedsim/privacy` or `fedsim/selectors`. Scenario after
scenario is taken that adds most of such jumps for its time. The ids go to `tests/golden/sample.txt`.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("rounds", "network/medium", "devices", "privacy", "selectors")
START_S = 0.02
"""What a test costs beside its scenario."""
Jump = tuple[str, int, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write tests/golden/sample.txt")
    parser.add_argument("--every", type=int, default=2, help="look at every so manieth scenario (2)")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    chosen = choose(*measured(options.every))
    text = "".join(f"{scenario}\n" for scenario in sorted(chosen))
    if options.write:
        (ROOT / "tests" / "golden" / "sample.txt").write_text(text)
    print(text, end="")


def measured(every: int) -> tuple[dict[str, set[Jump]], dict[str, float]]:
    from coverage import Coverage

    from tests.golden import freeze

    found = {name: tables for name, tables in freeze.scenarios().items() if tables["learning"]["kind"] == "none"}
    written, jumps, took_s = freeze.read_hashes(), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        freeze.write_inputs(Path(folder))
        os.chdir(folder)
        freeze.run(*next(iter(found.items())))  # what is imported is no way of a scenario
        for scenario in [*found][::every]:
            measure = Coverage(branch=True, data_file=None, include=[f"{ROOT}/fedsim/{room}/*" for room in ROOMS])
            begun_s = time.process_time()
            with measure.collect():
                row = freeze.run(scenario, found[scenario])
            if row["rounded"] != written[scenario]["rounded"]:
                continue  # another kind of processor rounds to other choices
            took_s[scenario] = time.process_time() - begun_s
            data = measure.get_data()
            jumps[scenario] = {(file, *arc) for file in data.measured_files() for arc in data.arcs(file) or ()}
    return jumps, took_s


def choose(jumps: dict[str, set[Jump]], took_s: dict[str, float]) -> list[str]:
    left, chosen = set().union(*jumps.values()), []
    while left:
        rest = sorted(took_s.keys() - set(chosen))
        chosen.append(max(rest, key=lambda one: len(jumps[one] & left) / (took_s[one] + START_S)))
        left -= jumps[chosen[-1]]
    return chosen


if __name__ == "__main__":
    main()
