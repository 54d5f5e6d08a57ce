"""Random scenarios on the command line: each runs whole, or is refused by a message and exit code 2.

No traceback, no hang, no alarm of the audit, no number in a table that is not finite, no time below 0, and no half of a
run folder. The number of a case is its seed; all faulty cases of a test are named at its end.
"""

import os
import shutil
from pathlib import Path

import pytest
import tomli_w

from tests.support.field_values import write_files
from tests.support.one_command import call, faults
from tests.support.random_scenarios import random_tables
from tests.support.seeded_draws import Seeded, distinct

FEW = 50
"""Cases of the default tier."""
MANY = int(os.environ.get("FEDSIM_FUZZ_CASES", "800"))
"""Cases of the slow tier."""
FIRST = int(os.environ.get("FEDSIM_FUZZ_SEED", "1000000"))
"""Seed of the first case of the slow tier."""
SHARES = 8
"""Tests among which they are divided, for as many processes as there are."""


@pytest.fixture(autouse=True, scope="module")
def files(place):
    write_files(place)


def check(cases, first=0):
    wrong = []
    for number, text in distinct(lambda seed: tomli_w.dumps(random_tables(Seeded(seed))), cases, first):
        Path("case.toml").write_text(text)
        found = faults(call(["run", "case.toml", "--out", "run", "--quiet", "--no-store"]), Path("run"))
        wrong += [f"case {number}: {found}\n{text}"] if found else []
        shutil.rmtree("run", ignore_errors=True)
    assert not wrong, "\n".join(wrong)


def test_random_scenarios():
    check(FEW)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_many_random_scenarios(share):
    cases = MANY // SHARES
    check(cases, FIRST + share * cases)
