import numpy as np
import pytest

from fedsim.errors import DataError
from fedsim.learning.data.images.emnist import EMNIST
from fedsim.learning.data.images.idx import array_of
from tests.support.data_files import write_emnist


def test_images_stand_upright_and_letters_begin_with_0(tmp_path):
    write_emnist(tmp_path)
    raw = tmp_path / "EMNIST/raw"
    for division, first, classes in (("byclass", 0, 62), ("letters", 1, 26)):
        images, labels = (
            array_of((raw / f"emnist-{division}-train-{what}-ubyte").read_bytes(), axes, raw)
            for axes, what in ((3, "images-idx3"), (1, "labels-idx1"))
        )
        data = EMNIST(division=division).load(tmp_path)
        np.testing.assert_array_equal(data.train_x[..., 0], images.transpose(0, 2, 1))
        np.testing.assert_array_equal(data.train_y, labels - first)
        assert (data.classes, data.shape, data.train_users) == (classes, (1, 5, 4), None)


def test_labels_of_another_division_are_refused(tmp_path):
    write_emnist(tmp_path)
    for path in (tmp_path / "EMNIST/raw").glob("emnist-byclass-*"):
        path.rename(path.with_name(path.name.replace("byclass", "digits")))
    with pytest.raises(DataError, match=r"labels-idx1-ubyte: label \d\d in row \d+; labels must lie in 0\.\.9"):
        EMNIST(division="digits").load(tmp_path)
