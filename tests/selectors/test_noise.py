"""What selectors that read updates do about the noise of privacy in them."""

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.selectors.importance import ImportanceSampling
from fedsim.selectors.update_distances import UpdateDistances
from tests.support.views import reports_of, view_of


def test_importance_by_norms_without_their_noise():
    """Squares 25, 10 and 4 with energies 9, 9 and 9: norms 4, 1 and 0."""
    norms = {"update_norm": [5.0, np.sqrt(10.0), 2.0], "noise_energy": [9.0, 9.0, 9.0]}
    as_sent, corrected = (ImportanceSampling(1, floor=0.0, noise=noise) for noise in ("as-sent", "corrected"))
    for selector in (as_sent, corrected):
        selector.observe(reports_of(np.arange(3), **norms))
    assert as_sent.norms(view_of(3)).tolist() == pytest.approx(norms["update_norm"])
    assert corrected.norms(view_of(3)).tolist() == pytest.approx([4.0, 1.0, 0.0])


def test_distances_without_their_noise():
    """(3, 0) and (0, 4) with energies 5 and 7: lengths 2 and 3, a squared distance of 25 - 12, a cosine of 0."""
    updates = {"update": [[3.0, 0.0], [0.0, 4.0]], "noise_energy": [5.0, 7.0]}
    found = {}
    for metric in ("euclidean", "squared-euclidean", "angle"):
        distances = UpdateDistances(metric, "corrected")
        distances.learn(reports_of(np.arange(2), **updates))
        found[metric] = distances.between(np.arange(3), np.arange(3))
    assert found["squared-euclidean"][:2, :2].tolist() == [[0.0, 13.0], [13.0, 0.0]]
    assert found["squared-euclidean"][2].tolist() == [4.0, 9.0, 0.0], "client 2 has sent nothing"
    assert found["euclidean"].tolist() == np.sqrt(found["squared-euclidean"]).tolist()
    assert found["angle"][0, 1] == pytest.approx(np.pi / 2)


def test_what_is_less_than_its_noise_is_nothing():
    """(1, 0) twice, with energies 4: a squared distance of -8, squares of -3."""
    for metric in ("euclidean", "angle"):
        distances = UpdateDistances(metric, "corrected")
        distances.learn(reports_of([0, 1], update=[[1.0, 0.0], [1.0, 0.0]], noise_energy=[4.0, 4.0]))
        assert not distances.between(np.arange(3), np.arange(3)).any()


def test_a_mechanism_that_does_not_state_its_noise_is_refused():
    selector = ImportanceSampling(1, noise="corrected")
    with pytest.raises(SelectorError, match="needs a privacy mechanism that states its noise"):
        selector.observe(reports_of([0], update_norm=[1.0], noise_energy=[np.nan]))
    selector.observe(reports_of([0], update_norm=[np.nan], noise_energy=[np.nan]))
    with pytest.raises(SelectorError, match="'corrected' is not allowed for the distance 'manhattan'"):
        UpdateDistances("manhattan", "corrected")
