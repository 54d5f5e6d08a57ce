import numpy as np
import pytest

from fedsim.errors import DataError
from fedsim.learning.data.text.in_words import read_vectors
from tests.support.data_files import written


def test_each_token_has_the_vector_of_its_word_or_zeros(tmp_path):
    path = written(tmp_path / "v.txt", b"b 1 2\nother 0 0\nb c@d 5\na 3 4e0\nb 9 9\n")
    found = read_vectors(path, {"a": 2, "b": 3, "z": 4})
    np.testing.assert_array_equal(found, np.array([[0, 0], [0, 0], [3, 4], [1, 2], [0, 0]], dtype=np.float32))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 1 2\nb 1", "line 2 has 1 numbers; allowed: 2"),
        ("a x", "line 1 holds no vector"),
        ("a nan", "line 1 holds 1 numbers; allowed: 1 to 4096 finite ones"),
        ("a", "line 1 holds 0 numbers"),
        ("c 1", "has none of the 2 words"),
    ],
)
def test_other_lines_are_refused(text, words, tmp_path):
    with pytest.raises(DataError, match=rf"v\.txt: {words}"):
        read_vectors(written(tmp_path / "v.txt", text.encode()), {"a": 2, "b": 3})
