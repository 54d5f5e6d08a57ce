"""The studies of PAUSE run, draw, and measure what they say."""

import itertools
import math
import re
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fedsim import simulate
from fedsim.selectors import Pause, Uniform
from tests.support.short_runs import TIMING
from tests.support.study_commands import SCENARIOS, printed

STUDIES = {
    "fig1.py": ([], {"fig1.png"}),
    "regret.py": (["--rounds", "30", "--seeds", "2"], {"regret.png", "regret_paper.png"}),
}


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(SCENARIOS / "pause")
    return import_module


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STUDIES))
def test_study_runs_and_draws(name, tmp_path):
    options, figures = STUDIES[name]
    told = printed(f"pause/{name}", tmp_path, *options, "--out", tmp_path / "out")
    assert all(str(tmp_path / "out" / figure) in told for figure in figures)
    assert {path.name for path in (tmp_path / "out").iterdir()} == figures


@pytest.mark.slow
def test_annealing_prints_its_tables(tmp_path):
    told = printed("pause/annealing.py", tmp_path, "--iterations", "90", "--rounds", "5")
    assert all(title in told for title in ("Energy gap in %", "vanilla, kappa 70", "in its own run"))
    assert "Chance of the best" in printed("pause/theorem4.py", tmp_path, "--iterations", "90")


@pytest.mark.slow
def test_neighbours_grow_as_table_i_says(tmp_path):
    """K squared for vanilla annealing, about K for Algorithm 2."""
    told = printed("pause/complexity.py", tmp_path, "--sets", "5").splitlines()[-1]
    powers = {name: float(power) for name, power in re.findall(r"(vanilla|random sets|walk) (\d\.\d+)", told)}
    assert powers == {"vanilla": 2.0, "random sets": pytest.approx(1.05, abs=0.1), "walk": pytest.approx(1.1, abs=0.2)}


class Told(Pause):
    def observe(self, reports):
        self.told = [*getattr(self, "told", ()), reports]
        super().observe(reports)


def test_rounds_are_those_of_the_papers_crowd(modules):
    """A selector meets the latencies of a run in which all clients take part, and the seconds of their sums."""
    crowd, selector = modules("crowds").Crowd(12), Told(4)
    seen = [(view.round, view.time_s, members.tolist()) for view, members in crowd.play(selector, 8, 5)]
    plain = simulate(TIMING.replace({"seed": 5, "crowd.clients": 12, "selector": "all"}))
    columns = [plain.column("participations", name).tolist() for name in ("client", "round", "uplink_s")]
    drawn = {(client, number): took_s for client, number, took_s in zip(*columns, strict=True)}
    for number, one in enumerate(selector.told, start=1):
        assert one.duration_s == pytest.approx([drawn[client, number] for client in one.client], rel=1e-12)
        assert one.delivered.all()
    assert [members for _, _, members in seen] == [one.client.tolist() for one in selector.told]
    ends_s = np.cumsum([max(one.duration_s) for one in selector.told])
    assert [time_s for _, time_s, _ in seen[1:]] == pytest.approx(ends_s[:-1])
    assert crowd.links(5).uplink_s(np.array([3]), 2, 0, 0)[0] == drawn[3, 2]


def expected_smallest(centre_s, std_s=0.05, floor_s=0.05):
    """E[floor / max(floor, X)] of the largest X, by its density: the sum over k of k's times the others' laws."""

    def density(x):
        below = norm.cdf(x, centre_s, std_s)
        return sum(norm.pdf(x, c, std_s) * np.delete(below, i).prod() for i, c in enumerate(centre_s))

    above, _ = quad(lambda x: floor_s / x * density(x), floor_s, centre_s.max() + 12 * std_s, limit=200)
    return float(norm.cdf(floor_s, centre_s, std_s).prod() + above)


def test_expected_rewards_in_closed_form(modules):
    crowd = modules("genie_settings").MARGIN
    centre_s = crowd.links().centre_s
    assert centre_s[[0, 2, 3, 11]] == pytest.approx([0.06, 0.08, 0.50 + 0.40 / 9, 0.90])
    for sets in (np.arange(12)[:, None], [[0, 2], [3, 11]]):
        expected = [expected_smallest(centre_s[members]) for members in sets]
        np.testing.assert_allclose(crowd.expected_smallest(sets), expected, rtol=1e-4)


def test_regret_is_nothing_for_the_genie_and_never_falls_by_its_measure(modules):
    regret = modules("genie_curves")
    for setting in modules("genie_settings").SETTINGS.values():
        genie = regret.follow(setting, setting.genie, 60, seed=0)
        uniform = regret.follow(setting, Uniform(3), 60, seed=0)
        assert np.all(genie[regret.MEASURE] == 0)
        assert all(np.all(np.diff(uniform[of]) >= -1e-12) for of in (regret.MEASURE, regret.SHORT, regret.GENIES))
        assert uniform[regret.MEASURE][-1] > 5
        assert np.all(uniform[regret.REGRET] < next(iter(setting.bounds(np.arange(1.0, 61.0)).values())))


@pytest.mark.slow
def test_regret_of_uniform_selection_worked_out_again(modules):
    """By enumeration and quadrature, from the cohorts alone; where sets tie by (10) the Genie may take any of them."""
    of, n, m = modules("genie_curves"), 12, 3
    setting = modules("genie_settings").SETTINGS["paper"]
    run, centre_s = of.follow(setting, Uniform(m), n, seed=4), setting.crowd.links().centre_s
    mu = [expected_smallest(centre_s[[k]]) for k in range(12)]
    smallest = {s: expected_smallest(centre_s[list(s)]) for s in itertools.combinations(range(12), m)}
    times = [0] * 12
    played = [members for _, members in setting.crowd.play(Uniform(m), n, 4)]
    gained = (np.diff(run[name], prepend=0.0) for name in (of.MEASURE, of.REGRET, of.SHORT))
    for t, (one, lost, regret, short) in enumerate(zip(played, *gained, strict=True), start=1):
        missing = [m / 12 - count / max(t - 1, 1) for count in times]
        g = [math.copysign(short**2, short) for short in missing]
        # (6) and (7): of a budget of 1 the i-th time costs (e^0.04 - 1) e^(-0.04 i).
        p = [1 - sum(math.expm1(0.04) * math.exp(-0.04 * i) for i in range(1, count + 1)) for count in times]
        bonus = [(100 * g[k] + 5 * p[k]) / m for k in range(12)]
        measure = {s: min(mu[k] for k in s) + sum(bonus[k] for k in s) for s in itertools.combinations(range(12), m)}
        own, best = tuple(one.tolist()), max(measure.values())
        earned = sum(bonus[k] for k in own) + smallest[own]
        could = [sum(bonus[k] for k in s) + smallest[s] for s, value in measure.items() if value > best - 1e-3]
        assert lost == pytest.approx(best - measure[own], abs=1e-3)
        assert min(could) - earned - 2e-3 < regret < max(could) - earned + 2e-3
        most = max(sum(bonus[k] for k in s) + smallest[s] for s in measure)
        assert short == pytest.approx(most - earned, abs=1e-3)
        for k in own:
            times[k] += 1


def test_means_errors_and_fits_by_hand(modules):
    curves = modules("genie_curves")
    mean, error = curves.mean_and_error([{"of": np.array([1.0, 2.0])}, {"of": np.array([3.0, 2.0])}], "of")
    assert (mean.tolist(), error.tolist()) == ([2.0, 2.0], [pytest.approx(1.0), 0.0])
    n = np.arange(1.0, 1001)
    curve = np.where(n < 100, 500.0, 7 + 3 * np.log(n))  # what comes before the last nine tenths is left out
    fitted, left = curves.fit(n, curve, "log n")
    assert fitted[99:] == pytest.approx(curve[99:])
    assert left == pytest.approx(0.0, abs=1e-20)
    assert curves.fit(n, 10 * curve, "n")[1] == pytest.approx(curves.fit(n, curve, "n")[1])
    assert curves.fit(n, curve, "n")[1] > 0.05


def test_neighbours_are_those_of_the_listed_chain(modules):
    """Of every set of three of twelve users, against all sets and their neighbours listed one by one."""
    complexity, law, rng = modules("complexity"), modules("annealing_chain"), np.random.default_rng(3)
    lists = rng.random((3, 12))
    terms = SimpleNamespace(
        latency=lists[0], privacy=lists[1], generalisation=lists[2], m=3, energy=lambda members: float(members.sum())
    )
    chain = law.chain_of(terms, np.arange(12))
    found = [complexity.neighbours(lists, members) for members in chain.sets]
    assert found == chain.joined.sum(axis=1).tolist()


def test_the_generalisation_reward_by_hand(modules):
    """(8) with m / K = 1/6: (1/6)^2 before any participation, 0 at one sixth, -(5/6)^2 where a user is always there."""
    share, reward = modules("fig1").curve(2.0)
    assert reward[share == 0] == pytest.approx(1 / 36)
    assert reward[share == 1] == pytest.approx(-25 / 36)
    assert reward[share == 0.5] == pytest.approx(-1 / 9)


def test_gaps_of_annealing_by_hand(modules):
    """Six sets of energies 1, 1, 1, 2, 2, 3: a random one has 5/3, which is 4/3 below the best."""
    searches = modules("searches")
    terms = modules("fedsim.selectors.pause.energy").Terms(
        np.arange(4), np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4), np.zeros(4), 2.0, 1.0, 2
    )
    way, last = searches.Walk(1.0), np.array([1, 3])
    gap = searches.gaps(way, [(1, terms, last)], [1, 100], seeds=50)[:, 0]
    rng, best = np.random.default_rng(0), []
    for seed in range(50):
        walk = way.begin(terms, np.random.default_rng([1, seed]))
        walk.run(1)
        best.append(walk.best_energy)
    # The mean of 100 random sets has a standard error of 0.075, and 5 times 0.075 is 0.28 of 4/3.
    assert gap[0] == pytest.approx(100 * (3 - np.mean(best)) / (4 / 3), rel=0.28 / 0.72)
    assert gap[1] == 0.0
    assert way._replace(warm=True).begin(terms, rng, last).members == [1, 3]
    assert len({tuple(way.begin(terms, rng, last).members) for _ in range(30)}) > 2
    assert way._replace(vanilla=True).begin(terms, rng)._scale == 2 * terms.alpha + terms.gamma + 1


def test_the_chain_of_two_clients_by_hand(modules):
    """m = 1 of two clients with a gap of C: at j = 1 the best is left with 1/2 and found with 1."""
    terms = modules("fedsim.selectors.pause.energy").Terms(
        np.arange(2), np.array([1.0, 0.0]), np.zeros(2), np.zeros(2), 1.0, 1.0, 1
    )
    chain = modules("annealing_chain").chain_of(terms, np.arange(2))
    assert chain.joined.tolist() == [[False, True], [True, False]]
    # From 1/2 each: 1/2 + 1/2 - 1/2 * 2^-1, then on with 3^-1.
    assert chain.chances(1.0, [1, 2]) == pytest.approx([0.75, 0.25 + 0.75 * (1 - 1 / 3)])
    # The equilibrium gives the best set (j + 1) / (j + 2): one half at once.
    assert modules("theorem4").iterations_until_even(chain, 1.0) == 0.0


def chain_without_ties(modules, clients=7, m=4):
    luck = np.random.default_rng(2).random((3, clients))
    terms = modules("fedsim.selectors.pause.energy").Terms(np.arange(clients), *luck, 1.0, 1.0, m)
    return modules("annealing_chain").chain_of(terms, np.arange(clients)), terms


def test_the_chain_joins_active_and_passive_neighbours(modules):
    """R1 and R2, pair by pair."""
    chain, terms = chain_without_ties(modules)
    sets = [frozenset(members) for members in chain.sets.tolist()]
    passive_only = 0
    for (i, one), (j, other) in itertools.product(enumerate(sets), repeat=2):
        active = [
            len(one & other) == 3 and one - other == {min(one, key=values.__getitem__)}
            for values in (terms.latency, terms.privacy, terms.generalisation)
        ]
        back = [
            len(one & other) == 3 and other - one == {min(other, key=values.__getitem__)}
            for values in (terms.latency, terms.privacy, terms.generalisation)
        ]
        assert chain.joined[i, j] == (any(active) or any(back))
        passive_only += any(back) and not any(active)
    assert passive_only > 0


def test_the_chain_is_even_in_equilibrium_when_it_says_so(modules):
    """At the temperature of that iteration the stationary law of the moves gives the best set one half."""
    chain, _ = chain_without_ties(modules)
    heat = 0.5
    tau = heat / (modules("theorem4").iterations_until_even(chain, heat) * math.log(10))
    gain = np.minimum(chain.energy[None, :] - chain.energy[:, None], 0.0)
    moves = chain.joined / chain.joined.sum(axis=1)[:, None] * np.exp(gain / tau)
    moves += np.diag(1 - moves.sum(axis=1))
    law = np.full(chain.energy.size, 1 / chain.energy.size)
    for _ in range(20_000):
        law = law @ moves
    assert law[chain.best].sum() == pytest.approx(0.5, abs=1e-6)
