"""Clients' factors against a random-effects model whose parameters are known."""

import numpy as np
import pytest

from fedsim.calibration import read_log
from fedsim.calibration.clients import effects
from fedsim.calibration.phases import fitted_phases

CLIENTS = 80


def sample(spread, noise, each, seed=2, centre=0.0):
    rng = np.random.default_rng(seed)
    client = np.repeat(np.arange(CLIENTS), each)
    of_client = centre + spread * rng.standard_normal(CLIENTS)
    return client, of_client, np.exp(of_client[client] + noise * rng.standard_normal(client.size))


@pytest.mark.statistical
def test_a_spread_is_found_again_where_half_of_the_times_are_cut():
    client, _, times_s = sample(0.3, 0.5, 6)
    found = effects(np.minimum(times_s, 1.0), times_s > 1.0, client, 0 * client, CLIENTS, "crowd")
    assert found.spread_sigma == pytest.approx(0.3, abs=3 * found.spread_error)


@pytest.mark.statistical
@pytest.mark.parametrize("each", [3, 30])
def test_spread_and_noise_are_found_again(each):
    client, _, times_s = sample(0.5, 0.3, each)
    found = effects(times_s, np.zeros(client.size, bool), client, 0 * client, CLIENTS, "crowd")
    assert found.significant
    assert found.spread_sigma == pytest.approx(0.5, abs=3 * found.spread_error)
    # Of K centres known up to s^2 + n^2 / m: its root has the error (s^2 + n^2 / m) / (s sqrt(2 (K - 1))).
    assert found.spread_error == pytest.approx((0.25 + 0.09 / each) / (0.5 * np.sqrt(2 * (CLIENTS - 1))), rel=0.3)
    assert found.noise_sigma == pytest.approx(0.3, abs=3 * 0.3 / np.sqrt(2 * (each - 1) * CLIENTS))
    # What is left scatters as much as a draw does, however few times a client has.
    assert np.log(found.drawn_s).std() == pytest.approx(0.3, rel=0.1)


def fitted(folder, by, limit_s=np.inf):
    client, _, times_s = sample(0.5, 0.3, 4)
    ends = [
        (min(time_s, limit_s), *(("late", "uplink") if time_s > limit_s else ("delivered", ""))) for time_s in times_s
    ]
    rows = [f"{number},{time_s},{outcome},{cut}" for number, (time_s, outcome, cut) in zip(client, ends, strict=True)]
    (folder / "log.csv").write_text("\n".join(["client,uplink_s,outcome,cut_in", *rows]))
    return fitted_phases(read_log(folder / "log.csv"), by, CLIENTS, 1)


@pytest.mark.parametrize(("by", "error"), [("crowd", 0.5 / np.sqrt(CLIENTS)), ("client", 0.3 / np.sqrt(4 * CLIENTS))])
def test_the_median_of_a_crowd_is_known_as_well_as_the_mean_of_its_clients(by, error, tmp_path):
    """Of these clients it is known as well as the mean of all their times."""
    fit = fitted(tmp_path, by).phases[2].fit
    assert fit.errors["median_s"] / fit.options["median_s"] == pytest.approx(error, rel=0.15)


@pytest.mark.parametrize(("limit_s", "notes"), [(1.1, []), (0.7, ["uplink: 7"])])
def test_a_note_says_where_most_times_were_cut(limit_s, notes, tmp_path):
    assert [note[:9] for note in fitted(tmp_path, "crowd", limit_s).notes] == notes


@pytest.mark.parametrize("limit_s", [np.inf, 1.0])
def test_clients_that_are_alike_get_no_factors(limit_s):
    """Also where half of the times are cut, and all times of some clients."""
    client, _, times_s = sample(0.0, 0.3, 10 if np.isinf(limit_s) else 3)
    cut, times_s = times_s > limit_s, np.minimum(times_s, limit_s)
    for by in ("crowd", "client"):
        found = effects(times_s, cut, client, 0 * client, CLIENTS, by)
        assert (found.significant, found.spread_sigma) == (False, 0.0)
        assert found.drawn_s is times_s


def test_what_the_rounding_of_a_clock_leaves_is_no_spread():
    client = np.repeat(np.arange(CLIENTS), 5)
    times_s = 0.1 + np.spacing(0.1) * (client % 3)
    found = effects(times_s, np.zeros(client.size, bool), client, 0 * client, CLIENTS, "crowd")
    assert (found.significant, found.spread_sigma) == (False, 0.0)


@pytest.mark.statistical
@pytest.mark.parametrize("limit_s", [np.inf, 1.3])
def test_each_client_s_factor_is_found_also_behind_a_deadline(limit_s):
    """With a limit a third of the times are cut; a mean of those that are left would be far too low."""
    client, of_client, times_s = sample(0.5, 0.3, 200)
    cut = times_s > limit_s
    found = effects(np.minimum(times_s, limit_s), cut, client, 0 * client, CLIENTS, "client")
    known = np.bincount(client[~cut], minlength=CLIENTS) > 50
    error = np.log(found.factor) - (of_client - of_client.mean())
    error -= error[known].mean()
    assert np.abs(error[known]).max() < 4.5 * 0.3 / np.sqrt(50)
    assert found.noise_sigma == pytest.approx(0.3, rel=0.05)


def test_each_class_has_a_factor_and_the_rest_is_spread():
    client, _, times_s = sample(0.2, 0.1, 20)
    group = client % 2
    times_s = times_s * np.where(group == 1, 3.0, 1.0)
    found = effects(times_s, np.zeros(client.size, bool), client, group, CLIENTS, "class")
    assert len(set(found.factor.tolist())) == 2
    assert found.factor[1] / found.factor[0] == pytest.approx(3.0, rel=3 * 0.2 * np.sqrt(2 / (CLIENTS / 2)))
    assert found.spread_sigma == pytest.approx(0.2, abs=3 * found.spread_error)


def test_times_of_zero_are_left_alone():
    times_s = np.array([0.0, 1.0, 2.0, 0.5])
    found = effects(times_s, np.zeros(4, bool), np.array([0, 0, 1, 1]), np.zeros(4, int), 2, "client")
    assert found.factor.tolist() == [1, 1]
    assert found.drawn_s is times_s
