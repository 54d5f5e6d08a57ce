"""Robust rules against small cases worked by hand, and against loops over numbers."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedsim.learning.aggregation import robust
from fedsim.learning.aggregation.robust import Krum, Median, MultiKrum, TrimmedMean


def combined(rule, rows, parameters=None):
    updates = np.array(rows, np.float32)
    weights = np.full(len(rows), 1 / len(rows))
    return rule.combine(updates, weights, updates.shape[1] if parameters is None else parameters).tolist()


def test_a_trimmed_mean_leaves_out_the_same_number_at_each_end():
    # 0.29 times 100 is 28.999999999999996 in floats; 29 are meant.
    many = [[i] for i in range(100)]
    many[0], many[-1] = [-1e6], [1e6]
    assert combined(TrimmedMean(share=0.29), many) == [49.5]
    assert [TrimmedMean(share=share).least_updates for share in (0.1, 0.3, 0.2, 0.49)] == [10, 4, 5, 3]


def test_krum_takes_the_update_with_the_nearest_neighbours():
    """Five on a line, one may be wrong: two neighbours each, with squares 1 + 4, 1 + 1, 1 + 4, 4 + 9 and far more."""
    rows = [[0], [1], [2], [4], [90]]
    assert Krum(byzantine=1).least_updates == 5
    assert combined(Krum(byzantine=1), rows) == [1]
    # The best three scores are those of 1, 0 and 2.
    assert combined(MultiKrum(byzantine=1, averaged=3), rows) == [1]
    assert combined(MultiKrum(byzantine=1, averaged=2), rows) == [0.5]
    # Distances are those of the first number; the second is a buffer of the winner.
    assert combined(Krum(byzantine=1), [[0, 7], [1, -900], [2, 8], [4, 9], [90, 8]], parameters=1) == [1, -900]
    # Equal scores: the first.
    assert combined(Krum(byzantine=0), [[0], [1], [0]]) == [0]
    assert combined(Krum(byzantine=0), [[5], [5], [5]]) == [5]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e30])
def test_one_update_that_is_no_number_is_not_the_winner(wrong):
    assert combined(Krum(byzantine=1), [[wrong], [1], [2], [4], [3]]) in ([2], [3])
    assert 1 <= combined(Median(), [[wrong], [1], [2]])[0] <= 2
    assert 1 <= combined(TrimmedMean(share=0.2), [[wrong], [1], [2], [4], [3]])[0] <= 4


# Whole numbers, whose sums of squares are exact: equal scores are equal in floats too.
NUMBERS = st.integers(-9, 9).map(float)
ROWS = st.integers(5, 9).flatmap(lambda n: st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=n, max_size=n))


def plain(rule, rows):
    """Return the same by loops over Python's numbers."""
    if isinstance(rule, Median | TrimmedMean):
        cut = (len(rows) - 1) // 2 if isinstance(rule, Median) else int(rule.share * len(rows) + 1e-9)
        columns = [sorted(column)[cut : len(rows) - cut] for column in zip(*rows, strict=True)]
        return [sum(column) / len(column) for column in columns]
    scores = []
    for one in range(len(rows)):
        apart = sorted(
            sum((a - b) ** 2 for a, b in zip(rows[one], rows[other], strict=True))
            for other in range(len(rows))
            if other != one
        )
        scores.append((sum(apart[: len(rows) - rule.byzantine - 2]), one))
    best = [place for _, place in sorted(scores)][: rule.averaged if isinstance(rule, MultiKrum) else 1]
    return [sum(rows[place][i] for place in best) / len(best) for i in range(3)]


@given(
    rows=ROWS,
    rule=st.sampled_from(
        [
            Median(),
            TrimmedMean(share=0.2),
            TrimmedMean(share=0.45),
            Krum(byzantine=1),
            MultiKrum(byzantine=1, averaged=3),
        ]
    ),
)
def test_the_rules_do_what_loops_do(rows, rule):
    np.testing.assert_allclose(combined(rule, rows), plain(rule, rows), rtol=1e-6)


def test_columns_are_taken_in_pieces_with_the_same_result(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((7, 50)).astype(np.float32)
    whole = combined(Median(), rows.tolist())
    monkeypatch.setattr(robust, "_AT_ONCE", 20)
    assert combined(Median(), rows.tolist()) == whole == np.median(rows, axis=0).tolist()
