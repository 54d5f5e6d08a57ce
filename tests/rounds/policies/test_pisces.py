"""Pisces' pace, worked by hand."""

import numpy as np

from fedsim.rounds.policies.pisces import Pisces
from fedsim.rounds.policies.round import PastRounds


def test_clients_that_did_not_deliver_have_no_part_in_the_interval():
    past = PastRounds(durations_s=[np.array([2.0, np.inf]), np.array([4.0])])
    assert Pisces(concurrency=1, bound=4).interval_s(past) == 1.0
    assert Pisces(concurrency=1).interval_s(PastRounds()) == 0.0
