"""The spread of accuracies over clients: by hand, and as laws."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.errors import RunError
from fedsim.history import Recorder
from fedsim.history.fairness import Spread, last_accuracies, last_spread


def history(*evaluations):
    recorder = Recorder("hand")
    for number, accuracies in evaluations:
        for client, accuracy in enumerate(accuracies):
            row = {"samples": 0}
            if accuracy is not None:
                row = {"samples": 5, "accuracy": accuracy, "loss": 1.0, "metrics": {"macro-f1": accuracy / 2}}
            recorder.add_row("client_evaluations", round=number, client=client, **row)
    return recorder.history()


def test_a_spread_by_hand():
    """Of 0.2 and 0.6: mean 0.4, deviation 0.2, Jain's index 0.8^2 / (2 * 0.4) = 0.8; a tenth is one client."""
    assert Spread.of(np.array([0.6, 0.2])) == pytest.approx((2, 0.4, 0.2, 0.04, 0.2, 0.6, 0.8))


def test_deciles_are_means_of_a_tenth_of_the_clients_rounded_up():
    accuracy = np.arange(20)[::-1] / 20
    assert Spread.of(accuracy).worst_decile == pytest.approx((0 + 0.05) / 2)
    assert Spread.of(accuracy).best_decile == pytest.approx((0.9 + 0.95) / 2)
    assert Spread.of(np.append(accuracy, 1.0)).worst_decile == pytest.approx((0 + 0.05 + 0.1) / 3)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=40), st.floats(0.1, 1.0))
def test_laws_of_a_spread(values, factor):
    found, scaled = Spread.of(np.array(values)), Spread.of(np.array(values) * factor)
    assert 1 / len(values) - 1e-12 <= found.jain <= 1 + 1e-12
    assert scaled.jain == pytest.approx(found.jain)
    assert scaled.std == pytest.approx(found.std * factor, abs=1e-12)
    assert found.worst_decile <= found.mean + 1e-12
    assert found.mean <= found.best_decile + 1e-12
    squares = found.variance + found.mean**2
    assert found.jain == pytest.approx(found.mean**2 / squares), "Jain's index is 1 / (1 + (std / mean)^2)"


def test_equal_accuracies_are_fair_also_those_of_0():
    assert Spread.of(np.zeros(3)).jain == 1.0
    assert Spread.of(np.full(3, 0.25)).jain == pytest.approx(1.0)


def test_a_client_whose_scores_are_no_numbers_leaves_no_spread():
    """In the second evaluation client 1 has no accuracy, though it has samples."""
    run = history((2, [0.5, 0.7]), (4, [1.0, np.nan]))
    assert run.fairness().select(["round", "mean", "jain"]).to_pylist() == [
        {"round": 2, "mean": 0.6, "jain": pytest.approx(1.2**2 / (2 * 0.74))},
        {"round": 4, "mean": None, "jain": None},
    ]
    assert last_spread(run, "accuracy") is None
    assert last_accuracies(run)[1].tolist() == [1.0]


def test_each_evaluation_has_a_row_and_clients_without_samples_do_not_count():
    run = history((2, [0.5, None, 0.5]), (4, [1.0, None, 0.5]))
    table = run.fairness()
    assert table.column_names == ["round", *Spread._fields]
    assert table.column("round").to_pylist() == [2, 4]
    assert table.column("clients").to_pylist() == [2, 2]
    assert table.column("mean").to_pylist() == [0.5, 0.75]
    number, accuracy = last_accuracies(run)
    assert (number, accuracy.tolist()) == (4, [1.0, 0.5])
    assert run.client_evaluations.column("accuracy").null_count == 2


def test_other_quantities_have_a_spread_too():
    run = history((2, [0.5, None, 0.5]), (4, [1.0, None, 0.5]))
    assert run.fairness("loss").column("mean").to_pylist() == [1.0, 1.0]
    assert run.fairness("macro-f1").column("mean").to_pylist() == [0.25, 0.375]
    with pytest.raises(RunError, match="hand: this run has no metric 'f2'; it has accuracy, loss, macro-f1"):
        run.fairness("f2")


def test_a_run_without_such_evaluations_says_so():
    run = Recorder("hand").history()
    assert last_accuracies(run)[1].size == 0
    with pytest.raises(RunError, match=r"hand: has no accuracies of clients; a run with results\.evaluate_clients"):
        run.fairness()
