"""Shares of labels that clients declare: their noise, what it costs, and that they leave no client as they are."""

import itertools
import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from fedsim import simulate
from fedsim.errors import PartError, ScenarioError
from fedsim.privacy import ExactHistograms, LaplaceCounts, LaplaceShares
from fedsim.registry import Component
from fedsim.selectors import PublishedSelector
from tests.support.short_runs import PRIVATE

SCENARIO = PRIVATE.replace(
    {
        "crowd.clients": 6,
        "learning.data": {"kind": "digits", "train_limit": 240},
        "learning.split": {"kind": "dirichlet", "alpha": 0.3},
        "rounds.count": 2,
        "selector.cohort": 3,
    }
)


class Labelled(PublishedSelector):
    """Takes the last candidates, and keeps what its objects are shown."""

    uses_labels = True
    seen: ClassVar[list] = []

    def select(self, view, rng):
        self.seen.append((view.label_histogram, view.privacy_spent.copy()))
        return view.client[-3:]


class Unlabelled(Labelled):
    uses_labels = False


def seen(selector=Labelled, **tables):
    Labelled.seen.clear()
    history = simulate(SCENARIO.replace({"selector": selector(), **tables}))
    return list(Labelled.seen), history


def counts_of(history):
    return np.array(history.clients.column("labels").to_pylist())


def test_without_privacy_the_shares_are_those_of_the_data():
    for tables in ({"privacy": None}, {"privacy.label_histograms": "exact"}):
        ((first, _), *_), history = seen(**tables)
        counts = counts_of(history)
        np.testing.assert_allclose(first, counts / counts.sum(axis=1, keepdims=True), rtol=1e-15)
        assert not first.flags.writeable
        assert bool(history.notes) == ("privacy" not in tables)
    assert "clients send numbers as they are (shares of labels)" in history.notes[0]


def test_by_default_the_shares_are_private_and_cost_a_tenth_of_the_budget_once():
    """Then 180 are left for updates: 180 (1 - e^-0.04) for the first one."""
    views, history = seen()
    exact = counts_of(history) / counts_of(history).sum(axis=1, keepdims=True)
    assert not np.isclose(views[0][0], exact).all(axis=1).any()
    np.testing.assert_allclose(views[0][0].sum(axis=1), 1.0)
    np.testing.assert_array_equal(views[0][0], views[1][0]), "declared once"
    assert views[0][1].tolist() == [20.0] * 6, "all clients have paid before the first round"
    first = 180 * -math.expm1(-0.04)
    assert views[1][1].tolist() == pytest.approx([20.0] * 3 + [20.0 + first] * 3)
    assert history.participations.to_pandas().epsilon[:3].tolist() == pytest.approx([first] * 3)
    assert history.column("rounds", "largest_leakage")[0] == pytest.approx(20.0 + first)
    assert not any("not private" in note for note in history.notes)


def test_its_own_epsilon_and_the_share_of_numbers_are_divided_from_the_rest():
    """50 for the shares; of the other 150, a tenth for numbers."""

    class Both(Labelled):
        needs = ("loss",)

    _, history = seen(Both, **{"privacy.label_histograms": {"kind": "laplace", "epsilon": 50.0}})
    first = history.participations.to_pandas().epsilon[:3]
    assert first.to_numpy() == pytest.approx(150 * -math.expm1(-0.04)), "0.9 and 0.1 of it"
    assert history.column("rounds", "largest_leakage")[0] == pytest.approx(50 + 150 * -math.expm1(-0.04))


TIMES = {"learning": {"kind": "none", "model_bits": 1e4, "samples_per_client": 10}}


@pytest.mark.parametrize(("selector", "tables"), [(Unlabelled, {}), (Labelled, TIMES)], ids=["unasked", "no labels"])
def test_where_no_shares_are_asked_for_or_there_are_none_nothing_is_paid(selector, tables):
    views, history = seen(selector, **tables)
    assert views[0][0] is None
    assert views[0][1].tolist() == [0.0] * 6
    assert history.column("rounds", "largest_leakage")[0] == pytest.approx(200 * -math.expm1(-0.04))


def test_a_cost_of_the_whole_budget_is_refused():
    dear = {"privacy.label_histograms": {"kind": "laplace", "epsilon": 200.0}}
    with pytest.raises(ScenarioError, match=r"label_histograms: a cost of 200\.0 epsilon .* the budget of 200\.0"):
        seen(**dear)


def test_a_budget_without_an_end_needs_an_epsilon_of_its_own():
    unlimited = {"privacy.budget": {"kind": "unlimited", "epsilon": 2.0}}
    with pytest.raises(ScenarioError, match=r"label_histograms: a cost of inf epsilon .* state an epsilon"):
        seen(**unlimited)
    views, history = seen(**unlimited, **{"privacy.label_histograms": {"kind": "laplace-counts", "epsilon": 0.5}})
    assert views[1][1].tolist() == [0.5] * 3 + [2.5] * 3
    assert history.column("rounds", "largest_leakage").tolist() == [2.5, 4.5]


class Lying(Component):
    def cost(self, budget):
        return 1.0

    def release(self, counts, epsilon, rng):
        return np.zeros(3)


def test_a_randomiser_that_returns_no_histogram_is_named():
    with pytest.raises(PartError, match=r"Lying\.release returned .*3"):
        seen(**{"privacy.label_histograms": Lying()})


COUNTS = arrays(np.int64, st.integers(1, 6), elements=st.integers(0, 50))


@given(counts=COUNTS, epsilon=st.sampled_from([0.0, 1e-320, 0.5, 20.0, 1e12]), seed=st.integers(0, 99))
def test_shares_are_at_least_0_and_add_up_to_1(counts, epsilon, seed):
    for part in (LaplaceShares(), LaplaceCounts(), ExactHistograms()):
        found = part.release(counts, epsilon, np.random.default_rng(seed))
        assert found.shape == counts.shape
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(1.0)
        if epsilon == 1e12 and counts.any():
            np.testing.assert_allclose(found, counts / counts.sum(), atol=1e-8)


def test_the_noise_by_hand():
    """Scale 2 / epsilon on shares, 1 / epsilon on counts; below 0 counts as 0, and the rest is scaled to 1."""
    counts = np.array([3, 1, 0])
    laws = (LaplaceShares(), counts / 4, 0.5), (LaplaceCounts(), counts, 0.25)
    for (part, plain, scale), seed in itertools.product(laws, range(9)):
        noisy = np.maximum(plain + np.random.default_rng(seed).laplace(0.0, scale, 3), 0.0)
        found = part.release(counts, 4.0, np.random.default_rng(seed))
        np.testing.assert_allclose(found, noisy / noisy.sum(), rtol=1e-12)


def test_haccs_runs_with_private_labels_under_the_full_audit():
    history = simulate(SCENARIO.replace({"selector": {"kind": "haccs", "cohort": 2}, "results.audit": True}))
    assert history.rounds.num_rows == 2
