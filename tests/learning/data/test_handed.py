"""Arrays, datasets of torch, and classes and functions that give them, as data sets."""

import random
from functools import partial

import numpy as np
import pandas
import pytest
import torch
from numpy.testing import assert_array_equal

from fedsim import simulate
from fedsim.errors import DataError, PartError, ScenarioError
from fedsim.learning import DATASETS, TASKS, Dataset, Digits, Division, dataset_of
from fedsim.learning.data.given import padded
from tests.support.short_runs import of_learning

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(20, 3)), RNG.integers(0, 3, 20)


class Texts(torch.utils.data.Dataset):
    """Texts of two to five words with their lengths as labels, as a user of torch has them."""

    def __init__(self, count=20, train=True):
        self._count, self._train = count, train

    def __len__(self):
        return self._count if self._train else 5

    def __getitem__(self, index):
        length = 2 + index % 4
        return torch.arange(1, length + 1), length - 2


class Broken(Texts):
    def __getitem__(self, index):
        return {}[index]


def pair(rows=20):
    return X[:rows], X[:rows, :1] ** 2


@pytest.mark.parametrize(
    ("x", "y", "form", "told"),
    [
        (np.zeros((5, 4, 6), np.uint8), Y[:5], "images", (1, 4, 6)),
        (np.zeros((5, 4, 6, 3), np.uint8), Y[:5], "images", (3, 4, 6)),
        (torch.zeros(5, 3, 4, 6, dtype=torch.uint8), Y[:5], "images", (3, 4, 6)),
        (np.zeros((5, 1, 28, 2), np.uint8), Y[:5], "images", (1, 28, 2)),
        (np.zeros((5, 32, 32, 4), np.uint8), Y[:5], "images", (4, 32, 32)),
        (np.arange(20).reshape(5, 4), Y[:5], "tokens", (4, 20)),
        (np.arange(40, dtype=np.int32).reshape(5, 2, 4), Y[:5], "tensors", (2, 4)),
        (X[:5] > 0, Y[:5], "tensors", (3,)),
        (torch.zeros(5, 2, 2), Y[:5].tolist(), "numbers", (2, 2)),
        ([[1, 2], [3], [4, 5, 6], [1], [2]], Y[:5], "tokens", (3, 7)),
    ],
)
def test_types_say_what_samples_are(x, y, form, told):
    data = dataset_of((x, y))
    assert (data.form, tuple(data.shape)) == (form, told)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (X[:, 0], ("float32", (1,))),
        (X, ("float32", (3,))),
        (X > 0, ("uint8", (3,))),
        (Y > 0, ("int64", ())),  # labels
        (np.arange(40).reshape(20, 2).astype(np.int32), ("int64", (2,))),
    ],
)
def test_targets_keep_their_kind(y, told):
    data = dataset_of((X, y))
    assert (str(data.train_y.dtype), data.train_y.shape[1:]) == told
    assert data.classes == (None if told[1] else 2)


def test_a_dataset_of_torch_is_read_and_filled_up():
    data = dataset_of((Texts(), Texts(train=False)))
    assert data.train_x[:2].tolist() == [[1, 2, 0, 0, 0], [1, 2, 3, 0, 0]]
    assert data.train_y[:5].tolist() == [0, 1, 2, 3, 0]
    assert (len(data.test_y), data.vocabulary, data.classes) == (5, 6, 4)
    assert padded([np.ones((2, 2)), np.ones((1, 2))]).tolist() == [[[1, 1], [1, 1]], [[1, 1], [0, 0]]]


def test_targets_of_several_lengths_are_filled_up_with_what_is_asked_for():
    rows = [np.array([[1.5], [2.5]]), np.array([[3.5]])]
    one = dataset_of((rows, rows), target_fill=-9, division=Division(rows="first"))
    assert one.train_y.tolist() == [[[3.5], [-9.0]]]
    assert one.train_x.tolist() == [[[3.5], [0.0]]]
    assert one.train_y.dtype == np.float32
    sets = dataset_of((rows, [np.array([[True]]), np.array([[False], [True]])]), division=Division(rows="first"))
    assert (sets.test_y.dtype, sets.test_y.tolist()) == (np.uint8, [[[1], [255]]])
    parts = (rows, [np.array([4, 4]), np.array([4])]) * 2
    assert dataset_of(parts).test_y.tolist() == [[4, 4], [4, -100]]
    taken = (rows, [np.array([-100, -101]), np.array([0])]) * 2
    assert dataset_of(taken).test_y.tolist() == [[-100, -101], [0, -102]]
    with pytest.raises(DataError, match="target_fill: 4 is not allowed, since a target is 4"):
        dataset_of(parts, target_fill=4)


@pytest.mark.parametrize(("first", "fill", "vocabulary"), [(1, 0, 7), (0, 7, 8)])
def test_texts_are_filled_up_with_a_token_that_is_not_theirs(first, fill, vocabulary):
    texts = [[5, 1], [2, 4, 6], [first]]
    data = dataset_of((texts, [0, 1, 1]), division=Division(rows="last"))
    assert data.train_x.tolist() == [[5, 1, fill], [2, 4, 6]]
    assert data.test_x.tolist() == [[first, fill, fill]]
    assert (data.token_fill, data.vocabulary, data.shape.padding) == (fill, vocabulary, fill)
    assert data.notes[1] == "samples of 1 to 3 places are filled up at their end: 3 of 9 places"
    assert data.tokens == 7
    plain = data.filled_with_zeros()
    assert plain.train_x.tolist() == [[5, 1, 0], [2, 4, 6]]
    assert (plain.vocabulary, plain.shape.padding) == (7, None if first == 0 else 0)
    assert dataset_of(([[0, 1], [2, 3]], [0, 1])).shape.padding is None


@pytest.mark.parametrize(("rows", "fill"), [([[1], [1, 2]], 0.5), ([np.ones(1, np.uint8), np.ones(2, np.uint8)], 256)])
def test_what_their_type_does_not_have_fills_nothing_up(rows, fill):
    with pytest.raises(DataError, match=f"cannot be filled up with {fill}; allowed: a number that u?int"):
        padded(rows, fill)


def lengths(count=10):
    return [np.ones(1 + n % 3) for n in range(count)], [np.ones(1 + n % 3) for n in range(count)]


def own_fill(target_fill):
    return np.full((5, 2), target_fill), np.arange(5.0)


def test_files_say_what_fills_targets_up():
    table = {"kind": f"{__name__}:lengths", "count": 5, "target_fill": -1}
    part = DATASETS.make(table)
    assert np.unique(part.load().train_y).tolist() == [-1, 1]
    assert np.unique(part.load().train_x).tolist() == [0, 1]
    assert DATASETS.describe(part) == table
    own = DATASETS.make({"kind": f"{__name__}:own_fill", "target_fill": 3}).load()  # its own parameter
    assert own.train_x.max() == 3
    with pytest.raises(ScenarioError, match=r"target_fill: 'x' is not allowed; allowed: a number"):
        of_learning({"data": {**table, "target_fill": "x"}})


def test_files_name_classes_and_functions_and_these_stand_for_themselves():
    place = f"{__name__}:Texts"
    both = DATASETS.make({"kind": place, "count": 8}).load()
    assert (len(both.train_y), len(both.test_y)) == (8, 5)  # made twice, as the class has a parameter "train"
    assert DATASETS.describe(DATASETS.make({"kind": place, "count": 8})) == {"kind": place, "count": 8}
    assert len(DATASETS.make({"kind": f"{__name__}:pair", "rows": 10}).load().train_y) == 8
    for found in (Texts, pair):
        part = DATASETS.make(found)
        assert part == DATASETS.make(f"{__name__}:{found.__name__}")
        assert DATASETS.describe(part) == {"kind": f"{__name__}:{found.__name__}"}
    assert len(DATASETS.make(Texts).load().train_y) == 20


def test_the_two_parts_of_a_random_split_are_for_training_and_for_testing():
    whole = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    parts = torch.utils.data.random_split(whole, [14, 6])
    data = dataset_of(parts)
    assert_array_equal(data.train_x, X[parts[0].indices].astype(np.float32))
    assert_array_equal(data.test_y, Y[parts[1].indices])
    assert dataset_of([(X[0], 1), (X[1], 0)]).test_y.size == 1  # two pairs are samples


def test_tensors_of_bfloat16_and_with_a_gradient_are_read():
    x = torch.tensor([[1.5, -2.0]] * 10)
    wanted = dataset_of((x, Y[:10]))
    layer = torch.nn.Parameter(x.clone())
    for given in (x.bfloat16(), layer, layer * 1, list(x.bfloat16()), list(layer)):
        data = dataset_of((given, Y[:10]))
        assert data.train_x.dtype == np.float32
        assert data.digest == wanted.digest
    items = torch.utils.data.TensorDataset(layer, torch.from_numpy(Y[:10]))
    assert dataset_of(items).digest == wanted.digest
    assert layer.requires_grad, "the object itself stays as it is"


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from zip(X, Y, strict=True)

    def __len__(self):
        return len(X)


@pytest.mark.parametrize(
    "given", [(X.copy(), Y), lambda: (X, Y), partial(lambda rows: (X[:rows], Y[:rows]), 20), list(Stream())]
)
def test_the_digest_is_that_of_the_content_and_what_no_file_can_name_is_called_at_once(given):
    assert DATASETS.make(given).content == dataset_of((X, Y)).digest != dataset_of((X + 1, Y)).digest


class Needy(Texts):
    def __init__(self, folder):
        super().__init__()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Stream(), r"Stream is read in an order of its own; allowed: a dataset of torch with __len__ and __getitem__"),
        (torch.utils.data.DataLoader(Texts()), r"DataLoader is read in an order of its own; allowed"),
        (Needy, r"test_handed:Needy needs folder; allowed: an object that it gives, such as Needy\(...\)"),
        (Digits, r"Digits is a class; allowed: a part of it, such as Digits\(\)"),
        (torch.utils.data.TensorDataset(*[torch.zeros(5)] * 3), r"items of 3 parts; allowed: pairs of a sample"),
        ((X, Y[:3]), "20 samples and 3 targets"),
        ({"kind": f"{__name__}:pair", "lines": 3}, "pair has no parameter 'lines'; allowed: rows"),
        (3, "3 is no data set; allowed: a Dataset, samples and targets as two arrays"),
        (([np.ones(2), np.ones((2, 2))], Y[:2]), "shapes that differ in their length"),
        ((X, X, X), r"its third part is float64 of shape \(20, 3\); allowed: the user of each of the 20 samples"),
        ((np.zeros((4, 3, 5, 1), np.uint8), Y[:4]), r"which axis has the channels cannot be told; allowed"),
        ((np.zeros((4, 5, 5, 5), np.uint8), Y[:4]), r"which axis has the channels cannot be told; allowed"),
        ((X, Y, np.array(["a", None] * 10)), r"its third part, row 2: None is no user; allowed: one of each sample"),
        ((pandas.DataFrame(X), pandas.Series(Y, range(20)[::-1])), "the same index in the same order; allowed: rows"),
        ((pandas.DataFrame(X), Y, pandas.Series(Y, range(20)[::-1])), "users do not have the same index in the same"),
        ((pandas.DataFrame(X, range(1, 21)), pandas.Series(Y, range(2, 22))), "do not have the same index"),
        ((X, Y, np.array(["a", ""] * 10)), r"its third part, row 2: nothing is no user"),
        ((np.ma.masked_greater(X, 0.5), Y), "masked in places; allowed: numbers everywhere"),
        ((np.zeros((4, 5, 5), np.uint8), Y[:4], np.zeros((4, 5, 5)), Y[:4]), "one is uint8 and one floating-point"),
        (pandas.DataFrame(X), r"DataFrame does not say which of its columns are targets; allowed: a Dataset"),
        ((X, np.arange(20) * 10**8), "labels reach 1,900,000,000, and there are 20 of them; .* without such gaps"),
        ((X, np.array(["a", "b"] * 10)), r"such as .*'a'.* are no numbers; allowed: numbers; names become"),
        ((pandas.DataFrame(X).assign(town="Rome"), Y), r"such as 'Rome' are no numbers"),
        ((Texts(), Texts(), Texts()), r"3 parts \(Texts, Texts, Texts\); allowed: a Dataset"),
    ],
)
def test_what_is_not_read_is_refused_in_words(given, words):
    with pytest.raises((DataError, ValueError), match=words):
        DATASETS.make(given)


def test_frames_are_read_by_their_places_not_by_their_labels():
    wanted = dataset_of((X, Y)).digest
    order = RNG.permutation(20)
    x, y = pandas.DataFrame(X, index=order), pandas.Series(Y, index=order)
    sparse = torch.tensor(X).to_sparse(), torch.tensor(Y)
    for given in ((x, y), (x, y.to_frame()), (x, y.astype("Int64")), (x, y.astype("category")), sparse):
        assert dataset_of(given).digest == wanted
    flags = dataset_of((x.assign(flag=[True, False] * 10), y))
    assert flags.train_x.shape == (16, 4)
    series = np.empty(3, dtype=object)
    series[:] = [[1], [2, 3], [4]]
    assert dataset_of((series, [0, 1, 0])).train_x.shape == (2, 2)


@pytest.mark.parametrize(
    ("task", "targets", "words"),
    [
        ("classification", Y[:, None], r"int64 of shape \(n, 1\); labels are y\[:, 0\]; allowed here"),
        ("classification", Y.astype(float), r"labels are whole numbers: y.astype\(int\); allowed here"),
        ("classification", np.eye(3)[Y], r"labels are y.argmax\(axis=1\); allowed here"),
        ("classification", X, r"float32 of shape \(n, 3\); allowed here"),
        (
            "regression",
            Y,
            r"int64 of shape \(n\), labels of 3 classes; whole numbers become so by y.astype\('float32'\)",
        ),
        (
            "multi-label",
            (X > 0).astype(int),
            r"int64 of shape \(n, 3\); others of 0 and 1 become so by y.astype\('uint8'\)",
        ),
    ],
)
def test_targets_of_another_type_are_refused_with_what_makes_them_fit(task, targets, words):
    with pytest.raises(DataError, match=words):
        TASKS.make(task).outputs(dataset_of((X, targets)))


class OneBuffer(Texts):
    buffer = np.zeros(3)

    def __getitem__(self, index):
        self.buffer[:] = index
        return self.buffer, index % 3


def test_samples_in_the_same_memory_are_told_apart():
    assert_array_equal(dataset_of(OneBuffer(), division=Division(rows="last")).train_x[:, 0], np.arange(16))


class Noisy(Texts):
    def __getitem__(self, index):
        return torch.randn(2) + np.random.normal() + random.random(), index % 3  # noqa: NPY002, S311


@pytest.mark.parametrize("given", [Noisy, Noisy()], ids=["class", "object"])
def test_equal_runs_read_equal_samples_where_these_are_drawn(given):
    before = random.getstate()
    first, again = (DATASETS.make(one).load().digest for one in (given, Noisy if given is Noisy else Noisy()))
    assert first == again
    assert random.getstate() == before


def test_a_data_set_handed_over_does_not_change_with_arrays_of_which_it_is_a_part():
    x, y = X.astype(np.float32), Y.astype(np.int64)
    part = DATASETS.make(Dataset(x[:15], y[:15], x[15:], y[15:], classes=3))
    x[:] = 0
    assert part.load().train_x.any()


def test_a_dataset_that_fails_is_named():
    with pytest.raises(PartError, match=r"data set .*test_handed:Broken.__getitem__ failed with KeyError: 0") as found:
        DATASETS.make({"kind": f"{__name__}:Broken", "train": True}).load()
    assert len(str(found.value).splitlines()) == 5


def test_arrays_with_integers_of_any_type_are_learned_by_a_module_that_takes_them():
    x = RNG.integers(-4, 5, (40, 2, 2)).astype(np.int16)

    class Sums(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, samples):
            return self.layer(samples.float().sum(1))

    learning = {"data": (x, (x.sum((1, 2)) > 0).astype(np.int64)), "model": Sums()}
    scenario = of_learning(learning, clients=3, rounds=2)
    one, other = (simulate(scenario, executor=kind).evaluations for kind in ("sequential", "stacked"))
    assert one.column("loss").to_numpy() == pytest.approx(other.column("loss").to_numpy(), rel=1e-5)
    with pytest.raises(ScenarioError, match="cannot be written as TOML"):
        scenario.to_toml()
