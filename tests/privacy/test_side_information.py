"""Numbers that clients send beside updates: their noise, what it costs, and that nothing leaves a client exactly."""

import math
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from fedsim import simulate
from fedsim.errors import PartError, SelectorError
from fedsim.privacy.side_information import ExactNumbers, LaplaceNumbers, released_numbers
from fedsim.registry import Component
from fedsim.selectors import Probe, PublishedSelector
from fedsim.selectors.baselines import Uniform
from tests.support.short_runs import PRIVATE

SCENARIO, FIRST = PRIVATE, 200 * (1 - math.exp(-0.04))
"""The first term of the budget."""


class Curious(PublishedSelector):
    """Takes the first clients, and keeps all that its objects are told: a run makes one of its own."""

    needs = ("loss", "accuracy_gain")
    told: ClassVar[list] = []

    def select(self, view, rng):
        return view.client[:4]

    def observe(self, reports):
        self.told.append({name: reports.measured[name].copy() for name in self.needs})


def told(**tables):
    Curious.told.clear()
    history = simulate(SCENARIO.replace({"selector": Curious(), **tables}))
    return list(Curious.told), history


def test_exact_numbers_are_those_of_a_run_without_privacy_in_the_first_round():
    """All clients start from the same model then."""
    exact, history = told(**{"privacy.side_information": "exact"})
    plain, _ = told(privacy=None)
    for name in Curious.needs:
        np.testing.assert_array_equal(exact[0][name], plain[0][name])
    assert history.notes[0].startswith("side information not private: clients send numbers as they are (loss, accur")
    spent = history.participations.to_pandas().groupby("client").epsilon.sum()
    assert spent.to_numpy() == pytest.approx(200 * (1 - math.exp(-0.12))), "updates have the whole budget"


def test_by_default_no_number_leaves_a_client_as_it_is():
    """The budget buys noise that depends on epsilon; the sum of a client's costs is that of three first terms."""
    plain, _ = told(privacy=None)
    private, history = told(**{"privacy.budget.epsilon": 2e4})
    noisier, _ = told(**{"privacy.budget.epsilon": 1e-9})
    for name in Curious.needs:
        for some in (private, noisier):
            assert not np.intersect1d(some[0][name], plain[0][name]).size
        assert not np.array_equal(private[0][name], noisier[0][name])
    spent = history.participations.to_pandas().groupby("client").epsilon.sum()
    assert spent.to_numpy() == pytest.approx(2e4 * (1 - math.exp(-0.12)))
    assert not history.notes


def test_every_answer_to_a_question_for_losses_is_charged():
    """Of 12 clients 8 are asked and 4 take part: a tenth of the term for each answer, nine tenths for each update."""
    asking = {"kind": "pow-d", "cohort": 4, "candidates": 8}
    history = simulate(SCENARIO.replace({"selector": asking, "rounds.count": 1}))
    asked, took_part = history.probes.to_pandas(), history.participations.to_pandas()
    assert asked.epsilon.to_numpy() == pytest.approx([0.1 * FIRST] * 8)
    assert took_part.epsilon.to_numpy() == pytest.approx([0.9 * FIRST] * 4)
    assert history.column("rounds", "largest_leakage")[-1] == pytest.approx(FIRST)
    free = simulate(SCENARIO.replace({"selector": {"kind": "fedcs", "deadline_s": 30.0}, "rounds.count": 1}))
    assert not free.probes.to_pandas().epsilon.any(), "times tell nothing of the data"


def test_a_question_for_losses_that_the_selector_does_not_state_is_refused():
    class Silent(Curious):
        def probe(self, view, rng):
            return Probe(client=view.client[:1], asks="loss", up_bits=32.0)

    with pytest.raises(SelectorError, match=r"Silent\.probe asks for losses in a run with privacy\n  allowed: only"):
        simulate(SCENARIO.replace({"selector": Silent()}))
    assert simulate(SCENARIO.replace({"selector": Silent(), "privacy": None})).rounds.num_rows == 3


def test_a_run_about_timing_only_has_no_numbers_but_costs():
    _, history = told(learning={"kind": "none", "model_bits": 1e4, "samples_per_client": 10}, **{"rounds.count": 1})
    assert history.participations.to_pandas().epsilon.to_numpy() == pytest.approx([FIRST] * 4)


@pytest.mark.statistical
@pytest.mark.parametrize(("value", "epsilon"), [(0.0, 1.0), (5.0, 1.0), (2.0, 0.3), (1.0, 4.0)])
def test_the_law_of_a_private_loss(value, epsilon):
    """P(0) and P(5) are the tails of Laplace noise of scale 5 / epsilon.

    Binomial counts at 1e-6, and Kolmogorov-Smirnov between the ends.
    """
    size, rng = 5_000, np.random.default_rng(1)
    sent = np.array([LaplaceNumbers().release("loss", value, epsilon, rng) for _ in range(size)])
    law = stats.laplace(value, 5.0 / epsilon)
    for end, share in ((0.0, law.cdf(0.0)), (5.0, law.sf(5.0))):
        assert stats.binomtest(int((sent == end).sum()), size, share).pvalue > 1e-6
    inside = sent[(sent > 0) & (sent < 5)]
    between = law.cdf(5.0) - law.cdf(0.0)
    assert stats.kstest(inside, lambda x: (law.cdf(x) - law.cdf(0.0)) / between).pvalue > 1e-6


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [
        ("loss", 7.0, 5.0),
        ("loss_rms", math.inf, 5.0),
        ("loss", math.nan, 5.0),
        ("loss", -1.0, 0.0),
        ("accuracy_gain", math.nan, -1.0),
        ("accuracy_gain", 0.25, 0.25),
    ],
)
def test_numbers_are_clipped(name, value, sent):
    """With epsilon 1e12 the noise is below 1e-9."""
    assert LaplaceNumbers().release(name, value, 1e12, np.random.default_rng(0)) == pytest.approx(sent, abs=1e-9)


def test_an_exhausted_budget_leaves_noise_alone():
    rng = np.random.default_rng(2)
    sent = {LaplaceNumbers().release("loss", 1.0, 0.0, rng) for _ in range(100)}
    assert sent == {0.0, 5.0}


def test_numbers_of_one_release_share_its_epsilon():
    class Spy(ExactNumbers):
        def release(self, name, value, epsilon, rng):
            return epsilon

    columns = {"loss": np.zeros(2), "accuracy_gain": np.zeros(2)}
    sent = released_numbers(Spy(), columns, [1.0, 3.0], [np.random.default_rng(0)] * 2)
    assert {name: column.tolist() for name, column in sent.items()} == {name: [0.5, 1.5] for name in columns}


class Lying(Component):
    share: float = 0.5

    def release(self, name, value, epsilon, rng):
        return math.nan


def test_a_randomiser_that_returns_no_number_is_named():
    with pytest.raises(PartError, match=r"Lying\.release returned nan"):
        simulate(SCENARIO.replace({"selector": Curious(), "privacy.side_information": Lying()}))


@pytest.mark.parametrize("policy", ["synchronous", "fedbuff"])
def test_a_client_with_too_little_budget_left_is_no_candidate(policy):
    """Each of 12 clients has 200 e^(-0.04 n) left after n updates: at most 3 updates begin with 180 or more left."""
    rounds = {"count": 30, "policy": {"kind": "fedbuff", "buffer": 2, "concurrency": 4}} if policy == "fedbuff" else {}
    history = simulate(SCENARIO.replace({"privacy.least_epsilon": 180.0, "rounds": {"count": 30, **rounds}, "seed": 3}))
    sent = history.participations.to_pandas()
    assert (sent.outcome == "delivered").all()
    assert sorted(sent.groupby("client").size()) == [3] * 12
    assert "no client has 180 epsilon of its privacy budget left, the least of a candidate" in history.notes[-1]
    size = "9 of 30 rounds with cohorts of 4" if policy == "synchronous" else "18 of 30 rounds with buffers of 2"
    foreseen = [f"privacy.budget pays for 3 updates of a client: about {size}"]
    assert [note for note in history.notes[:-1] if "noise is larger" not in note] == foreseen


def test_a_selector_sees_the_budget_in_every_view():
    seen = []

    class Looking(Uniform):
        def select(self, view, rng):
            seen.append((view.privacy_budget, float(view.privacy_spent.max())))
            return super().select(view, rng)

    simulate(SCENARIO.replace({"selector": Looking(4), "rounds.count": 2}))
    assert [budget for budget, _ in seen] == [200.0, 200.0]
    assert [spent for _, spent in seen] == [0.0, pytest.approx(FIRST)]
