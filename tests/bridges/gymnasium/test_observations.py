"""Views as arrays over all clients, by hand."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the extra 'gym' is not installed")
from fedsim.bridges.gymnasium import COLUMNS, Observations
from tests.support.views import view_of

# Clients 1 and 3 of four are candidates in round 5.
VIEW = view_of(
    [1, 3],
    clients=4,
    round=5,
    time_s=12.5,
    samples=[10, 40],
    total_samples=100,
    participations=[3, 0],
    last_duration_s=[2.0, np.nan],
    last_loss=[0.5, np.nan],
    privacy_spent=[2.0, 0.0],
    privacy_budget=8.0,
    features=[[0.0] * 4, [1.0, 2.0, 1.0, 10.0], [0.0] * 4, [4.0, 1.0, 1.0, 40.0]],
    snr_hz=[1e6, 0.0],
)
RAW = {
    "samples": [0, 10, 0, 40],
    "participations": [0, 3, 0, 0],
    "last_duration_s": [0, 2, 0, -1],
    "last_loss": [0, 0.5, 0, -1],
    "privacy_spent": [0, 2, 0, 0],
    "features": [[0, 0, 0], [1, 2, 1], [0, 0, 0], [4, 1, 1]],
    "snr_db": [0, 60, 0, -200],
    "round": [5],
    "time_s": [12.5],
}
NORMALISED = {
    "samples": [0, 0.25, 0, 1],
    "participations": [0, 0.75, 0, 0],
    "last_duration_s": [0, 1, 0, -1],
    "last_loss": [0, 1, 0, -1],
    "privacy_spent": [0, 0.25, 0, 0],
    "features": [[0, 0, 0], [0.25, 0.5, 0.25], [0, 0, 0], [1, 0.25, 0.25]],
    "snr_db": [0, 0.3, 0, -1],
    "round": [0.5],
    "time_s": [0.125],
}


@pytest.mark.parametrize(("normalised", "expected"), [(False, RAW), (True, NORMALISED)])
def test_columns_by_hand(normalised, expected):
    observations = Observations(4, COLUMNS, normalised, 10, 100.0)
    seen = observations.of(VIEW, 5, 12.5)
    assert observations.space().contains(seen)
    assert seen.pop("candidate").tolist() == [0, 1, 0, 1]
    assert seen.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(seen[name], np.array(values, dtype=np.float32), err_msg=name)


@pytest.mark.parametrize("normalised", [False, True])
def test_after_the_last_round_no_client_is_a_candidate(normalised):
    observations = Observations(4, COLUMNS, normalised, 10, None)
    seen = observations.of(None, 11, 99.0)
    assert observations.space().contains(seen)
    assert not seen["candidate"].any()


@pytest.mark.parametrize(
    ("unknown", "columns", "values"),
    [
        ({"last_duration_s": np.full(2, np.nan)}, "last_duration_s", [0, -1, 0, -1]),
        ({"snr_hz": None}, "snr_db", [0] * 4),
        ({"privacy_budget": None}, "privacy_spent", [0] * 4),
    ],
)
def test_what_nobody_knows_yet_or_ever_has_a_number(unknown, columns, values):
    seen = Observations(4, (columns,), True, 10, None).of(replace(VIEW, **unknown), 1, 5.0)
    assert (seen[columns].tolist(), seen["time_s"].tolist()) == (values, [0])
