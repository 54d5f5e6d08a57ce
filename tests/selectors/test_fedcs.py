"""FedCS: its schedule by hand and against Algorithm 3 followed to the letter."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.selectors.fedcs import FedCs, parallel_schedule, serial_schedule
from tests.support.views import answers_of, rng, view_of

WORK_S, UPLOAD_S = np.array([10.0, 2.0, 6.0]), np.array([3.0, 4.0, 5.0])


def to_the_letter(work_s, upload_s, budget_s):
    """Algorithm 3: take out the client that adds least, keep it if the round still ends in time, until none is left."""
    left, kept, theta_s = list(range(len(work_s))), [], 0.0
    while left:
        added_s = {k: upload_s[k] + max(0.0, work_s[k] - theta_s) for k in left}
        x = min(left, key=added_s.get)
        left.remove(x)
        if theta_s + added_s[x] < budget_s:
            theta_s += added_s[x]
            kept.append(x)
    return kept, theta_s


def test_schedules_worked_by_hand():
    """Theta 0: the clients add 13, 6 and 11. Theta 6: 7 and 5. Theta 11: 3, and all is done at 14."""
    assert serial_schedule(WORK_S, UPLOAD_S, 14.1, 9).tolist() == [1, 2, 0]
    assert serial_schedule(WORK_S, UPLOAD_S, 14.0, 9).tolist() == [1, 2]
    assert serial_schedule(WORK_S, UPLOAD_S, 14.1, 1).tolist() == [1]
    assert serial_schedule(WORK_S, UPLOAD_S, 6.0, 9).tolist() == []
    assert parallel_schedule(WORK_S, UPLOAD_S, 13.0).tolist() == [1, 2]
    assert parallel_schedule(WORK_S, UPLOAD_S, 13.1).tolist() == [1, 2, 0]


@given(st.integers(0, 60), st.floats(0.01, 40.0), st.floats(0.01, 3.0), st.integers(0, 2**31))
def test_the_schedule_is_that_of_algorithm_3(clients, budget_s, slowness, seed):
    generator = rng(seed)
    work_s, upload_s = slowness * generator.exponential(5.0, clients), generator.random(clients)
    kept, theta_s = to_the_letter(work_s.tolist(), upload_s.tolist(), budget_s)
    mine = serial_schedule(work_s, upload_s, budget_s, clients)
    assert mine.tolist() == kept
    ends_s = 0.0
    for k in kept:
        ends_s = max(ends_s, work_s[k]) + upload_s[k]
    assert ends_s == pytest.approx(theta_s)


def test_the_selector_plans_with_what_it_is_told():
    view = view_of(8, answers=answers_of([2, 5, 7], compute_s=WORK_S, uplink_s=UPLOAD_S))
    assert FedCs(14.1).select(view, rng()).client.tolist() == [2, 5, 7]
    assert FedCs(14.1, overhead_s=0.2).select(view, rng()).client.tolist() == [5, 7]
    assert FedCs(13.0, uploads="parallel").select(view, rng()).client.tolist() == [5, 7]
    assert FedCs(14.1).select(view_of(8, answers=view.answers, wanted=1), rng()).client.tolist() == [5]
    view = view_of(8, answers=answers_of([2, 5, 7], compute_s=WORK_S, uplink_s=UPLOAD_S))
    assert FedCs(1.0).select(view, rng()).client.tolist() == [5], "where nobody fits, the soonest"
    view = view_of(8, answers=answers_of([2, 5], compute_s=[1.0, 1.0], uplink_s=[np.inf, 2.0]))
    assert FedCs(100.0).select(view, rng()).client.tolist() == [5], "who cannot upload is left out"


@pytest.mark.parametrize(
    ("share", "there", "asked"), [(0.1, 40, 4), (0.11, 40, 5), (1.0, 40, 40), (0.1, 2, 2), (1e-12, 40, 1)]
)
def test_a_share_of_the_crowd_is_asked(share, there, asked):
    probe = FedCs(10.0, share=share, wait_s=3.0).probe(view_of(there, clients=40), rng())
    assert probe.asks == "resources"
    assert (probe.down_bits, probe.up_bits, probe.wait_s) == (256.0, 256.0, 3.0)
    assert len(set(probe.client.tolist())) == asked


def test_where_nobody_answers_all_that_were_asked_are_taken():
    selector, view = FedCs(10.0), view_of(40)
    asked = selector.probe(view, rng(1)).client
    silent = view_of(40, answers=answers_of([]))
    assert selector.select(silent, rng(2)).client.tolist() == sorted(asked.tolist())
    assert FedCs(10.0).select(view, rng(3)).client.size == 4
