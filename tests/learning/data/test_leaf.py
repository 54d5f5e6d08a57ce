"""FEMNIST in LEAF's files; `tests.support.data_files` says what they hold."""

import json

import numpy as np
import pytest

from fedsim.errors import DataError, ScenarioError
from fedsim.learning import DATASETS
from fedsim.learning.data.images.femnist import FEMNIST
from tests.support.data_files import write_femnist


@pytest.fixture
def folder(tmp_path):
    write_femnist(tmp_path)
    return tmp_path


def test_every_writer_is_a_user_and_pixels_are_those_before_the_division_by_255(folder):
    data = DATASETS.make("femnist").load(folder)
    assert (data.train_x.shape, data.test_x.shape, data.classes) == ((160, 28, 28, 1), (24, 28, 28, 1), 62)
    np.testing.assert_array_equal(data.train_users, np.repeat(np.arange(8), 20))
    np.testing.assert_array_equal(data.train_x[:, 0, 0, 0], data.train_users)
    assert data.train_x[0, 1, 0, 0] == 255
    assert data.train_x[0, 27, 27, 0] == 0
    assert data.train_y[:21].tolist() == [*range(20), 1]


def test_the_first_writers_are_read_with_their_own_test_samples(folder):
    data = FEMNIST(users=5).load(folder)
    assert set(data.train_users.tolist()) == set(range(5))
    assert sorted(set(data.test_x[:, 0, 0, 0].tolist())) == list(range(5))
    assert np.unique(FEMNIST(users=8).load(folder).train_users).size == 8
    with pytest.raises(
        ScenarioError, match=r"learning\.data\.users: 9 is not allowed; .* 8 writers .*; allowed: 1 to 8"
    ):
        FEMNIST(users=9).load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"users": None},
        {"user_data": {}},
        {"user_data": {"f0000_0": {"x": [[0.0] * 783], "y": [0]}}},
        {"user_data": {"f0000_0": {"x": [[2.0] * 784], "y": [0]}}},
        {"user_data": {"f0000_0": {"x": [[0.0] * 784], "y": [62]}}},
        {"user_data": {"f0000_0": {"x": [[0.0] * 784], "y": [0, 1]}}},
        {"num_samples": [20, 20, 20, 19]},
        {"num_samples": [20, 20, 20]},
    ],
)
def test_another_content_is_refused_with_the_file(change, folder):
    path = folder / "femnist/train/all_data_0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=r"all_data_0\.json: cannot be read as a file of LEAF's"):
        FEMNIST().load(folder)


def edited(path, edit):
    content = json.loads(path.read_text())
    edit(content["user_data"])
    path.write_text(json.dumps(content))


def test_a_label_that_is_no_whole_number_is_refused(folder):
    edited(folder / "femnist/train/all_data_0.json", lambda users: users["f0001_1"]["y"].__setitem__(3, 3.5))
    with pytest.raises(DataError, match=r"all_data_0\.json: .* a label of 'f0001_1' is 3\.5"):
        FEMNIST().load(folder)


def test_a_division_by_users_tests_with_other_writers(folder):
    """Writers of the second pair of files are for testing, and keep all their samples."""
    (folder / "femnist/train/all_data_1.json").unlink()
    (folder / "femnist/test/all_data_0.json").unlink()
    data = FEMNIST().load(folder)
    assert sorted(set(data.train_x[:, 0, 0, 0].tolist())) == [0, 1, 2, 3]
    assert sorted(set(data.test_x[:, 0, 0, 0].tolist())) == [4, 5, 6, 7]
    with pytest.raises(
        DataError, match=r"no writer of the first 2 for training has samples here; allowed: .*-t sample"
    ):
        FEMNIST(users=2).load(folder)


def test_writers_beyond_the_first_are_not_looked_at(folder):
    """Images of the third writer are no numbers, and the second file is no JSON: two writers load all the same."""
    for part in ("train", "test"):
        edited(folder / f"femnist/{part}/all_data_0.json", lambda users: users["f0002_2"].update(x=["no"]))
    (folder / "femnist/train/all_data_1.json").write_text("no JSON")
    assert np.unique(FEMNIST(users=2).load(folder).train_users).size == 2
    with pytest.raises(DataError):
        FEMNIST(users=4).load(folder)


def test_numbers_are_rounded_to_pixels(folder):
    """LEAF writes pixels over 255 with a few digits: 0.0039 is 0.9945 / 255, and 0.4980 is 126.99 / 255."""
    first, digits = slice(3), [0.0039, 0.4980, 0.9999]
    edited(folder / "femnist/train/all_data_0.json", lambda users: users["f0000_0"]["x"][0].__setitem__(first, digits))
    assert FEMNIST().load(folder).train_x[0, 0, :3, 0].tolist() == [1, 127, 255]
