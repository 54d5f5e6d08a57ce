"""Every way to search for PAUSE's cohort, the Genie, BSFL, and what they share, against numbers worked by hand."""

import math

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.selectors.pause import enumeration as pause_enumeration
from fedsim.selectors.pause.energy import Terms
from fedsim.selectors.pause.enumeration import enumerated_cohort
from fedsim.selectors.pause.genie import PauseGenie, largest_reward_gap, least_difference, regret_bound
from fedsim.selectors.pause.sa_pause import SaPause, VanillaSaPause
from tests.support.views import reports_of, view_of


@pytest.mark.statistical
@pytest.mark.parametrize("chunk", [2, 2**15])
def test_enumeration_draws_among_equal_sets(chunk, monkeypatch):
    """{0, 1}, {0, 2} and {3, 4} tie: they overlap, and yet each is as likely, however many are looked at at once."""
    monkeypatch.setattr(pause_enumeration, "_CHUNK", chunk)
    ucb, draws, seen = np.array([1.0, 1.0, 1.0, 2.0, 2.0]), 3000, {}
    bonus, rng = np.array([2.0, 1.0, 1.0, 1.0, 1.0]), np.random.default_rng(5)
    # {0, 1} and {0, 2}: 1 + 3; {0, 3} and {0, 4}: 1 + 3; {3, 4}: 2 + 2.
    for _ in range(draws):
        members = tuple(enumerated_cohort(ucb, bonus, 2, rng).tolist())
        seen[members] = seen.get(members, 0) + 1
    assert set(seen) == {(0, 1), (0, 2), (0, 3), (0, 4), (3, 4)}
    five_sigma = 5 * math.sqrt(draws * 0.2 * 0.8)
    assert all(abs(count - draws / 5) < five_sigma for count in seen.values())


def test_enumeration_refuses_what_would_take_for_ever():
    with pytest.raises(SelectorError, match=r"53194089192720 sets of 15 among 60 candidates.*'pause'"):
        enumerated_cohort(np.ones(60), np.zeros(60), 15, np.random.default_rng(0))


@pytest.mark.parametrize("kind", [SaPause, VanillaSaPause])
def test_a_warm_start_knows_clients_by_their_ids_and_rounds_in_which_all_were_taken(kind):
    there, selector = np.arange(100, 140), kind(3, iterations=1, start="last")
    selector.observe(reports_of(np.arange(140), 0.3))

    def chosen(client):
        view = view_of(client, clients=140, round=50, participations=np.ones(len(client), dtype=np.int64))
        return set(selector.select(view, np.random.default_rng(0)).client.tolist())

    first = chosen(there)
    assert len(first & chosen(there)) >= 2  # one iteration, one other client at most
    assert chosen([131, 133, 137]) == {131, 133, 137}
    assert len({131, 133, 137} & chosen(there)) >= 2


def moves_down(selector, gap, generalisation_gap, walks=600):
    """The share of first moves from the better to the worse of two clients."""
    moved = 0
    for number in range(walks):
        latency, g = np.array([1.0 + gap, 1.0]), np.array([generalisation_gap, 0.0])
        terms = Terms(np.arange(2), latency, g, np.zeros(2), selector.alpha, selector.gamma, 1)
        selector._last = np.array([0])
        walk = selector.walk(terms, np.random.default_rng(number))
        walk.run(1)
        moved += walk.members == [1]
    return moved / walks


SLOW = pytest.mark.slow


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "options", "gap", "generalisation_gap"),
    [
        # The gap of two sets is C itself.
        (SaPause, {"alpha": 2.0}, 0.5, 0.2),
        pytest.param(SaPause, {"alpha": 2.0, "kappa": 3.0}, 0.5, 0.2, marks=SLOW),
        # C = 2 alpha + gamma + 1.
        (VanillaSaPause, {"alpha": 2, "gamma": 1}, 6, 0.0),
        (VanillaSaPause, {"alpha": 1, "gamma": 1, "kappa": 2}, 4, 0.0),
        pytest.param(VanillaSaPause, {"alpha": 0.5, "gamma": 0}, 2, 0.0, marks=SLOW),
        pytest.param(VanillaSaPause, {"alpha": 0, "gamma": 3}, 4, 0.0, marks=SLOW),
    ],
)
def test_first_temperatures(kind, options, gap, generalisation_gap):
    """With tau_1 = C / (kappa log 2) a set that is worse by C is accepted with 2^-kappa."""
    selector, chance = kind(1, **{"kappa": 1.0, **options}, start="last"), 2.0 ** -options.get("kappa", 1.0)
    assert abs(moves_down(selector, gap, generalisation_gap) - chance) < 5 * math.sqrt(chance / 600)


def test_the_genie_believes_what_it_is_told_and_needs_to_know():
    genie = PauseGenie(1, alpha=0.0, gamma=0.0, expected_reward=[0.2, 0.9, 0.4])
    assert genie.select(view_of(3), np.random.default_rng(0)).client.tolist() == [1]
    assert genie.latency(view_of([0, 2], clients=3)).tolist() == [0.2, 0.4]
    with pytest.raises(SelectorError, match=r"expected_reward: 2 numbers.*3 clients"):
        PauseGenie(1, expected_reward=[0.1, 0.2]).select(view_of(3), np.random.default_rng(0))
    with pytest.raises(SelectorError, match=r"expected_reward: 4 numbers.*3 clients of this server"):
        PauseGenie(1, expected_reward=[0.1, 0.2, 0.3, 0.4]).select(view_of(3), np.random.default_rng(0))


def test_the_bound_of_theorem_3_by_hand():
    mu = np.array([0.9, 0.5, 0.2])
    assert largest_reward_gap(2.0, 1.0, mu) == pytest.approx(2 * 2 + 1 + 0.7)
    assert least_difference(mu) == pytest.approx(0.3)
    # K (Delta + delta) (4 (m + 1) log n / delta^2 + 1 + 2 pi^2 / 3) with m = 2, delta 0.3, n = e and e^2.
    constant = 1 + 2 * 9.869604401089358 / 3
    expected = [3 * 6.0 * (12 / 0.09 + constant), 3 * 6.0 * (24 / 0.09 + constant)]
    bound = regret_bound(np.array([math.e, math.e**2]), 2, 2.0, 1.0, mu, 0.3)
    np.testing.assert_allclose(bound, expected, rtol=1e-12)
