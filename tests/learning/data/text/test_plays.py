"""Tiny Shakespeare, with a speech counted by hand."""

import pytest

from fedsim.errors import DataError
from fedsim.learning.data.text.plays import TinyShakespeare
from tests.support.data_files import written

TEXT = "A:\nabcd\nab\n\nB:\nxy\n\nA:\nba\n\nC:\nq\n"


def test_the_samples_of_each_role_are_its_speeches_by_hand(tmp_path):
    r"""A says "abcd\nab\nba", 10 characters: 8 for training; B and C say too little. Tokens: \n 2, a 3, b 4, c 5, d 6.

    B's and C's first 80 % are "x" and nothing, so x is known; 7.
    """
    written(tmp_path / "tinyshakespeare/input.txt", TEXT.encode())
    data = TinyShakespeare(length=1, stride=1).load(tmp_path)
    assert (data.form, data.vocabulary, data.classes) == ("tokens", 8, 8)
    assert data.train_x[:, 0].tolist() == [3, 4, 5, 6, 2, 3, 4]
    assert data.train_y.tolist() == [4, 5, 6, 2, 3, 4, 2]
    assert data.train_users.tolist() == [0] * 7
    assert (data.test_x.tolist(), data.test_y.tolist()) == ([[4]], [3])
    data = TinyShakespeare(length=2, stride=3, train_share=0.6).load(tmp_path)
    assert (data.train_x.tolist(), data.train_y.tolist()) == ([[3, 4], [6, 2]], [5, 3])
    data = TinyShakespeare(length=2, stride=3, train_share=0.6, targets="each").load(tmp_path)
    assert (data.classes, data.vocabulary) == (None, 8)
    assert (data.train_x.tolist(), data.train_y.tolist()) == ([[3, 4], [6, 2]], [[4, 5], [2, 3]])
    assert data.train_users.tolist() == [0, 0]


def test_characters_that_training_does_not_have_are_one_token(tmp_path):
    written(tmp_path / "tinyshakespeare/input.txt", b"A:\naaaaaaaabz\n")
    data = TinyShakespeare(length=1, stride=1).load(tmp_path)
    assert (data.test_x.tolist(), data.test_y.tolist()) == ([[1]], [1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no speeches"),
        ("no name\n", "line 1 begins a speech without a name"),
        ("A:\nab\n", "no role says more"),
    ],
)
def test_another_text_is_refused(text, words, tmp_path):
    written(tmp_path / "tinyshakespeare/input.txt", text.encode())
    with pytest.raises(DataError, match=rf"input\.txt: .*{words}"):
        TinyShakespeare().load(tmp_path)
