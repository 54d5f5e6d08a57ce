"""Peak memory of runs of more and more rounds, each in a process of its own, in MB.

    python tests/benchmarks/history_memory.py                      # 10^5 and 10^6 participations
    python tests/benchmarks/history_memory.py --rounds 100 3000    # other numbers of rounds
    python tests/benchmarks/history_memory.py --audit              # with results.audit
    python tests/benchmarks/history_memory.py --policy fedbuff     # minutes: 10 updates a round
    python tests/benchmarks/history_memory.py --policy fedasync --in-memory

A run about timing only sends 1,000 of 2,000 clients each round, or keeps 100 of them in flight and gives none up before
10^4 s, and is kept in a folder. The table shows its participations, the bytes of its Parquet files, the peak of
resident memory, how much more that is than in the first line, also for each participation, the files and child
processes that the run has left open. Not a test: it asserts nothing.
"""

import argparse
import gc
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from fedsim import Scenario
from fedsim.history import Recorder
from fedsim.results import run
from fedsim.simulation import Simulation

COHORT = 1000
POLICIES = {
    "deadline": {"kind": "deadline", "deadline_s": 0.8},
    "fedbuff": {"kind": "fedbuff", "concurrency": 100, "buffer": 10, "give_up_s": 1e4},
    "fedasync": {"kind": "fedasync", "concurrency": 100, "give_up_s": 1e4},
}
ROUNDS = {"deadline": [100, 1000], "fedbuff": [2000, 20_000], "fedasync": [20_000, 200_000]}


def left_open() -> tuple[int, int]:
    """Return how many files and child processes this process has."""
    gc.collect()
    files = Path("/proc/self/fd")
    return len(list(files.iterdir())) if files.is_dir() else 0, len(multiprocessing.active_children())


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Run a scenario in this process; return what it has taken and left."""
    scenario = Scenario(
        name="memory",
        crowd={"clients": 2 * COHORT},
        learning="none",
        network="pause-two-speed",
        devices={"compute": "zero"},
        rounds={"count": options.rounds[0], "policy": POLICIES[options.policy]},
        selector={"kind": "uniform", "cohort": COHORT if options.policy == "deadline" else 10},
        results={"audit": options.audit},
    )
    before, recorder = left_open(), Recorder(scenario.name)
    if options.in_memory:
        rows = Simulation(scenario, recorder=recorder).run().participations.num_rows
        on_disk = 0
        del recorder
    else:
        rows = run(scenario, options.folder).participations.num_rows
        on_disk = sum(file.stat().st_size for file in options.folder.glob("*.parquet"))
    files, processes = (now - then for now, then in zip(left_open(), before, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "rows": rows,
        "on_disk": on_disk,
        "peak": peak,
        "files": files,
        "processes": processes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+")
    parser.add_argument("--policy", choices=sorted(POLICIES), default="deadline")
    parser.add_argument("--audit", action="store_true", help="with the full audit")
    parser.add_argument("--in-memory", action="store_true", help="with `simulate`, without a folder")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        print(json.dumps(measure(options)))
        return
    heads = ("participations", "Parquet MB", "peak MB", "more MB", "B each", "files", "processes")
    print(" ".join(f"{head:>14}" for head in heads))
    first: dict[str, float] | None = None
    for rounds in options.rounds or ROUNDS[options.policy]:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--rounds", str(rounds), "--folder", f"{folder}/run"]
            command += ["--policy", options.policy, *["--audit"] * options.audit, *["--in-memory"] * options.in_memory]
            done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603
            found = json.loads(done.stdout)
        first = first or found
        more, rows = found["peak"] - first["peak"], found["rows"] - first["rows"]
        print(
            f"{found['rows']:>14,} {found['on_disk'] / 1e6:>14.1f} {found['peak'] / 1e6:>14.1f} {more / 1e6:>14.1f} "
            f"{more / rows if rows else 0:>14.0f} {found['files']:>14} {found['processes']:>14}",
            flush=True,
        )


if __name__ == "__main__":
    main()
