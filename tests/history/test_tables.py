"""Curves that begin at time 0, seconds to a target, and means over time, worked by hand."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fedsim.errors import RunError
from fedsim.history import Recorder, RoundEnd
from fedsim.history.analyses.gaps import value_at
from fedsim.history.tables import Tables

ROUND = dict.fromkeys(("candidates", "selected", "delivered", "late", "dropped", "stale_used", "largest_leakage"), 0)


def history_of(accuracies, versions):
    """Return a history of rounds of 2 s with their models, and accuracies after some of them; 0 is before all."""
    recorder = Recorder("hand")
    for number, version in enumerate(versions, start=1):
        times = {"start_s": 2.0 * number - 2, "end_s": 2.0 * number, "duration_s": 2.0}
        row = {"round": number, "model_version": version, "ended_by": RoundEnd.ENOUGH}
        recorder.add_row("rounds", **{**ROUND, **times, **row})
    for number, accuracy in accuracies.items():
        row = {"round": number, "model_version": [0, *versions][number], "loss": 1.0}
        recorder.add_row("evaluations", **row, time_s=2.0 * number, accuracy=accuracy)
    return recorder.history()


def recorded(accuracies, first=0):
    """Return a history whose rounds make a model each, with accuracies after those from a first one on."""
    return history_of(dict(enumerate(accuracies, start=first)), range(1, len(accuracies) + first))


HISTORY = recorded([0.1, 0.5, 0.3, 0.7])


def test_a_curve_begins_at_time_0():
    time_s, accuracy = HISTORY.curve()
    assert (time_s.tolist(), accuracy.tolist()) == ([0, 2, 4, 6], [0.1, 0.5, 0.3, 0.7])
    assert HISTORY.curve("round", "loss")[0].tolist() == [0, 1, 2, 3]


def test_the_mean_over_time_is_the_area_of_steps_over_the_time():
    """0.1, 0.5 and 0.3 hold for 2 s each; the value at the end holds for no time."""
    assert HISTORY.mean_over_time() == pytest.approx((0.1 + 0.5 + 0.3) / 3)
    assert HISTORY.mean_over_time(until_s=3.0) == pytest.approx((0.1 * 2 + 0.5 * 1) / 3)
    assert HISTORY.mean_over_time(until_s=10.0) == pytest.approx((0.1 * 2 + 0.5 * 2 + 0.3 * 2 + 0.7 * 4) / 10)
    assert HISTORY.mean_over_time("loss") == 1.0


def test_a_model_that_is_evaluated_again_counts_as_it_was_then():
    """No round after the first one makes a model: its accuracy is 0.5 from 2 s on, and 0.3 from 4 s on."""
    again = history_of({0: 0.1, 1: 0.5, 2: 0.3, 3: 0.3}, [1, 1, 1])
    assert again.mean_over_time() == pytest.approx((0.1 + 0.5 + 0.3) / 3)


def test_without_an_evaluation_at_time_0_the_mean_begins_with_the_first_one():
    later = recorded([0.5, 0.3, 0.7], first=1)
    assert later.mean_over_time() == pytest.approx((0.5 + 0.3) / 2)
    assert later.mean_over_time(until_s=2.0) is None
    assert Recorder("empty").history().mean_over_time() is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.integers(1, 30))
def test_smoothed_values_after_rounds_are_those_without_an_evaluation_at_time_0(accuracies, window):
    with_start, without = recorded(accuracies), recorded(accuracies[1:], first=1)
    np.testing.assert_array_equal(with_start.curve(smoothing=window)[1][1:], without.curve(smoothing=window)[1])


@pytest.mark.parametrize(
    ("wanted", "first_s", "held_s"),
    [
        ({"above": 0.5}, 2.0, None),
        ({"above": "30 %"}, 2.0, 2.0),
        ({"above": 0.1}, 0.0, 0.0),
        ({"above": "71%"}, None, None),
    ],
)
def test_a_target_is_reached_first_and_then_held(wanted, first_s, held_s):
    """Accuracies 0.1, 0.5, 0.3 and 0.7 at 0, 2, 4 and 6 s; two in a row are to hold it."""
    assert HISTORY.time_to(**wanted) == HISTORY.time_to_accuracy(wanted["above"]) == first_s
    assert HISTORY.reached(**wanted, held=2) == (first_s, first_s, held_s)


def test_a_target_may_lie_below_and_be_of_any_metric():
    recorder = Recorder("hand")
    for number, error in enumerate([3.0, 0.9, 0.7, 0.8]):
        row = {"round": number, "time_s": 1.5 * number, "model_version": number}
        recorder.add_row("evaluations", **row, loss=error / 3, metrics={"mse": error})
    history = recorder.history()
    assert (history.time_to("mse", below=0.7), history.time_to("mse", below=0.6)) == (3.0, None)
    assert history.time_to("loss", below=0.3) == 1.5
    assert history.reached("mse", below=0.9, held=3).held_s == 1.5
    with pytest.raises(RunError, match="has no metric 'mae'; it has accuracy, loss, mse"):
        history.time_to("mae", below=1.0)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"above": 80}, "80 is not allowed; it is a share of at most 1: 80 % is 0.8 or '80 %'"),
        ({"above": 0.0}, "above: 0.0 is not allowed; an accuracy is above 0"),
        ({"above": "good"}, "above: 'good' is not allowed; allowed: an accuracy as 0.8 or '80 %'"),
        ({"above": 0.5, "below": 0.6}, "it must be one of them"),
        ({"above": 0.5, "held": 0}, "held: 0 is not allowed"),
        ({"metric": "loss", "below": float("nan")}, "below: nan is not allowed; allowed: a finite number for loss"),
    ],
)
def test_a_target_that_is_none_is_refused_with_the_reason(wanted, why):
    with pytest.raises(RunError, match=re.escape(why)):
        HISTORY.reached(**wanted)


def sparse(every):
    """Return six rounds of 2 s whose models have 0, 0.1, 0.3, 0.2, 0.6, 0.5 and 0.7; each n-th one is evaluated."""
    accuracies = dict(enumerate([0.0, 0.1, 0.3, 0.2, 0.6, 0.5, 0.7]))
    return history_of({number: accuracies[number] for number in range(0, 7, every)}, range(1, 7))


def test_a_mean_over_models_that_were_not_evaluated_has_bounds():
    """Every third: 0 for 2 s, between 0 and 0.2 for 4 s, 0.2 for 2 s, between 0.2 and 0.7 for 4 s; 12 s in all."""
    assert sparse(1).mean_over_time() == pytest.approx(1.7 / 6)
    assert sparse(3).mean_over_time() is None
    assert sparse(3).mean_over_time_bounds() == pytest.approx(((0.4 + 0.8) / 12, (0.8 + 0.4 + 2.8) / 12))
    assert sparse(3).mean_over_time_bounds(until_s=2.0) == (0.0, 0.0)
    assert sparse(3).mean_over_time("duration") == 2.0


def test_a_time_to_a_target_says_from_when_on_models_were_not_evaluated():
    """Between 6 s, where the third model has 0.2, and 12 s, where the sixth has 0.7, no model was evaluated."""
    assert sparse(1).reached(above=0.6) == (8.0, 8.0, 8.0)
    assert sparse(3).reached(above=0.6) == (12.0, 8.0, 12.0)
    assert recorded([0.9, 0.9], first=2).reached(above=0.8) == (4.0, 2.0, 4.0), "the first round's was not evaluated"
    assert value_at(sparse(3), "accuracy", 7.9) == 0.2
    assert value_at(sparse(3), "accuracy", 8.0) is None


def test_a_round_without_a_new_model_leaves_no_gap():
    """The third round has the second's model, which is evaluated at 6 s only: 0 for 2 s, 0 to 0.4 for 2 s, 0.4."""
    history = history_of({0: 0.0, 3: 0.4}, [1, 2, 2])
    assert history.mean_over_time_bounds() == pytest.approx((0.8 / 6, 1.6 / 6))
    assert value_at(history, "accuracy", 5.0) == 0.4


def test_a_null_among_labels_is_none():
    """Arrow's own conversion gives the last label."""
    labels = pa.DictionaryArray.from_arrays(pa.array([None, 0, None], pa.int8()), pa.array(["downlink", "compute"]))
    table = pa.table({"cut_in": labels})
    assert Tables("hand", table, table, table).column("participations", "cut_in").tolist() == [None, "downlink", None]
