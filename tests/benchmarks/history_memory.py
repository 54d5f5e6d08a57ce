"""Peak memory of runs of more and more rounds, each in a process of its own, in MB.

    python tests/benchmarks/history_memory.py                      # 10^5 and 10^6 participations
    python tests/benchmarks/history_memory.py --rounds 100 3000    # other numbers of rounds

A run about timing only sends 1,000 of 2,000 clients each round and is kept in a folder. The table shows its
participations, the bytes of its Parquet files, the peak of resident memory, and how much more that is than in the first
line. Not a test: it asserts nothing.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from fedsim import Scenario
from fedsim.results import run

COHORT = 1000


def peak_mb(rounds: int, folder: Path) -> float:
    """Run a scenario of a number of rounds in this process; return the peak of its resident memory."""
    scenario = Scenario(
        name="memory",
        crowd={"clients": 2 * COHORT},
        learning="none",
        network="pause-two-speed",
        devices={"compute": "zero"},
        rounds={"count": rounds, "policy": {"kind": "deadline", "deadline_s": 0.8}},
        selector={"kind": "uniform", "cohort": COHORT},
    )
    run(scenario, folder)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        print(peak_mb(options.rounds[0], options.folder))
        return
    print(f"{'participations':>15} {'Parquet MB':>11} {'peak MB':>8} {'more MB':>8}")
    first = None
    for rounds in options.rounds:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--rounds", str(rounds), "--folder", f"{folder}/run"]
            done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603
            peak = float(done.stdout)
            first = peak if first is None else first
            on_disk = sum(file.stat().st_size for file in Path(folder, "run").glob("*.parquet")) / 1e6
        print(f"{rounds * COHORT:>15,} {on_disk:>11.1f} {peak:>8.1f} {peak - first:>8.1f}")


if __name__ == "__main__":
    main()
