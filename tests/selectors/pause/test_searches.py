"""Every way to search for PAUSE's cohort, the Genie, BSFL, and what they share, against numbers worked by hand."""

import itertools
import math

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.selectors.pause import enumeration as pause_enumeration
from fedsim.selectors.pause.energy import Terms
from fedsim.selectors.pause.enumeration import enumerated_cohort
from fedsim.selectors.pause.genie import PauseGenie, largest_reward_gap, least_difference, regret_bound
from fedsim.selectors.pause.sa_pause import SaPause, VanillaSaPause
from tests.support.families import by_default
from tests.support.views import play, reports_of, view_of


def test_energy_and_reward_by_hand():
    ucb, g, p = np.array([0.9, 0.6, 0.4]), np.array([0.02, 0.3, -0.1]), np.array([1.0, 0.5, 0.8])
    terms = Terms(np.arange(3), ucb, g, p, alpha=2.0, gamma=4.0, m=2)
    # (18) of {0, 1}: 0.6 + 2/2 (0.02 + 0.3) + 4/2 (1 + 0.5) = 3.92; (9) with 0.1 and 0.25 s: 0.05/0.25 + 0.32 + 3.
    assert terms.energy(np.array([0, 1])) == pytest.approx(3.92)
    assert terms.reward(np.array([0, 1]), min(0.05 / 0.1, 0.05 / 0.25)) == pytest.approx(3.52)


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
def test_a_warm_start_begins_at_the_last_cohort(kind):
    """One iteration changes one client at most; from a random set four of 200 would hardly ever be the same."""
    cold, warm = ([], [])
    for start, shared in (("random", cold), ("last", warm)):
        cohorts, _ = play(kind(4, iterations=1, start=start), 80, 200, np.full(200, 0.3))
        shared += [len(set(a) & set(b)) for a, b in itertools.pairwise(map(np.ndarray.tolist, cohorts[49:]))]
    assert min(warm) >= 3
    assert max(cold) < 3


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


@pytest.mark.statistical
@pytest.mark.parametrize("kappa", [1.0, pytest.param(3.0, marks=pytest.mark.slow)])
def test_first_temperature_of_sa_pause(kappa):
    """The gap of two sets is C itself, and tau_1 = C / (kappa log 2): a worse one is accepted with 2^-kappa."""
    share = moves_down(SaPause(1, alpha=2.0, kappa=kappa, start="last"), gap=0.5, generalisation_gap=0.2)
    assert abs(share - 2**-kappa) < 5 * math.sqrt(2**-kappa / 600)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("alpha", "gamma", "kappa", "c"),
    by_default([(2, 1, 1, 6), (0.5, 0, 1, 2), (0, 3, 1, 4), (1, 1, 2, 4)], [(2, 1, 1, 6), (1, 1, 2, 4)]),
)
def test_first_temperature_of_vanilla_sa(alpha, gamma, kappa, c):
    """C = 2 alpha + gamma + 1; a gap of C is accepted with exp(-kappa log 2)."""
    selector = VanillaSaPause(1, alpha=alpha, gamma=gamma, kappa=kappa, start="last")
    expected = 2**-kappa
    assert abs(moves_down(selector, gap=c, generalisation_gap=0.0) - expected) < 5 * math.sqrt(expected / 600)


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
