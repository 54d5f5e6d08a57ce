"""Frozen scenarios about timing only: their tables are as written, to 9 significant digits.

``python tests/golden/freeze.py check`` compares all of them to the last bit. The sample of the default tier takes each
way through the rooms that any of them takes; ``tests/tools/golden_sample.py`` chooses it.
"""

from pathlib import Path

import pytest

from tests.golden import freeze

SCENARIOS = freeze.scenarios()
SAMPLE = Path(__file__).with_name("sample.txt").read_text().split()
# On another kind of processor the selector of one chooses otherwise, and a ninth digit of the others is another one.
BY_PROCESSOR = {
    "moving-average/drop/graph-moving/fedsuv",
    "fedbuff/cancel/cell-sites/cs-ucb",
    "radio/inf-dl/rayleigh/1",
}
TIMING = [name for name, tables in SCENARIOS.items() if tables["learning"]["kind"] == "none"]
OTHERS = [name for name in TIMING if name not in BY_PROCESSOR.union(SAMPLE)]
SHARES, EVERY = 8, 4


@pytest.fixture(scope="module")
def expected():
    return freeze.read_hashes()


def check(scenario, expected):
    row = freeze.run(scenario, SCENARIOS[scenario], bits=False)
    assert (row["outcome"], row["rounded"]) == (expected[scenario]["outcome"], expected[scenario]["rounded"]), (
        f"{scenario}: another result than the frozen one; if that is meant: python tests/golden/freeze.py write"
    )


def test_every_scenario_is_written(expected):
    assert set(SCENARIOS) == set(expected)


@pytest.mark.parametrize("scenario", SAMPLE)
def test_tables_are_as_written(scenario, frozen_inputs, expected, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    check(scenario, expected)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_more_tables_are_as_written(share, frozen_inputs, expected, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    for scenario in OTHERS[share * EVERY :: SHARES * EVERY]:
        check(scenario, expected)
