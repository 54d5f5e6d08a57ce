"""Random scenarios on the command line: each runs whole, or is refused by a message and exit code 2.

No traceback, no hang, no alarm of the audit, no number in a table that is not finite, no time below 0, and no half of a
run folder. `python tests/tools/fuzz.py` runs the same cases without Hypothesis, and goes on after a fault.
"""

import os
import shutil
from pathlib import Path

import pytest
import tomli_w
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support.field_values import write_files
from tests.support.hypothesis_draws import made_by
from tests.support.one_command import call, faults
from tests.support.random_scenarios import random_tables

MANY = int(os.environ.get("FEDSIM_FUZZ_CASES", "2000"))
"""Cases of the slow tier."""
SHARES = 4
"""Tests among which they are divided, for as many processes."""
scenarios = made_by(random_tables)


@pytest.fixture(autouse=True, scope="module")
def files(place):
    write_files(place)


def check(tables):
    Path("case.toml").write_text(tomli_w.dumps(tables))
    try:
        ended = call(["run", "case.toml", "--out", "run", "--quiet", "--no-store"])
        assert not faults(ended, Path("run"))
    finally:
        shutil.rmtree("run", ignore_errors=True)


@given(scenarios)
@settings(
    max_examples=500,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_random_scenarios(tables):
    check(tables)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_many_random_scenarios(share):
    @seed(share)
    @settings(
        max_examples=MANY // SHARES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(scenarios)
    def all_cases(tables):
        check(tables)

    all_cases()
