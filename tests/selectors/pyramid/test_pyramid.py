"""PyramidFL: the work of each client by hand and as the published code writes it, on Oort's cohort."""

import math

import numpy as np
import pytest

from fedsim import simulate
from fedsim.selectors.oort.fedscale import OortFedScale
from fedsim.selectors.pyramid.pyramid import PyramidFl
from tests.support.short_runs import DIGITS
from tests.support.views import rng, view_of

# Seconds of downlink, work and uplink, and a number of samples: 4, 8 and 20 s in all.
TIMES = np.array([[1.0, 2.0, 1.0, 9.0], [1.0, 4.0, 3.0, 9.0], [2.0, 10.0, 8.0, 9.0]])


@pytest.mark.parametrize(
    ("options", "deadline_s", "expected"),
    [
        ({}, None, [1 + 16 / 2, 1 + 12 / 4, 1.0]),
        ({"beta": 0.5}, None, [1 + 16 / 4, 1 + 12 / 8, 1.0]),
        ({"most_more": 2.0}, None, [3.0, 3.0, 1.0]),
        ({}, 10.0, [1 + 6 / 2, 1 + 2 / 4, 1.0]),
        ({}, 50.0, [9.0, 4.0, 1.0]),
        ({"until": "deadline"}, 30.0, [1 + 10, 1 + 22 / 4, 1 + 10 / 10]),
        ({"until": "deadline"}, None, [9.0, 4.0, 1.0]),
        # 16 / (2 / 3) = 24 and 12 / (4 / 3) = 9 thirds; with 11 s until the deadline 10.5 and 2.25 thirds.
        ({"steps": 3}, None, [9.0, 4.0, 1.0]),
        ({"steps": 3}, 11.0, [1 + 10 / 3, 1 + 2 / 3, 1.0]),
        ({"steps": 5}, 4.8, [1 + 2 / 5, 1.0, 1.0]),  # 4.8 - 4 is less than 0.8
        ({"beta": 0.0}, None, [1.0, 1.0, 1.0]),
    ],
)
def test_work_by_hand(options, deadline_s, expected):
    assert PyramidFl(3, **options).work(TIMES, deadline_s).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_work_as_the_published_code_computes_it(beta):
    """``min(10, beta * floor((T - t) / (c / E)) / E) + 1``, over a random cohort."""
    times = np.random.default_rng(3).uniform(0.1, 9.0, (30, 3))
    whole, last = times.sum(axis=1), float(times.sum(axis=1).max())
    expected = [
        min(10, beta * math.floor((last - t) / (c / 5)) / 5) + 1
        for t, c in zip(whole.tolist(), times[:, 1].tolist(), strict=True)
    ]
    assert PyramidFl(30, beta=beta, steps=5).work(times, None).tolist() == pytest.approx(expected)


def test_work_that_takes_no_time_and_clients_out_of_reach_have_the_usual_work():
    times = np.array([[1.0, 0.0, 1.0], [1.0, np.inf, 1.0], [1.0, 1.0, 1.0], [1.0, 7.0, 1.0]])
    assert PyramidFl(4).work(times, None).tolist() == pytest.approx([1.0, 1.0, 7.0, 1.0])
    assert PyramidFl(4, steps=2).work(times[:2], None).tolist() == [1.0, 1.0]


def test_clients_are_those_of_oort_with_the_same_numbers():
    numbers = {"exploration_decay": 0.95, "exploration_least": 0.2, "threshold": 10.0, "clip": 0.98, "cut_off": 0.7}
    view = view_of(9, samples=np.arange(1, 10), features=np.random.default_rng(0).uniform(1, 5, (9, 4)))
    cohort, oort = PyramidFl(4).select(view, rng(1)), OortFedScale(4, **numbers).select(view, rng(1))
    assert cohort.client.tolist() == oort.client.tolist()
    assert cohort.work.tolist() == PyramidFl(4).work(view.features[cohort.client], None).tolist()
    assert PyramidFl(4).select(view_of(9), rng(1)).work is None, "no declared times"


def test_in_a_run_no_client_ends_after_the_slowest_of_its_cohort_and_energy_follows_the_work():
    """Times are constant, and steps are whole and rounded down."""
    one_s = {"kind": "constant", "value_s": 1.0}
    bits = {"receive_j_per_bit": 0.0, "transmit_j_per_bit": 0.0}
    tables = {
        "crowd.clients": 8,
        "learning.data.train_limit": 400,
        "learning.local": {"batch_size": 5},
        "network": {"kind": "latency", "downlink": one_s, "uplink": one_s},
        "devices.compute": {"kind": "rate", "samples_per_s": [100 / 2**k for k in range(8)], "jitter_sigma": 0.0},
        "devices.energy": {"kind": "battery", "compute_w": 2.0, "capacity_j": 1e9, **bits},
        "rounds.policy": {"kind": "deadline", "deadline_s": 1e6},
        "selector": {"kind": "pyramidfl", "cohort": 5, "most_more": 3.0},
    }
    history = simulate(DIGITS.replace(tables))
    table = history.participations.to_pandas()
    usual_s = 50 * 0.01 * 2.0**table.client
    assert table.compute_s.to_numpy() == pytest.approx((table.work * usual_s).to_numpy())
    assert table.energy_j.to_numpy() == pytest.approx((2.0 * table.work * usual_s).to_numpy())
    for _, cohort in table.groupby("round"):
        slowest = cohort.client.idxmax()
        assert cohort.work[slowest] == 1.0
        assert (cohort.end_s <= cohort.end_s[slowest] + 1e-9).all()
        assert (cohort.work * 10 == (cohort.work * 10).round()).all(), "whole batches of ten"
    assert table.work.max() == 4.0
