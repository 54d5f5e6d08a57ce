"""Pisces' pace, worked by hand."""

import math

import numpy as np
import pytest

from fedsim.rounds.policies.pisces import Pisces
from fedsim.rounds.policies.round import PastRounds
from tests.support.stories import timeline, told
from tests.support.worlds import FirstWanted, serve

# Three clients that take 3, 5 and 8 s; the selector takes the lowest ids that are free.
THREE = ([1, 1, 2], [1, 2, 3], [1, 2, 3])


def test_intervals_follow_the_slowest_client():
    """Intervals of 0, then half of 3 s, half of 5 s and half of 5 s; nothing has arrived when the second is over."""
    history, _, learner, _ = serve(Pisces(concurrency=2, bound=2), *THREE, count=4, selector=FirstWanted())
    assert timeline(history) == told("""
          0 round 1 begins; client 0 starts from 0; client 1 starts from 0
          3 client 0 arrives: used; round 1 ends with model 1; round 2 begins; client 0 starts from 1
          5 client 1 arrives: stale-used; round 2 ends with model 2; round 3 begins; client 1 starts from 2
          6 client 0 arrives: stale-used; client 0 starts from 2
        7.5 round 3 ends with model 3; round 4 begins
          9 client 0 arrives: stale-used; client 0 starts from 3
         10 client 0 is cut off: wasted-late; client 1 arrives: stale-used; round 4 ends with model 4
    """)
    stale = 1 / math.sqrt(2)
    samples = learner.samples[[0, 1]] / learner.samples[[0, 1]].sum()
    assert learner.aggregated[:3] == [([0], [1.0]), ([1], [pytest.approx(stale)]), ([0], [pytest.approx(stale)])]
    clients, weights = learner.aggregated[3]
    assert sorted(clients) == [0, 1]
    assert sorted(weights) == pytest.approx(sorted(samples * stale))


def test_clients_that_did_not_deliver_have_no_part_in_the_interval():
    past = PastRounds(durations_s=[np.array([2.0, np.inf]), np.array([4.0])])
    assert Pisces(concurrency=1, bound=4).interval_s(past) == 1.0
    assert Pisces(concurrency=1).interval_s(PastRounds()) == 0.0
