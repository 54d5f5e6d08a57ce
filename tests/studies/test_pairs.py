"""Intervals for paired differences, against numbers worked by hand and SciPy, and what is refused."""

import math

import numpy as np
import pytest
from scipy import stats

from fedsim.studies.comparing.lines import Line, sentence
from fedsim.studies.comparing.pairs import Sample, holm, paired


def sample(one, other, watched=100.0):
    """Return pairs; None is a run that has not reached its target when it was watched no further."""
    value = np.array([[watched if v is None else v for v in side] for side in (one, other)], dtype=float)
    reached = np.array([[v is not None for v in side] for side in (one, other)])
    return Sample(value, reached, np.full(value.shape, float(watched)))


@pytest.mark.cases(120, 400)
def test_random_pairs_are_compared_as_the_definitions_say(cases):
    """Student on min(value, horizon), and on logarithms where all reach it; McNemar on who does."""
    told = 0
    for case in cases:
        rng = np.random.default_rng(case)
        n, horizon, level = int(rng.integers(2, 14)), float(rng.choice([40, 60, 90])), float(rng.choice([0.8, 0.95]))
        one = rng.integers(20, 80, n)
        value = np.array([one, one + rng.integers(-12, 20, n)], dtype=float)
        reached = rng.random((2, n)) < rng.choice([0.8, 1.0])
        sides = np.where(reached, value, None).tolist()
        found = paired(sample(*sides), level, horizon - 1e-12)  # less by rounding alone
        cut, in_time = np.where(reached, np.minimum(value, horizon), horizon), reached & (value <= horizon)
        d, whole = cut[1] - cut[0], bool(in_time.all())
        only = [int((in_time[i] & ~in_time[1 - i]).sum()) for i in (0, 1)]
        assert found.p_shares == (pytest.approx(stats.binomtest(only[0], sum(only)).pvalue) if sum(only) else 1.0)
        assert found.unreached == tuple((~in_time).sum(axis=1))
        assert bool(found.refused) == (not whole and np.count_nonzero(d) < max(3, n / 2))
        if found.refused or np.ptp(d) == 0:
            continue
        told += 1
        assert [found.horizon, *found.means] == pytest.approx([math.inf if whole else horizon, *cut.mean(axis=1)])
        assert found.interval == pytest.approx(stats.t.interval(level, n - 1, d.mean(), stats.sem(d)))
        assert (found.difference, found.p) == pytest.approx((d.mean(), stats.ttest_rel(cut[1], cut[0]).pvalue))
        logs = np.log(cut[1] / cut[0])
        ratios = [logs.mean(), *stats.t.interval(level, n - 1, logs.mean(), stats.sem(logs))]
        expected = np.exp(ratios) if whole else [math.nan] * 3
        assert [found.ratio, *found.ratio_interval] == pytest.approx(expected, nan_ok=True)
        spread = d.var(ddof=1) / cut.var(axis=1, ddof=1).sum() if n >= 8 else math.nan
        assert found.variance_ratio == pytest.approx(spread, nan_ok=True)
        sizes = np.arange(n, 1001)
        enough = stats.t.ppf((1 + level) / 2, sizes - 1) * d.std(ddof=1) / np.sqrt(sizes) <= abs(d.mean())
        assert found.more_pairs == (int(enough.argmax()) if n >= 8 and enough.any() else None)
    assert told > len(cases) / 2


def test_differences_of_rounding_are_none():
    """Rounds that end at their deadline have the same length but for the last digit."""
    found = paired(sample([0.6, 0.6, 0.6 + 1e-16], [0.6, 0.6 - 1e-16, 0.6 + 2e-16]))
    assert (found.difference, found.interval, math.isnan(found.p)) == (0.0, (0.0, 0.0), True)
    found = paired(sample([0.6, 0.6, 0.6], [1.0, 1.0 + 2e-16, 1.0 - 1e-16]))
    assert (found.interval.half, math.isnan(found.p)) == (0.0, True)
    assert Line("round_s_p95", "b", "a", found).cells()[5] == "0.4 +- 0"


def test_an_interval_of_ratios_has_no_end_where_two_pairs_say_nothing():
    assert paired(sample([1.0, 1.0], [1e3, 1.0]), 0.999).ratio_interval == (0.0, math.inf)


@pytest.mark.parametrize(
    ("one", "other", "horizon", "words"),
    [
        ([10, None, 8], [5, 6, 7], None, "no horizon was named before the runs: a horizon of 8.8 s would do"),
        ([10, None, 8], [5, 6, 7], 200, "1 runs were not watched up to 200 s, but 100"),
        ([50] * 5, [48, 60, 40, 60, 60], 50, r"2 of 5 pairs differ before 50 s: a horizon of 63 s would do"),
        ([None] * 4, [None, None, None, 50], 90, "too few runs get there; name a longer horizon, beyond 100 s"),
        ([0, 0, 0, None], [0, 0, 0, 5], None, "too few runs get there"),
        ([0, 0, 0, 0], [4, 5, 6, None], None, "a horizon of 5 s would do"),
        ([1.0], [2.0], None, "one pair has no interval"),
        ([1.0, math.nan], [2.0, 1.0], None, "1 of 2 pairs have no value"),
    ],
)
def test_what_is_refused(one, other, horizon, words):
    found = paired(sample(one, other), horizon=horizon, unit="s")
    assert words in found.refused
    assert math.isnan(found.difference)


def test_holm_by_hand():
    """Of four: 0.01 x 4, 0.02 x 3, 0.03 x 2, none below the one before; the one without a number counts too."""
    assert holm([0.03, 0.01, math.nan, 0.02])[:2] == pytest.approx([0.06, 0.04])
    assert holm([0.03, 0.01, math.nan, 0.02])[3] == pytest.approx(0.06)


def test_cells_have_as_many_places_as_the_half_width():
    """Of -5, -4.5, -5: the mean is -29/6, the error 1/6, and t of 2 degrees 4.302653; times: the root of 1/18."""
    line = Line("time_to_80%", "b", "a", paired(sample([9, 8, 7], [4, 3.5, 2])), 0.012)
    assert line.cells() == ("time_to_80% (s)", "b", "3", "8", "3.17", "-4.83 +- 0.72", "0.382", "0.012", "-")
    assert Line("rounds", "b", "a", paired(sample([30, 10, 20], [10, 30, 19.9]))).cells()[5].startswith("0 +- ")
    found = paired(sample([10, 20, 30, None, 25], [5, 12, 45, 10, None]), horizon=40)
    assert Line("time_to_80%", "b", "a", found).cells()[-1] == "1 / 2", "in the order of the means before it"


@pytest.mark.parametrize(
    ("found", "holm_p", "words"),
    [
        (
            sample([9, 8, 7], [4, 3.5, 2]),
            0.01,
            ["4.83 s sooner (+- 0.7", "3 pairs", "better, also among 6 comparisons"],
        ),
        (sample([9, 8, 7], [4, 3.5, 2]), 0.08, ["better, by itself", "not among 6 comparisons (Holm p = 0.08)"]),
        (sample([9, 8, 7], [4, 9, 8]), 1.0, ["1 s sooner", "not told apart from none by 3 pairs."]),
        (sample([9, 8, 7], [8.9, 7.8, 7.3]), 1.0, ["0 s apart", "not told apart from none by 3 pairs."]),
        (sample(range(10, 20), [12, 9, 14, 12, 15, 13, 19, 15, 20, 18]), 1.0, ["more pairs would do in about half"]),
        (
            sample([9, None, 7], [4, 3, 2]),
            1.0,
            ["not reached by 0 and 1 of 3 runs", "nothing is concluded on the mean"],
        ),
        (sample([9, 8, 7], [10, 9, 8]), math.nan, ["1 s later", "all pairs differ by the same amount"]),
    ],
)
def test_sentences(found, holm_p, words):
    said = sentence(Line("time_to_80%", "b", "a", paired(found, unit="s"), holm_p), 0.95, 6)
    assert said.startswith("time_to_80%: 'b' against 'a': ")
    assert not [word for word in words if word not in said], said
