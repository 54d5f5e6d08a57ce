"""Omniglot's archives; `tests.support.data_files` says what they hold."""

import io
import zipfile

import numpy as np
import pytest

from fedsim.errors import DataError
from fedsim.learning.data.images.omniglot import Omniglot
from tests.support.data_files import png, write_omniglot, written

ARCHIVE = "omniglot/images_background_small1.zip"


@pytest.fixture
def folder(tmp_path):
    write_omniglot(tmp_path)
    return tmp_path


def test_users_are_drawers_within_an_alphabet_and_each_fifth_is_for_testing(folder):
    data = Omniglot().load(folder)
    assert (len(data.train_y), len(data.test_y), data.classes) == (8 * 16, 8 * 4, 8)
    assert np.bincount(data.train_users).tolist() == [4] * 32
    assert np.bincount(data.train_y).tolist() == [16] * 8


def test_drawings_are_made_smaller_by_means(folder):
    """A drawing has its first 15 n of 105 rows black; on 7 x 7 pixels these are n rows, and on 28 x 28 four n."""
    for side in (7, 28):
        data = Omniglot(side=side).load(folder)
        black = (data.train_x[..., 0] == 0).all(axis=2).sum(axis=1)
        np.testing.assert_array_equal(black, (data.train_y % 4 + 1) * side // 7)
    assert data.train_x.max() == 255


def test_what_is_no_drawing_of_omniglots_is_refused(folder):
    for pixels, words in ((np.zeros((3, 3), np.uint8), "a drawing of 3 x 3"), (None, "cannot identify")):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("x/Greek/character01/0001_01.png", b"x" if pixels is None else png(pixels))
        written(folder / ARCHIVE, file.getvalue())
        with pytest.raises(DataError, match=rf"small1\.zip: cannot be read as an archive of Omniglot's: .*{words}"):
            Omniglot().load(folder)
    with zipfile.ZipFile(folder / ARCHIVE, "w") as archive:
        archive.writestr("x/Greek/character01/0001_01.png", bytes(1 << 17))
    with pytest.raises(DataError, match="more than 65536 bytes"):
        Omniglot().load(folder)
