"""A sample of the frozen scenarios, about timing only: their tables are as written, to 9 significant digits.

``python tests/golden/freeze.py check`` compares all of them to the last bit.
"""

import pytest

from tests.golden import freeze

SAMPLE = 60
SLOW = ("radio/", "5g-midband", "urban-macro", "cell-sites", "site-cells")  # much arithmetic before the first round
SCENARIOS = {
    scenario: tables
    for scenario, tables in freeze.scenarios().items()
    if tables["learning"]["kind"] == "none" and not any(part in scenario for part in SLOW)
}
CHOSEN = sorted(SCENARIOS)[:: len(SCENARIOS) // SAMPLE]


@pytest.fixture(scope="module")
def expected():
    """Return the rows that are written, by id."""
    return freeze.read_hashes()


def test_every_scenario_is_written(expected):
    assert set(freeze.scenarios()) == set(expected)


@pytest.mark.parametrize("scenario", CHOSEN)
def test_tables_are_as_written(scenario, frozen_inputs, expected, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    row = freeze.run(scenario, SCENARIOS[scenario])
    assert (row["outcome"], row["rounded"]) == (expected[scenario]["outcome"], expected[scenario]["rounded"]), (
        "another result than the frozen one; if that is meant: python tests/golden/freeze.py write"
    )
