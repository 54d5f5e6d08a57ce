"""BN2, BC-BN2 and BN2-C, by hand."""

import numpy as np
import pytest

from fedsim.selectors.channel.update_aware import BcBn2, Bn2, Bn2C, LastNorms, SparseNorms, bits_of, norms_of, steps_of
from tests.support.views import reports_of, rng, view_of

TRIED = {"participations": np.ones(4, dtype=int)}


def chosen(selector, **columns):
    return selector.select(view_of(4, **{**TRIED, **columns}), rng()).client.tolist()


def learnt(selector, norms=(1.0, 4.0, 3.0, 2.0)):
    selector.observe(reports_of(np.arange(4), update_norm=norms))
    return selector


def test_worths_by_hand():
    norms = LastNorms()
    norms.learn(reports_of([0, 1]), np.array([4.0, 2.0]))
    tried = view_of(4, participations=[1, 1, 2, 0])
    norms.learn(reports_of([2, 2], delivered=False), np.full(2, np.nan))
    # Two failures halve the mean, 3, twice; the fourth was never selected.
    assert norms.worth(tried).tolist() == [4.0, 2.0, 0.75, np.inf]
    norms.learn(reports_of([0], delivered=False), np.array([np.nan]))
    assert norms.worth(tried).tolist() == [2.0, 2.0, 0.75, np.inf]
    norms.learn(reports_of([0]), np.array([6.0]))
    # The mean is now 4.
    assert norms.worth(tried).tolist() == [6.0, 2.0, 1.0, np.inf]


def test_bn2_takes_the_greatest_norms_and_first_those_never_selected():
    assert chosen(learnt(Bn2(2))) == [1, 2]
    assert Bn2(2).select(view_of(4, participations=[1, 0, 1, 0]), rng()).client.tolist() == [1, 3]


def test_bc_bn2_takes_the_greatest_norms_among_the_best_channels():
    # Channels now: 9, 1, 4, 3; norms 1, 4, 3, 2.
    radio = {"snr_hz": [9.0, 1.0, 2.0, 3.0], "fading_gain": [1.0, 1.0, 2.0, 1.0]}
    assert chosen(learnt(BcBn2(1, channels=1)), **radio) == [0]
    assert chosen(learnt(BcBn2(1)), **radio) == [2]
    assert chosen(learnt(BcBn2(1, state="mean")), **radio) == [3]
    assert chosen(learnt(BcBn2(2, channels=1)), **radio) == [0, 2]
    assert chosen(learnt(BcBn2(1, channels=4)), **radio) == [1]


def test_sparse_norms_by_hand():
    # Of [3, 1, -2, 0]: one element, 3 against -2; two elements, the mean of 3 and 1 against that of -2 and 0.
    np.testing.assert_allclose(norms_of(np.array([3.0, 1.0, -2.0, 0.0])), [3.0, 2.0 * np.sqrt(2)])
    np.testing.assert_allclose(norms_of(np.array([-3.0, -1.0, 2.0, 0.0])), [3.0, 2.0 * np.sqrt(2)])
    # 4 and 6 choices.
    np.testing.assert_allclose(bits_of(4), [2 + 33, np.log2(6) + 33])
    assert steps_of(4).tolist() == [1, 2]
    assert steps_of(40).tolist() == [1, 2, 3, 4, 5, 6, 8, 9, 11, 13, 16, 19, 20]
    assert steps_of(1).tolist() == [1]
    sparse = SparseNorms()
    sparse.learn(3, np.array([3.0, 1.0, -2.0, 0.0]))
    share = sparse.share(np.array([3, 3, 3, 1]), np.array([34.9, 35.0, 1e9, 0.0]))
    np.testing.assert_allclose(share, [0.0, 3 / np.sqrt(14), 2 * np.sqrt(2) / np.sqrt(14), 1.0])
    sparse.learn(1, np.zeros(4))
    assert sparse.share(np.array([1]), np.array([1e9])).tolist() == [0.0]


def test_bn2_c_by_hand():
    """The first has the greater norm, and its channel carries one element of it only."""
    updates = np.array([[3.0, 3.0, 3.0, 0.0], [2.9, 2.9, 0.0, 0.0]])
    # A band of 10 Hz for one client: 10 log2(1 + snr) bits in a second are 35.2, and 40.
    radio = {"snr_hz": [10 * (2**3.52 - 1), 10 * (2**4.0 - 1)], "participations": [1, 1]}
    selector = Bn2C(1, bandwidth_hz=10.0)
    selector.observe(reports_of([0, 1], update=updates))
    np.testing.assert_allclose(selector.worth(view_of(2, **radio), 1), [3.0, 2.9 * np.sqrt(2)])
    assert selector.select(view_of(2, **radio), rng()).client.tolist() == [1]
    # Two clients have 5 Hz each, too few bits for anything; twice the time makes up for that.
    assert selector.worth(view_of(2, snr_hz=[150.0, 150.0], participations=[1, 1]), 2).tolist() == [0.0, 0.0]
    assert Bn2C(1).worth(view_of(1), 1).tolist() == [np.inf]
    # Without radio two elements of each are sent: 3 sqrt(2) against 2.9 sqrt(2).
    assert selector.select(view_of(2, participations=[1, 1]), rng()).client.tolist() == [0]


@pytest.mark.parametrize("kind", [Bn2, BcBn2])
def test_a_client_that_fails_comes_behind_others(kind):
    """Norms 1, 4, 3 and 2: three failures make 0.5 of the 4."""
    selector = learnt(kind(3))
    selector.observe(reports_of([1] * 3, delivered=False, update_norm=[np.nan] * 3))
    assert chosen(selector) == [0, 2, 3]
