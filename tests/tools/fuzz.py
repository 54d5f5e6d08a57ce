"""Run random scenarios through the command line; print what is wrong, each fault once, with its scenario.

$ python tests/tools/fuzz.py --cases 2000 --seed 7
"""

import argparse
import collections
import os
import random
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.field_values import write_files
from tests.support.one_command import CHEAPER, LIMIT_S, call, faults
from tests.support.random_scenarios import random_tables


class Plain:
    """Choices from a generator of random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices."""
        return self._random.choice(choices)

    def chance(self, percent: int) -> bool:
        """Return True in so many cases of a hundred."""
        return self._random.random() * 100 < percent


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; each case has the next one")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of a processor for a case")
    parser.add_argument("--whole", action="store_true", help="with figures, and with all that takes long")
    parser.add_argument("--refusals", action="store_true", help="print how often each refusal came")
    options = parser.parse_args()
    keep = {}
    for part, name, value in () if options.whole else CHEAPER:
        setattr(part, name, value)
    warnings.simplefilter("error", RuntimeWarning)
    os.environ["FEDSIM_STORE"] = "none"
    os.environ["FEDSIM_EXECUTOR"] = "sequential"
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        os.environ["FEDSIM_DATA"] = place
        write_files(Path(place))
        counts: collections.Counter[str] = collections.Counter()
        refusals: collections.Counter[str] = collections.Counter()
        began, used_s = time.perf_counter(), time.process_time()
        for seed in range(options.seed, options.seed + options.cases):
            text = tomli_w.dumps(random_tables(Plain(seed)))
            Path("case.toml").write_text(text)
            at = time.process_time()
            ended = call(["run", "case.toml", "--out", "run", "--quiet"], options.limit)
            lasted_s = time.process_time() - at
            counts[f"exit code {ended.code}"] += 1
            if options.refusals and ended.code == 2:
                refusals[re.sub(r"'.*?'|\d[\d.e+-]*", "#", ended.errors)[8:150]] += 1
            if lasted_s > 3:
                counts["over 3 s"] += 1
                sys.stdout.write(f"=== seed {seed}: {lasted_s:.1f} s of a processor\n")
            for fault in faults(ended, Path("run")):
                key = re.sub(r"\d[\d.e+-]*", "#", fault)[:400]
                counts["faults"] += 1
                if key not in keep:
                    keep[key] = seed
                    sys.stdout.write(f"=== seed {seed}\n{fault}\n{text}\n")
                    sys.stdout.flush()
            shutil.rmtree("run", ignore_errors=True)
        sys.stdout.write(
            f"=== {options.cases} cases, {dict(counts)}, {time.perf_counter() - began:.0f} s, "
            f"{time.process_time() - used_s:.0f} s of a processor\n"
        )
        for words, number in refusals.most_common(60):
            sys.stdout.write(f"{number:6d} {words!r}\n")
        os.chdir("/")


if __name__ == "__main__":
    main()
