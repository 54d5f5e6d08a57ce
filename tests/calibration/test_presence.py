"""Losses and absences by hand."""

import numpy as np
import pytest

from fedsim.calibration.log import Log
from fedsim.calibration.presence import presence
from fedsim.errors import DataError
from fedsim.history.outcomes import NOT_CUT, Outcome


def log(spent_s, lost_in, candidates=None):
    """Return a log of participations with times by phase, of which some were lost in a phase."""
    spent_s = np.array(spent_s, dtype=np.float64).T
    cut_in = np.array(lost_in)
    size = cut_in.size
    zeros = np.zeros(size, dtype=np.int64)
    return Log(
        client=zeros,
        group=zeros,
        names=("0",),
        groups=("all",),
        round=None,
        start_s=None,
        end_s=None,
        spent_s=spent_s,
        cut_in=cut_in,
        work=np.ones(size),
        samples=None,
        outcome=np.where(cut_in == NOT_CUT, Outcome.DELIVERED, Outcome.DROPPED).astype(np.int64),
        candidates=np.array([] if candidates is None else candidates),
        notes=(),
    )


def test_one_rate_is_losses_over_time_and_its_error_that_over_the_root_of_the_losses():
    found = presence(log([[1, 2, 1]] * 20, [NOT_CUT] * 16 + [0, 1, 1, 2]), 1)
    assert found.dropout == {"kind": "hazard", "rate_per_s": pytest.approx(4 / 80)}
    assert found.errors == {"rate_per_s": pytest.approx(4 / 80 / 2)}
    assert found.availability == {"kind": "always"}


def test_losses_in_one_phase_alone_have_a_rate_of_that_phase():
    found = presence(log([[1, 2, 1]] * 20, [NOT_CUT] * 11 + [2] * 9), 1)
    rates = {"downlink_per_s": 0.0, "compute_per_s": 0.0, "uplink_per_s": pytest.approx(9 / 20)}
    assert found.dropout == {"kind": "phase-hazard", **rates}
    assert found.errors == {"uplink_per_s": pytest.approx(9 / 20 / 3)}


def test_no_losses_are_no_dropout():
    found = presence(log([[1, 1, 1]] * 10, [NOT_CUT] * 10, [4, 4]), 4)
    assert (found.dropout, found.availability, found.share) == ({"kind": "never"}, {"kind": "always"}, 1.0)


def test_absent_clients_that_never_leave_are_drawn_and_others_go_on_and_off():
    absent = presence(log([[1, 1, 1]] * 10, [NOT_CUT] * 10, [3, 5]), 8)
    assert absent.availability == {"kind": "bernoulli", "probability": 0.5}
    # Two of sixteen looks: sqrt(0.5 0.5 / 16).
    assert absent.errors == {"probability": pytest.approx(0.125)}
    leaving = presence(log([[1, 1, 1]] * 10, [NOT_CUT] * 9 + [1], [2, 2]), 8)
    # One loss in 30 s; there for a quarter of the time.
    assert leaving.availability == {
        "kind": "markov",
        "mean_on_s": pytest.approx(30.0),
        "mean_off_s": pytest.approx(90.0),
    }
    assert leaving.dropout == {"kind": "never"}


def test_losses_without_any_time_are_refused():
    with pytest.raises(DataError, match="there is no rate of losses"):
        presence(log([[0, 0, 0]] * 10, [NOT_CUT] * 9 + [1]), 1)
