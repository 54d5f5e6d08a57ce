"""MIND's files; `tests.support.data_files` says what they hold: 200 news, reader k has read 10 k to 10 k + 9."""

import numpy as np
import pytest

from fedsim.errors import DataError
from fedsim.learning.data.text.news import MIND
from tests.support.data_files import write_mind, write_vectors


@pytest.fixture
def folder(tmp_path):
    write_mind(tmp_path)
    return tmp_path


def test_news_or_clicks_are_samples(folder):
    data = MIND(length=12).load(folder)
    assert (len(data.train_y), len(data.test_y), data.classes, data.train_users) == (160, 40, 3, None)
    # Topics by their names: music, news, sports.
    assert data.train_y[:3].tolist() == [2, 0, 1]
    assert data.train_x.shape == (160, 12)
    data = MIND(samples="clicks").load(folder)
    assert np.bincount(data.train_users).tolist() == [10] * 16
    assert len(data.test_y) == 40
    assert data.train_y[:3].tolist() == [2, 0, 1]


def test_vectors_of_a_file_take_the_place_of_learned_ones(folder):
    write_vectors(folder)
    data = MIND(glove="vectors.txt").load(folder)
    assert (data.form, data.shape) == ("vectors", (30, 3))
    with pytest.raises(DataError, match=r"nowhere\.txt does not exist: glove = 'nowhere\.txt'"):
        MIND(glove="nowhere.txt").load(folder)


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("news.tsv", "N1\tsports", "line 201 has 2 cells"),
        ("behaviors.tsv", "1\tU1\ttime\tN9999\tN1-0", "line 26 names the news 'N9999'"),
        ("behaviors.tsv", "1\tU1", "line 26 has 2 cells"),
    ],
)
def test_another_line_is_refused_with_its_number(name, line, words, folder):
    with (folder / "MINDsmall_train" / name).open("a") as file:
        file.write(f"\n{line}")
    with pytest.raises(DataError, match=rf"{name}: {words}"):
        MIND(samples="clicks").load(folder)
