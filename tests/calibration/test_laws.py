"""Laws fitted to samples of known laws, and Kaplan-Meier by hand."""

import numpy as np
import pytest
from scipy.stats import norm

from fedsim.calibration.laws import fit_law, kaplan_meier, quantiles
from fedsim.network.distributions import LATENCY_LAWS

SIZE = 2000
UNCUT = np.zeros(SIZE, dtype=bool)
LEVELS = (np.random.default_rng(11).permutation(SIZE) + 0.5) / SIZE
LAWS = [
    {"kind": "log-normal", "median_s": 2.0, "sigma": 0.6},
    {"kind": "normal", "centre_s": 5.0, "std_s": 0.7},
    {"kind": "normal", "centre_s": 1.0, "std_s": 0.7, "floor_s": 0.4},
    {"kind": "shifted-exponential", "shift_s": 0.3, "scale_s": 2.0},
]


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS, ids=lambda law: "-".join(map(str, law.values())))
@pytest.mark.parametrize("share_cut", [0.0, 0.3])
def test_a_law_is_found_again_within_its_standard_errors(law, share_cut):
    rng = np.random.default_rng(5)
    times_s = LATENCY_LAWS.make(law).quantile(rng.random(SIZE))
    # Some clients are cancelled at an instant that has nothing to do with how long they take.
    limits_s = np.where(rng.random(SIZE) < 2 * share_cut, np.quantile(times_s, rng.random(SIZE)), np.inf)
    cut = limits_s < times_s
    found = fit_law(np.minimum(times_s, limits_s), cut)
    assert found.kind == law["kind"]
    assert found.cut == cut.sum()
    for name, error in found.errors.items():
        assert found.options[name] == pytest.approx(law[name], abs=3.5 * error), name
    assert found.options.get("floor_s", 0.0) == law.get("floor_s", 0.0)
    assert found.aic[found.kind] == min(found.aic.values())


def test_errors_are_those_of_the_size_of_the_sample():
    """Of n logarithms with deviation s: s / sqrt(n) for the mean, s / sqrt(2 n) for the deviation."""
    found = fit_law(LATENCY_LAWS.make(LAWS[0]).quantile(LEVELS), UNCUT)
    assert found.errors["sigma"] == pytest.approx(0.6 / np.sqrt(2 * SIZE), rel=0.01)
    assert found.errors["median_s"] == pytest.approx(2.0 * 0.6 / np.sqrt(SIZE), rel=0.01)
    # Every time could have been the least, also those that a deadline cuts.
    times_s, limit_s = LATENCY_LAWS.make(LAWS[3]).quantile(LEVELS), 0.5
    found = fit_law(np.minimum(times_s, limit_s), times_s > limit_s)
    assert (found.kind, found.errors["shift_s"]) == ("shifted-exponential", pytest.approx(2.0 / SIZE, rel=0.01))


@pytest.mark.parametrize(("law", "cut_at"), [(LAWS[0], 0.1), (LAWS[0], 0.5), (LAWS[2], 0.6), (LAWS[2], 1.0)])
def test_errors_are_those_of_the_curvature_of_the_likelihood(law, cut_at):
    """Of times that are cut at one instant, or lie on a floor, and the law of their numbers or logarithms."""
    times_s = LATENCY_LAWS.make(law).quantile(LEVELS)
    cut, floor_s = cut_at < LEVELS, law.get("floor_s", 0.0)
    times_s[cut] = times_s[~cut].max()
    found = fit_law(times_s, cut)
    (first, centre), (second, spread), *_ = found.options.items()
    logs, at, scale = (np.log(times_s), np.log(centre), centre) if first == "median_s" else (times_s, centre, 1.0)

    def loglik(moved):
        normal = norm(at + moved[0], spread + moved[1])
        whole = np.where(times_s == floor_s, normal.logcdf(logs), normal.logpdf(logs))
        return np.where(cut, normal.logsf(logs), whole).sum()

    def bend(one, other):
        return (loglik(one + other) - loglik(one - other) - loglik(other - one) + loglik(-one - other)) / 4

    steps = 1e-3 * spread * np.eye(2)
    errors = 1e-3 * spread * np.sqrt(np.diag(np.linalg.inv([[-bend(one, other) for other in steps] for one in steps])))
    assert [found.errors[first], found.errors[second]] == pytest.approx([scale * errors[0], errors[1]], rel=1e-3)


@pytest.mark.parametrize("values", [np.zeros(50), np.full(50, 0.25)])
def test_times_without_spread_are_constant(values):
    found = fit_law(values, np.zeros(50, dtype=bool))
    assert found.table() == ({"kind": "constant", "value_s": 0.25} if values[0] else {"kind": "zero"})


@pytest.mark.parametrize("shape", ["gamma", "two speeds"])
def test_what_fedsim_has_no_law_for_becomes_a_table_of_quantiles(shape):
    rng = np.random.default_rng(3)
    times_s = rng.gamma(3.0, 1.0, SIZE) if shape == "gamma" else rng.choice([1.0, 4.0], SIZE) + rng.random(SIZE)
    found = fit_law(times_s, UNCUT)
    assert found.kind == "empirical"
    assert len(found.options["values_s"]) == 256
    law = LATENCY_LAWS.make(found.table())
    assert law.mean_s() == pytest.approx(times_s.mean(), rel=0.005)
    for level in (0.1, 0.5, 0.9):
        rank = np.searchsorted(np.sort(times_s), law.quantile(np.array([level]))[0]) / SIZE
        assert rank == pytest.approx(level, abs=2 / 256)


def test_kaplan_meier_by_hand():
    """Times 1, 2, 2+, 3, 5+, 6, + for one that was cut: beyond 1 are 5/6, beyond 2 4/5 of these, beyond 3 2/3."""
    times_s = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 6.0])
    cut = np.array([False, False, True, False, True, False])
    steps_s, survival = kaplan_meier(times_s, cut)
    assert steps_s.tolist() == [1, 2, 3, 6]
    np.testing.assert_allclose(survival, [5 / 6, 4 / 6, 4 / 9, 0])
    # Middles of four equal shares: 1/8, 3/8, 5/8, 7/8.
    assert quantiles(steps_s, survival, 4).tolist() == [1, 3, 6, 6]


def test_a_sample_of_nothing_but_cut_times_is_refused():
    with pytest.raises(ValueError, match="every time was cut short"):
        fit_law(np.ones(3), np.ones(3, dtype=bool))
