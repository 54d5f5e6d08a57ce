"""A sample of the frozen scenarios about rules of rounds: policies, late updates, edge servers, faults, ends, charge.

Networks without radio make a scenario quick; `tests/golden/test_frozen_tables.py` has a sample of all others.
"""

import pytest

from tests.golden import freeze

EVERY = 10
ABOUT = (
    *("edges", "energy", "fault", "fedasync", "fedbuff", "minimum-updates", "privacy", "remaining", "rules", "safa"),
    *("staleness", "until"),
)
RADIO = ("cell", "graph", "indoor-office", "urban-macro", "wifi", "nb-iot", "5g-midband")
SCENARIOS = {
    scenario: tables
    for scenario, tables in sorted(freeze.scenarios().items())
    if tables["learning"]["kind"] == "none"
    and scenario.split("/")[0] in ABOUT
    and not any(part in scenario for part in RADIO)
}
CHOSEN = [*SCENARIOS][3::EVERY]


@pytest.fixture(scope="module")
def expected():
    """Return the rows that are written, by id."""
    return freeze.read_hashes()


@pytest.mark.parametrize("scenario", CHOSEN)
def test_rounds_are_as_written(scenario, frozen_inputs, expected, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    row = freeze.run(scenario, SCENARIOS[scenario])
    assert (row["outcome"], row["rounded"]) == (expected[scenario]["outcome"], expected[scenario]["rounded"])
