"""The study of FedSUV's section 6.3: what it measures, by hand, and what it shows at small size."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.selectors import FedSuv, Oort, Uniform
from tests.support.study_commands import SCENARIOS, printed


@pytest.fixture
def world(monkeypatch):
    """The names of the study, whose modules are one idea each."""
    monkeypatch.syspath_prepend(SCENARIOS / "fedsuv")
    modules = map(importlib.import_module, ("fig6_crowd", "fig6_outcomes", "fig6_rounds", "fig6_measures"))
    return SimpleNamespace(**{name: value for module in modules for name, value in vars(module).items()})


def crowd_of(world, validity, utility):
    return world.Crowd(np.array(validity), np.array(utility), np.zeros((len(validity), 0)))


def test_area_by_hand(world):
    """Below (0.2, 0.9), (0.5, 0.7) and (0.8, 0.5); (0.4, 0.6) adds nothing."""
    area = world.area(np.array([0.5, 0.4, 0.8, 0.2]), np.array([0.7, 0.6, 0.5, 0.9]))
    assert area == pytest.approx(0.2 * 0.9 + 0.3 * 0.7 + 0.3 * 0.5)


def test_front_by_hand(world):
    crowd = crowd_of(world, [0.5, 0.4, 0.8, 0.2, 0.8, 0.5], [0.7, 0.6, 0.5, 0.9, 0.4, 0.6])
    expected = [0.0, np.hypot(0.1, 0.1), 0.0, 0.0, 0.1, 0.1]
    np.testing.assert_allclose(crowd.distance_to_front(), expected, atol=1e-15)


def test_grid_has_one_client_in_each_block(world):
    crowd = world.make_crowd(9, "grid", "means", 0)
    places = sorted(zip(crowd.validity.tolist(), crowd.utility.tolist(), strict=True))
    thirds = [1 / 6, 1 / 2, 5 / 6]
    np.testing.assert_allclose(places, [(v, u) for v in thirds for u in thirds])
    with pytest.raises(SystemExit, match="no square number"):
        world.make_crowd(10, "grid", "means", 0)


@pytest.mark.statistical
def test_expectations_are_what_clients_do(world):
    """All of two clients take part in each of 1,000 rounds; five standard errors."""
    crowd = crowd_of(world, [0.3, 0.9], [0.2, 0.6])
    heard = []

    class Listening(Uniform):
        def observe(self, reports):
            heard.append(np.where(reports.delivered, reports.measured["loss_rms"], np.nan))

    rounds = 1000
    world.play(Listening(2), crowd, rounds, seed=3)
    error = np.sqrt(crowd.validity * (1 - crowd.validity) / rounds)
    assert np.all(np.abs((~np.isnan(heard)).mean(axis=0) - crowd.validity) < 5 * error)
    count = np.count_nonzero(~np.isnan(heard), axis=0)
    error = np.sqrt(crowd.utility * (1 - crowd.utility) / 25 / count)
    assert np.all(np.abs(np.nanmean(heard, axis=0) - crowd.utility) < 5 * error)


def test_regrets_by_hand(world):
    """v u is 0.18, 0.4, 0.05 and 0.09; the best two have a mean of 0.29, and the two of least id the same.

    Their area is all that there is, 0.18 + 0.6 * 0.5 = 0.48, and that of the two others is 0.3 * 0.3 + 0.2 * 0.1.
    """
    crowd = crowd_of(world, [0.2, 0.8, 0.5, 0.3], [0.9, 0.5, 0.1, 0.3])
    found = crowd.regrets(np.array([[0, 1], [2, 3]]))
    assert found == pytest.approx(np.array([[0.0, 0.48 - 0.11], [0.0, 0.29 - 0.07]]))


def test_selectors_face_the_same_luck(world):
    """Who is selected beside a client does not change what becomes of it."""
    crowd = world.make_crowd(25, "random", "means", 1)
    streams = world.Streams(4)
    alone = world.reports_of(crowd, streams, 7, np.array([11]))
    among = world.reports_of(crowd, streams, 7, np.array([3, 11, 20]))
    assert alone.duration_s[0] == among.duration_s[1]
    np.testing.assert_array_equal(alone.loss[0], among.loss[1])


@pytest.mark.statistical
def test_fedsuv_gives_up_low_validity_and_its_regret_ends(world):
    """What Fig. 6 and Theorem 5.5 say, on 400 clients."""
    crowd = world.make_crowd(400, "grid", "means", 0)
    selector = FedSuv(10, utility_scale=1.0, undelivered="nothing", fit="none")
    played = world.play(selector, crowd, 80, seed=0)
    low, rounds = crowd.validity < 0.4, played.left.sum(axis=0)
    assert rounds[low].mean() < 0.6 * rounds[~low].mean()
    assert played.holds
    uniform = world.play(Uniform(10), crowd, 80, seed=0)
    assert crowd.regrets(played.chosen[-20:])[0].sum() < 0.1 * crowd.regrets(uniform.chosen[-20:])[0].sum()


@pytest.mark.statistical
def test_both_regrets_of_six_attributes_stay_below_oort(world):
    """The default of the study on 400 clients; with no observation of undelivered clients its regret is larger."""
    crowd = world.make_crowd(400, "grid", "mixed", 0)
    bare = FedSuv(10, utility_scale=1.0, undelivered="nothing", fit="none")
    played = (world.play(one, crowd, 60, seed=0) for one in (FedSuv(10, utility_scale=1.0), bare, Oort(10)))
    ours, before, oort = (crowd.regrets(one.chosen).sum(axis=1) for one in played)
    assert np.all(ours < 0.7 * np.minimum(oort, before))


@pytest.mark.slow
@pytest.mark.parametrize("features", ["means", "mixed"])
def test_study_runs_and_draws(features, tmp_path):
    options = ["--clients", "49", "--rounds", "4", "--seeds", "2", "--coverage-runs", "1", "--coverage-rounds", "4"]
    options += ["--layout", "random"]
    told = printed("fedsuv/fig6_selection.py", tmp_path, *options, "--features", features, "--out", tmp_path)
    assert all(name in told for name in ("FedSUV", "Oort", "uniform", "Theorem 5.3"))
    assert {path.name for path in tmp_path.iterdir()} == {"heatmaps.png", "regret.png"}


def test_measures_by_hand(world):
    """Clients at (0.2, 0.9), (0.8, 0.5), (0.5, 0.1) and (0.3, 0.3); the first two are the front.

    The third is 0.5 away from it and the fourth 0.539. Of eight selections three, three, one and one, five of them
    delivered; the first and the fourth, of low validity, are in X for four rounds and one.
    """
    crowd = crowd_of(world, [0.2, 0.8, 0.5, 0.3], [0.9, 0.5, 0.1, 0.3])
    chosen, delivered = np.array([[0, 1], [0, 1], [0, 1], [2, 3]]), np.array([[1, 1], [1, 1], [1, 0], [0, 0]])
    left = np.array([[True, True, True, number == 0] for number in range(4)])
    found = world.measures(world.Run(chosen, delivered == 1, left, np.zeros(4), True), crowd)
    worth = (3 * 0.2 * 0.9 + 3 * 0.8 * 0.5 + 0.5 * 0.1 + 0.3 * 0.3) / 8
    assert found == pytest.approx([2.5, 2.5, 6 / 8, 5 / 8, worth, 0.37, 0.22])


def test_bounds_of_the_theorems_by_hand(world, monkeypatch, capsys):
    """(15) and (16) by hand for alpha 2, beta 3, gamma 4, T = 8, noise 0.1; the greedy gain of two clients far apart is
    that of two independent ones; a crowd of three whose least difference is 0.1."""
    theorems = importlib.import_module("theorems")
    total = 4 * 2 * 2 * math.log(1 + 8 / 2) + 3 * 4 * 2 / math.log(101)
    assert theorems.bounds(2.0, 3.0, 4.0, 8, 0.5) == pytest.approx((math.sqrt(total / 8), 4 * 20 * total / 0.25))
    one = math.log(101) / 2 / (1 - math.exp(-1))
    assert theorems.greedy_gain(np.array([[0.0, 0.0], [100.0, 0.0]]), 2) == pytest.approx([one, 2 * one])
    crowd = world.Crowd(np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.4, 0.1]), np.zeros((3, 0)))
    assert theorems.least_gap(crowd) == pytest.approx(0.1)
    monkeypatch.setattr("sys.argv", ["bounds.py", "--clients", "100", "--rounds", "10", "--seeds", "1"])
    importlib.import_module("bounds").main()
    width, printed_bound, twice = (float(cell) for cell in capsys.readouterr().out.splitlines()[2].split("|")[2:5])
    assert printed_bound < width < twice  # round 1: (23) of the paper has half of the diagonal
