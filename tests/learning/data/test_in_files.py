"""Sets in a user's files: what is said where they are missing, what is kept; real files by their published counts."""

import os

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.errors import DataError, ScenarioError
from fedsim.learning import DATASETS
from fedsim.learning.data.datasets import FETCHED, PUBLISHED
from fedsim.learning.data.omniglot import Omniglot
from fedsim.learning.data.sound.spoken_digits import SpokenDigits
from fedsim.learning.data.text.plays import TinyShakespeare
from tests.support.data_files import WRITERS, write_plays, write_reviews


@pytest.mark.parametrize("kind", WRITERS)
def test_a_missing_set_says_where_it_was_looked_for_and_where_it_is_published(kind, tmp_path):
    part = DATASETS.make(kind)
    assert not part.available(tmp_path)
    with pytest.raises(DataError) as caught:
        part.load(tmp_path)
    assert str(tmp_path / part.where()) in str(caught.value)
    assert part.source in str(caught.value)
    WRITERS[kind](tmp_path)
    assert part.available(tmp_path)


def test_every_kind_but_files_of_ones_own_is_either_fetched_or_read_or_made():
    assert {*PUBLISHED} == {*FETCHED, *WRITERS, "digits", "diabetes", "synthetic"}


def test_a_set_is_read_once_and_again_when_its_files_change(tmp_path):
    write_reviews(tmp_path)
    part = DATASETS.make("amazon-reviews")
    first = part.load(tmp_path)
    assert part.load(tmp_path) is first
    assert len(DATASETS.make({"kind": "amazon-reviews", "train_limit": 7}).load(tmp_path).train_users) == 7
    path = tmp_path / "amazon/Toys_and_Games_5.json"
    path.write_text(path.read_text() + "\n" + path.read_text())
    os.utime(path, (1, 1))
    assert len(part.load(tmp_path).train_y) == 320


def test_users_become_clients_and_a_set_without_users_is_refused(tmp_path, monkeypatch):
    write_plays(tmp_path)
    monkeypatch.setenv("FEDSIM_DATA", str(tmp_path))
    learning = {
        "data": {"kind": "tiny-shakespeare", "length": 4, "stride": 3},
        "split": "natural",
        "model": {"kind": "char-lstm", "embedding": 2, "hidden": 3, "layers": 1},
    }
    tables = {"name": "x", "crowd": {"clients": 3}, "network": "pause-two-speed", "selector": "all"}
    tables["rounds"] = {"count": 2}
    history = simulate(Scenario(**tables, learning=learning), store=False)
    assert history.rounds.num_rows == 2
    each = {"task": "next-token", "data": {**learning["data"], "targets": "each"}}
    history = simulate(
        Scenario(**tables, learning={**learning, **each, "model": {**learning["model"], "places": "each"}}), store=False
    )
    # Perplexity is e to the mean loss where no text has padding.
    perplexity, loss = (history.curve("round", name)[1] for name in ("perplexity", "loss"))
    np.testing.assert_allclose(np.log(perplexity), loss, rtol=1e-5)
    assert loss[-1] < loss[0]
    with pytest.raises(ScenarioError, match="a data set that tells users"):
        Scenario(**tables, learning={**learning, "data": "emnist"})


@pytest.mark.data
def test_real_files_have_their_published_counts(small_sets):
    """Omniglot's two small sets have 136 and 156 characters by 20 people; FSDD 50 takes of ten digits by 6 speakers."""
    for part, characters in (("small1", 136), ("small2", 156)):
        data = Omniglot(part=part, side=5).load(small_sets)
        assert (len(data.train_y), len(data.test_y), data.classes) == (16 * characters, 4 * characters, characters)
    data = SpokenDigits().load(small_sets)
    assert np.bincount(data.train_y).tolist() == [270] * 10
    assert np.bincount(data.train_users).tolist() == [450] * 6
    # 309 roles, of which those who say at most 100 characters have no sample of 80 in their first 80 %.
    plays = TinyShakespeare(stride=80).load(small_sets)
    assert 200 < np.unique(plays.train_users).size <= 309
