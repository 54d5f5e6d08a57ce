"""Sets in a user's files: what is said where they are missing, what is kept; real files by their published counts."""

import os
from functools import partial

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim import simulate
from fedsim.errors import DataError, ScenarioError
from fedsim.learning import DATASETS
from fedsim.learning.data.datasets import FETCHED, PUBLISHED
from fedsim.learning.data.images.omniglot import Omniglot
from fedsim.learning.data.sound.spoken_digits import SpokenDigits
from fedsim.learning.data.text.plays import TinyShakespeare
from tests.support.data_files import WRITERS, write_emnist, write_mind, write_omniglot, write_plays, write_reviews
from tests.support.short_runs import of_learning


@pytest.mark.parametrize("kind", [*WRITERS, *FETCHED])
def test_a_missing_set_says_where_it_was_looked_for_and_where_it_is_published(kind, tmp_path):
    part = DATASETS.make(kind)
    assert not part.available(tmp_path)
    with pytest.raises(DataError) as caught:
        part.load(tmp_path)
    assert str(tmp_path / part.where()) in str(caught.value)
    if kind in FETCHED:
        assert f"fedsim data {kind} --download --data-dir {tmp_path}" in str(caught.value)
        return
    assert part.source in str(caught.value)
    missing = str(caught.value).split("(missing: ")[1].split(")")[0]
    assert part.found(tmp_path) == ()
    WRITERS[kind](tmp_path)
    assert part.available(tmp_path)
    assert part.missing(tmp_path) == []
    wanted = {
        "emnist": ["EMNIST/raw/emnist-byclass-train-images-idx3-ubyte", "emnist-byclass-test-labels-idx1-ubyte"],
        "femnist": ["femnist/train/*.json", "femnist/test/*.json"],
        "omniglot": ["omniglot/images_background_small1.zip"],
        "spoken-digits": ["fsdd/fsdd_logmel.npz or fsdd/recordings/*.wav"],
        "speech-commands": ["speech_commands_v0.02/testing_list.txt", "speech_commands_v0.02/validation_list.txt"],
        "mind": ["MINDsmall_train/news.tsv"],
        "amazon-reviews": ["amazon/Toys_and_Games_5.json.gz or amazon/Toys_and_Games_5.json or "],
        "tiny-shakespeare": ["tinyshakespeare/input.txt or tinyshakespeare/input.txt.gz"],
    }
    assert all(name in missing for name in wanted[kind])


def test_the_one_missing_file_is_named(tmp_path):
    write_mind(tmp_path)
    (tmp_path / "MINDsmall_train/behaviors.tsv").unlink()
    with pytest.raises(DataError, match=r"\(missing: MINDsmall_train/behaviors\.tsv\)"):
        DATASETS.make({"kind": "mind", "samples": "clicks"}).load(tmp_path)


def test_what_is_found_is_told_with_the_option_that_names_it(tmp_path):
    for write in (write_omniglot, write_mind, write_reviews, write_plays):
        write(tmp_path)
    (tmp_path / "MINDlarge_train/behaviors.tsv").unlink()
    (tmp_path / "omniglot/images_background_small1.zip").unlink()
    (tmp_path / "tinyshakespeare/input.txt").rename(tmp_path / "tinyshakespeare/input.txt.gz")
    found = {kind: DATASETS.make(kind).found(tmp_path) for kind in PUBLISHED}
    assert found["omniglot"] == ("part = 'small2': omniglot/images_background_small2.zip",)
    assert found["mind"] == (
        "folder = 'MINDlarge_train' without behaviors.tsv",
        "folder = 'MINDsmall_train' with behaviors.tsv",
    )
    assert found["amazon-reviews"] == (
        "name = 'Toys_and_Games_5': amazon/Toys_and_Games_5.json",
        "name = 'two': amazon/two.jsonl.gz",
    )
    assert found["tiny-shakespeare"] == ("tinyshakespeare/input.txt.gz",)
    assert found["emnist"] == found["mnist"] == ()
    write_emnist(tmp_path)
    assert DATASETS.make("emnist").found(tmp_path) == (
        "division = 'byclass'",
        "division = 'bymerge'",
        "division = 'letters'",
    )


def test_a_name_of_a_file_is_asked_for_where_one_is_meant():
    with pytest.raises(ValidationError, match="the name of a file without its ending"):
        DATASETS.make({"kind": "amazon-reviews", "name": "a/b"})


def test_fewer_users_than_clients_are_counted(tmp_path):
    """Ten reviewers, of whom each has 16 of the first 160 reviews."""
    write_reviews(tmp_path)
    enough = "with min_samples = 17 training samples or more for 11 clients; allowed: a smaller min_samples"
    for least, users, words in ((1, 10, "for 11 clients; allowed: crowd"), (17, 0, enough)):
        split = {"kind": "natural", "min_samples": least}
        learning = {"data": "amazon-reviews", "split": split, "model": "text-cnn"}
        scenario = of_learning(learning, clients=11, cohort=None)
        with pytest.raises(ScenarioError, match=rf"the data set has {users} users {words}"):
            simulate(scenario, data_dir=tmp_path, store=False)


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
    short = partial(of_learning, clients=3, rounds=2, cohort=None)
    history = simulate(short(learning), store=False)
    assert history.rounds.num_rows == 2
    each = {"task": "next-token", "data": {**learning["data"], "targets": "each"}}
    model = {**learning["model"], "places": "each"}
    history = simulate(short({**learning, **each, "model": model}), store=False)
    # Perplexity is e to the mean loss where no text has padding.
    perplexity, loss = (history.curve("round", name)[1] for name in ("perplexity", "loss"))
    np.testing.assert_allclose(np.log(perplexity), loss, rtol=1e-5)
    assert loss[-1] < loss[0]
    with pytest.raises(ScenarioError, match="a data set that tells users"):
        short({**learning, "data": "emnist"})


@pytest.mark.slow
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
