"""Run random scenarios through the command line; print what is wrong, each fault once, with its scenario.

The number of a case is its seed, as in `tests/fuzz/test_scenarios.py`: `--seed N --cases 1` runs one of them again.

$ python tests/tools/fuzz.py --cases 2000 --seed 7
"""

import argparse
import collections
import os
import re
import resource
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

import tomli_w

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.field_values import write_files
from tests.support.one_command import CHEAPER, LIMIT_S, call, faults
from tests.support.random_scenarios import random_tables
from tests.support.seeded_draws import Seeded, distinct

WARM = 500
"""Cases after which what is imported once has been imported."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first case; a case that has come before is left out"
    )
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
        done, warm_kib = 0, 0
        for seed, text in distinct(lambda n: tomli_w.dumps(random_tables(Seeded(n))), options.cases, options.seed):
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
            done += 1
            if done == WARM:
                warm_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - warm_kib
        sys.stdout.write(
            f"=== {done} cases, all different, {dict(counts)}, {time.perf_counter() - began:.0f} s, "
            f"{time.process_time() - used_s:.0f} s of a processor, {grown_kib >> 10} MiB grown since {WARM}\n"
        )
        for words, number in refusals.most_common(60):
            sys.stdout.write(f"{number:6d} {words!r}\n")
        os.chdir("/")


if __name__ == "__main__":
    main()
