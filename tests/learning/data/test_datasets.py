import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fedsim.errors import DataError, ScenarioError
from fedsim.learning import CIFAR10, DATASETS, MNIST, Dataset, Digits, FashionMNIST, data_folder
from fedsim.learning.data.datasets import _made


def test_digits_keep_every_sample_once_and_divide_each_class_by_five():
    data, whole = Digits().load(), load_digits()
    assert (len(data.train_y), len(data.test_y)) == (1437, 360)
    assert (data.shape, data.classes, data.pixel_max) == ((1, 8, 8), 10, 16)
    every = np.concatenate([data.train_x, data.test_x]).reshape(1797, 64)
    expected = whole.images.reshape(1797, 64)
    assert sorted(map(bytes, every)) == sorted(map(bytes, expected.astype(np.uint8)))
    counts = np.bincount(whole.target)
    assert np.all(np.abs(np.bincount(data.test_y) - counts / 5) <= 1)


def test_train_limit_keeps_the_first_samples_and_the_whole_test_set():
    some, whole = Digits(train_limit=100).load(), Digits().load()
    np.testing.assert_array_equal(some.train_x, whole.train_x[:100])
    np.testing.assert_array_equal(some.test_y, whole.test_y)
    with pytest.raises(ScenarioError, match="1437 samples"):
        Digits(train_limit=1438).load()
    with pytest.raises(ValueError, match="read-only"):
        Digits().load().train_x[0] = 1


def test_pickles_that_are_not_the_published_ones_are_refused_unread(tmp_path):
    witness = tmp_path / "was unpickled"

    class Bomb:
        def __reduce__(self):
            return Path.touch, (witness,)

    (tmp_path / CIFAR10().where()).mkdir()
    for name in CIFAR10.published:
        (tmp_path / CIFAR10().where() / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="damaged"):
        CIFAR10().load(tmp_path)
    assert not witness.exists()


def test_folder_is_the_argument_then_the_environment_then_the_cache(monkeypatch):
    monkeypatch.setenv("FEDSIM_DATA", "/from/environment")
    assert data_folder("/from/argument") == Path("/from/argument")
    assert data_folder() == Path("/from/environment")
    for name in ("FEDSIM_DATA", "FEDSIM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert data_folder() == Path.home() / ".cache" / "fedsim"


def test_digest_depends_on_every_array():
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 9, (5, 2, 2, 1), dtype=np.uint8), rng.integers(0, 3, 5)] * 2
    seen = {Dataset(*(a.copy() for a in arrays), classes=3, pixel_max=16).digest}
    for place in range(4):
        changed = [a.copy() for a in arrays]
        changed[place].flat[0] = (changed[place].flat[0] + 1) % 3
        seen.add(Dataset(*changed, classes=3, pixel_max=16).digest)
    seen.add(Dataset(*(a.copy() for a in arrays), classes=4, pixel_max=16).digest)
    seen.add(Dataset(*(a.copy() for a in arrays), classes=3, pixel_max=17).digest)
    tokens = [rng.integers(0, 9, (5, 4)), rng.integers(0, 3, 5)] * 2
    vectors = None, np.ones((9, 2), np.float32), np.zeros((9, 2), np.float32)
    words = [Dataset(*(a.copy() for a in tokens), classes=3, vocabulary=9, vectors=one) for one in vectors]
    users = Dataset(*(a.copy() for a in arrays), classes=3, pixel_max=16, train_users=np.arange(5))
    assert len(seen | {one.digest for one in (*words, users)}) == 11
    assert [(one.form, tuple(one.shape)) for one in words] == [("tokens", (4, 9))] + 2 * [("vectors", (4, 2))]


@pytest.mark.slow
@pytest.mark.data
def test_published_sets_have_their_published_counts(data_dir):
    mnist, fashion, cifar = MNIST().load(data_dir), FashionMNIST().load(data_dir), CIFAR10().load(data_dir)
    train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(mnist.train_y).tolist() == train
    assert np.bincount(mnist.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(fashion.train_y).tolist() == [6000] * 10
    assert np.bincount(cifar.train_y).tolist() == [5000] * 10
    assert np.bincount(cifar.test_y).tolist() == [1000] * 10
    assert mnist.shape == fashion.shape == (1, 28, 28)
    assert cifar.shape == (3, 32, 32)
    # Published channel means of CIFAR-10's training images: 0.4914, 0.4822, 0.4465 of the full range.
    means = cifar.train_x.reshape(-1, 3).mean(axis=0, dtype=np.float64) / 255
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=5e-5)
    assert all(DATASETS.make(kind).available(data_dir) for kind in ("mnist", "fashion-mnist", "cifar-10"))


def test_digits_say_which_file_is_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    _made.cache_clear()
    with pytest.raises(DataError, match=r"learning\.data: 'digits' is a file of scikit-learn that cannot be read"):
        Digits().load()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train_x": np.zeros((2, 5))}, "float64"),
        ({"train_x": np.full((2, 5), np.nan, dtype=np.float32)}, "must be finite"),
        ({"pixel_max": 255}, "pixel_max: 255; allowed: images of uint8"),
        ({"vocabulary": 4}, "vocabulary: 4; allowed: tokens of int64"),
        ({"train_y": np.array([0, 2])}, r"row 1 has the label 2; labels must lie in 0\.\.1"),
        ({"test_y": np.array([0])}, "one int64 per sample is needed"),
        ({"test_x": np.zeros((2, 6), dtype=np.float32)}, "both must be alike"),
        ({"train_users": np.array([0])}, "one int64 from 0 on per sample"),
        ({"train_users": np.array([0, -1])}, "one int64 from 0 on per sample"),
        (
            {"train_x": np.array([[4], [0]]), "test_x": np.array([[0], [0]]), "vocabulary": 4},
            r"tokens must lie in 0\.\.3",
        ),
        ({"vectors": np.zeros((3, 2), dtype=np.float32)}, "one of float32 for each of None tokens"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, words):
    numbers, labels = np.zeros((2, 5), dtype=np.float32), np.array([0, 1])
    given = {"train_x": numbers, "train_y": labels, "test_x": numbers.copy(), "test_y": labels.copy(), "classes": 2}
    with pytest.raises(DataError, match=words):
        Dataset(**{**given, **change})
