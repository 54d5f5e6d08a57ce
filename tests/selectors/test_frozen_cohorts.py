"""Every selector of the catalogue, with several sets of options, chooses, asks and refuses as is written.

Reports have numbers here, which runs about timing do not have. `tests/golden/cohorts.csv` holds a hash for each set of
options, of values with 9 significant digits. It tells that something changed, never what is right. After a change that
is meant:

    FEDSIM_GOLDEN=write pytest -n 0 tests/selectors/test_frozen_cohorts.py
"""

import csv
import hashlib
import inspect
import math
import os
from pathlib import Path

import numpy as np
import pytest

from fedsim.selectors import SELECTORS, Allocation
from fedsim.testing.server import AsynchronousServer, Server, Trial
from tests.golden import scenarios
from tests.support.families import by_default, first_kinds
from tests.support.selector_defaults import DEFAULTS, NEEDED

HASHES = Path(__file__).parents[1] / "golden" / "cohorts.csv"
CASES = {
    f"{kind} {number}": scenarios.selector(kind, options)
    for kind in sorted(SELECTORS.builtin)
    for number, options in enumerate(scenarios.ALL_SELECTORS.get(kind, [{}]))
}
TRIALS = (
    (Server, Trial("some are away", 11, present=0.8, features=3), 10),
    (Server, Trial("without privacy, few or many", 14, budget=None, features=3, wanted=(None, 2, 6)), 5),
    (AsynchronousServer, Trial("one by one", 11, features=3, wanted=(1,), asynchronous=True), 10),
)
VALUES = (
    *(-1, 0, 1, 2, True, -0.5, 0.0, 1e-9, 0.5, 1.0, 1.0 + 1e-9, math.nan, math.inf, None),
    *("x", [], [0.5], [0.5, 0.5], [0.0, 1.0], [-0.1, 1.1], [math.nan, 1.0]),
)


def plain(value):
    """Return a value as a text, with 9 significant digits of each float and the type of each array."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {plain(value.tolist())}"
    if isinstance(value, Allocation):
        return plain(vars(value))
    if isinstance(value, dict):
        return str({name: plain(one) for name, one in value.items() if one is not None})
    if isinstance(value, list | tuple):
        return str([plain(one) for one in value])
    return f"{round(value, 12) + 0.0:.9g}" if isinstance(value, float) else repr(value)


def check(case, found):
    """Compare what was found in a case with the hash that is written, or write it."""
    digest = hashlib.sha256(plain(found).encode()).hexdigest()[:16]
    rows = dict(csv.reader(HASHES.read_text().splitlines())) if HASHES.exists() else {}
    if os.environ.get("FEDSIM_GOLDEN") == "write":
        lines = [f"{name},{one}\n" for name, one in sorted({**rows, case: digest}.items())]
        HASHES.write_text("".join(lines))
    else:
        assert digest == rows.get(case), f"{case}: other than written: {plain(found)[:2000]}"


@pytest.mark.parametrize("case", by_default(CASES, [f"{kind} 0" for kind in first_kinds(SELECTORS)]))
def test_a_selector_chooses_as_written(case):
    found = []
    for server, trial, rounds in TRIALS:
        answers = list(server(trial, 5, SELECTORS.make(CASES[case]).build()).run(rounds))
        found.append([[{} if part is None else vars(part) for part in (one.probe, one.cohort)] for one in answers])
        assert answers
    check(case, found)


def test_options_are_taken_and_refused_as_written():
    for kind in sorted(SELECTORS.builtin):
        made, found = SELECTORS.load(kind), {}
        needed = {name: NEEDED[name] for name in NEEDED if name in inspect.signature(made).parameters}
        for option in sorted({*needed, *DEFAULTS.get(kind, {})}):
            for value in VALUES:
                try:
                    made(**{**needed, option: value})
                except (ValueError, TypeError) as error:
                    found[f"{option} = {value!r}"] = str(error)
        check(f"options of {kind}", found)
