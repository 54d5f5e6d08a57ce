"""Curves that begin at time 0, seconds to an accuracy, and means over time, worked by hand."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.history import Recorder, RoundEnd
from fedsim.history.tables import Tables

ROUND = dict.fromkeys(("candidates", "selected", "delivered", "late", "dropped", "stale_used", "largest_leakage"), 0)


def recorded(accuracies, first=0):
    """Return a history of rounds of 2 s, with accuracies after the rounds from a first one on; 0 is before all."""
    recorder = Recorder("hand")
    for number in range(1, len(accuracies) + first):
        times = {"start_s": 2.0 * number - 2, "end_s": 2.0 * number, "duration_s": 2.0}
        row = {"round": number, "model_version": number, "ended_by": RoundEnd.ENOUGH}
        recorder.add_round({**ROUND, **times, **row})
    for number, accuracy in enumerate(accuracies, start=first):
        recorder.add_evaluation(round=number, time_s=2.0 * number, model_version=number, accuracy=accuracy, loss=1.0)
    return recorder.history()


HISTORY = recorded([0.1, 0.5, 0.3, 0.7])


def test_a_curve_begins_at_time_0():
    time_s, accuracy = HISTORY.curve()
    assert (time_s.tolist(), accuracy.tolist()) == ([0, 2, 4, 6], [0.1, 0.5, 0.3, 0.7])
    assert HISTORY.curve("round", "loss")[0].tolist() == [0, 1, 2, 3]


def test_the_first_model_enters_no_mean():
    assert HISTORY.curve(smoothing=2)[1].tolist() == pytest.approx([0.1, 0.5, 0.4, 0.5])
    assert HISTORY.time_to_accuracy(0.5, smoothing=2) == 2.0


def test_a_first_model_that_reaches_the_target_does_so_at_0_s():
    assert HISTORY.time_to_accuracy(0.1) == 0.0
    assert HISTORY.time_to_accuracy(0.2) == 2.0


def test_the_mean_over_time_is_the_area_of_steps_over_the_time():
    """0.1, 0.5 and 0.3 hold for 2 s each; the value at the end holds for no time."""
    assert HISTORY.mean_over_time() == pytest.approx((0.1 + 0.5 + 0.3) / 3)
    assert HISTORY.mean_over_time(until_s=3.0) == pytest.approx((0.1 * 2 + 0.5 * 1) / 3)
    assert HISTORY.mean_over_time(until_s=10.0) == pytest.approx((0.1 * 2 + 0.5 * 2 + 0.3 * 2 + 0.7 * 4) / 10)
    assert HISTORY.mean_over_time("loss") == 1.0


def test_without_an_evaluation_at_time_0_the_mean_begins_with_the_first_one():
    later = recorded([0.5, 0.3, 0.7], first=1)
    assert later.mean_over_time() == pytest.approx((0.5 + 0.3) / 2)
    assert later.mean_over_time(until_s=2.0) is None
    assert Recorder("empty").history().mean_over_time() is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.integers(1, 30))
def test_smoothed_values_after_rounds_are_those_without_an_evaluation_at_time_0(accuracies, window):
    with_start, without = recorded(accuracies), recorded(accuracies[1:], first=1)
    np.testing.assert_array_equal(with_start.curve(smoothing=window)[1][1:], without.curve(smoothing=window)[1])


def test_a_null_among_labels_is_none():
    """Arrow's own conversion gives the last label."""
    labels = pa.DictionaryArray.from_arrays(pa.array([None, 0, None], pa.int8()), pa.array(["downlink", "compute"]))
    table = pa.table({"cut_in": labels})
    assert Tables("hand", table, table, table).column("participations", "cut_in").tolist() == [None, "downlink", None]
