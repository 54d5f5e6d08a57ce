"""Seconds from nothing to `import fedsim`, `fedsim --help` and `fedsim check`, beside an empty interpreter.

    python tests/benchmarks/start_up.py

prints the median and the least of eleven starts of each. Not a test: it asserts nothing.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

STARTS = 11
SCENARIO = str(Path(__file__).parents[2] / "scenarios" / "quickstart.toml")
COMMANDS = {
    "empty interpreter": ["-c", "pass"],
    "import fedsim": ["-c", "import fedsim"],
    "fedsim --help": ["-m", "fedsim", "--help"],
    "fedsim check FILE": ["-m", "fedsim", "check", SCENARIO],
}


def main() -> None:
    print(f"{'command':>18} {'median (s)':>11} {'least (s)':>10}")
    for name, command in COMMANDS.items():
        seconds = []
        for _ in range(STARTS):
            began = time.perf_counter()
            subprocess.run([sys.executable, *command], capture_output=True, check=True)  # noqa: S603
            seconds.append(time.perf_counter() - began)
        print(f"{name:>18} {statistics.median(seconds):>11.3f} {min(seconds):>10.3f}")


if __name__ == "__main__":
    main()
