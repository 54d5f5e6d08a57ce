"""A golden trace: yesterday's numbers, not the truth.

It catches a change of results that nobody meant. After a change that is meant, regenerate it with

    FEDSIM_GOLDEN=write pytest tests/golden

and read the difference in the review.
"""

import csv
import os
from pathlib import Path

from fedsim import Scenario, simulate

HERE = Path(__file__).parent
TRACE = HERE / "cell_deadline_pause.csv"
DIGITS = 9  # after the decimal point: floating-point libraries of other machines may differ beyond


def rounded(history):
    return [
        [f"{value:.{DIGITS}f}" if isinstance(value, float) else str(value) for value in row.values()]
        for row in history.participations.to_pylist()
    ]


def test_cell_with_deadline_and_pause_traces_as_before():
    scenario = Scenario.load(HERE.parents[1] / "scenarios" / "quickstart.toml").replace(
        {"learning": {"kind": "none", "model_bits": 1e5, "samples_per_client": 48}, "rounds.count": 12}
    )
    history = simulate(scenario)
    header, rows = history.participations.column_names, rounded(history)
    if os.environ.get("FEDSIM_GOLDEN") == "write":
        with TRACE.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    with TRACE.open(newline="") as file:
        expected_header, *expected = csv.reader(file)
    assert header == expected_header
    assert rows == expected
