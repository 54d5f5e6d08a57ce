"""Data sets handed over in Python or named by their class or function in a file: arrays, datasets of torch."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsim.answers import asked
from fedsim.arrays import Shaped
from fedsim.errors import DataError
from fedsim.foreign import Foreign, check_call, code_of, parameters_of, place_of, required_of
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.rows import Rows, array_of, padded
from fedsim.registry import Component

TARGET_FILL: Final = "target_fill"
"""Option of a class or function in a file: the number that fills up targets of several lengths."""

_TEST_EVERY: Final = 5
_PAIR, _FOUR = 2, 4
_IMAGE_AXES: Final = (3, 4)
_ALLOWED: Final = (
    "allowed: a Dataset, samples and targets as two arrays, four arrays (train_x, train_y, test_x, test_y), a dataset "
    "of torch, two of them (training and test), or a class or function that gives one of these"
)


@runtime_checkable
class MapStyle(Protocol):
    """A dataset of torch whose items are pairs of a sample and its target."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class HandedData(Foreign):
    """A data set of the user's own: arrays, a dataset of torch, or a class or function that gives one."""

    @classmethod
    def of_object(cls, value: Any) -> Self:
        """Return the part of an object, which is read now and identified by the digest of its content.

        A class or function that a file can name is the part that the file would name; any other one is called now.
        """
        if isinstance(value, str | bytes | Mapping | int | float) or value is None:
            raise ValueError(f"{value!r} is no data set; {_ALLOWED}")
        place = place_of(value)
        if inspect.isclass(value) and issubclass(value, Component):
            raise ValueError(f"{place} is a class; allowed: a part of it, such as {value.__name__}()")
        if inspect.isclass(value) or (callable(value) and not isinstance(value, MapStyle)):
            made = cls._of_call(place, value)
            if code_of(value) is value and "<" not in place:
                return made
            data = made.load()
        else:
            data = dataset_of(value, noun=f"data set {place}")
        return cls.holding(data, place, content=data.digest)

    @classmethod
    def _of_call(cls, place: str, found: Callable[..., Any]) -> Self:
        further = [name for name in required_of(found) if name not in ("data_dir", "train")]
        if further:
            raise ValueError(
                f"{place} needs {', '.join(further)}; allowed: an object that it gives, such as "
                f"{place.rpartition(':')[2]}(...), or parameters with defaults, 'train' and 'data_dir'"
            )
        return cls.holding(found, place)

    @classmethod
    def of_place(cls, place: str, found: Any, options: Mapping[str, Any]) -> Self:
        """Return the part that a class or function makes with options, ``target_fill`` among them."""
        fill = 0 if TARGET_FILL in parameters_of(found) else options.get(TARGET_FILL, 0)
        if isinstance(fill, bool) or not isinstance(fill, int | float):
            raise ValueError(f"{TARGET_FILL}: {fill!r} is not allowed; allowed: a number")
        part = cls.holding(found, place, options)
        check_call(place, found, part._for_call)
        return part

    @property
    def stands_for(self) -> object:
        """The class or function whose code counts in digests; None for an object, whose content counts."""
        return None if self.content else super().stands_for

    def load(self, data_dir: Path | None = None) -> Dataset:
        """Return the data set.

        A class or function is called with the options, with ``data_dir`` if it has such a parameter, and if it has a
        parameter ``train`` twice: with True for the training set and with False for the test set. It gets
        ``target_fill`` only if it has such a parameter.
        """
        if self.content:
            held: Dataset = self.found
            return held
        plain = HandedData.holding(self.found, self.place, self._for_call)
        fill = 0 if TARGET_FILL in plain.options else self.options.get(TARGET_FILL, 0)
        if "train" in parameters_of(self.found) and "train" not in self.options:
            given: Any = tuple(plain.called("data set", data_dir=data_dir, train=train) for train in (True, False))
        else:
            given = plain.called("data set", data_dir=data_dir)
        return dataset_of(given, target_fill=fill, noun=f"data set {self.place}")

    @property
    def _for_call(self) -> dict[str, Any]:
        known = parameters_of(self.found)
        return {name: value for name, value in self.options.items() if name != TARGET_FILL or name in known}


def dataset_of(value: Any, *, target_fill: float = 0, noun: str = "the data set") -> Dataset:
    """Return a data set made of arrays, lists of samples or datasets of torch.

    Floating-point numbers become float32. uint8 of shape (n, h, w) or (n, h, w, channels) are images. Whole numbers of
    shape (n, length) are tokens. Samples of different lengths are filled up with 0 at their end, their targets with
    ``target_fill``, which a task may take for padding. Targets that are whole numbers of shape (n,) are labels; numbers
    of shape (n,) become (n, 1); truth values become uint8.
    """
    if isinstance(value, Dataset):
        return value
    parts = list(value) if isinstance(value, tuple) or _is_split(value) else [value]
    if len(parts) not in (1, _PAIR, _FOUR) or (len(parts) == _FOUR and not all(map(_is_array, parts))):
        raise DataError(f"{noun}: {len(parts)} parts ({', '.join(type(one).__name__ for one in parts)}); {_ALLOWED}")
    if len(parts) == _FOUR and all(map(_is_array, parts)):
        return _whole(_pair(parts[:2]), _pair(parts[2:]), target_fill)
    if len(parts) == _PAIR and not all(map(_is_array, parts)):
        train, test = (_read(part, noun) for part in parts)
        return _whole(train, test, target_fill)
    x, y = _pair(parts) if len(parts) == _PAIR else _read(value, noun)
    if len(x) != len(y) or len(x) <= 1:
        raise DataError(f"{noun}: {len(x)} samples and {len(y)} targets; allowed: as many, and at least two")
    x, y = _array(x), _array(y, target_fill)
    test_rows = np.zeros(len(x), dtype=bool)
    test_rows[::_TEST_EVERY] = True
    return _whole((x[~test_rows], y[~test_rows]), (x[test_rows], y[test_rows]), target_fill)


def _is_array(value: Any) -> bool:
    """Return whether a value is an array, a tensor or a list of samples, and no dataset of pairs."""
    return isinstance(value, list | Shaped)


def _is_split(value: Any) -> bool:
    """Return whether a value is a list of two datasets, as `torch.utils.data.random_split` gives it."""
    return (
        isinstance(value, list)
        and len(value) == _PAIR
        and all(isinstance(one, MapStyle) and not isinstance(one, list | tuple | str | Shaped) for one in value)
    )


def _pair(parts: Sequence[Any]) -> tuple[Rows, Rows]:
    x, y = (part if isinstance(part, list) else array_of(part) for part in parts)
    return x, y


def _array(rows: Rows, fill: float = 0) -> NDArray[Any]:
    return padded(rows, fill) if isinstance(rows, list) else rows


def _read(value: Any, noun: str) -> tuple[Rows, Rows]:
    if isinstance(value, tuple) and len(value) == _PAIR and all(map(_is_array, value)):
        return _pair(value)
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is not None and isinstance(value, torch_data.IterableDataset | torch_data.DataLoader):
        raise DataError(
            f"{noun}: {type(value).__name__} is read in an order of its own; allowed: a dataset of torch with __len__ "
            "and __getitem__, or a list of pairs of a sample and its target, such as list(...) of an iterable dataset"
        )
    if not isinstance(value, MapStyle) or isinstance(value, np.ndarray | tuple):
        raise DataError(f"{noun}: {type(value).__name__} is no data set; {_ALLOWED}")
    get: Callable[[int], Any] = value.__getitem__
    items = [asked(noun, "__getitem__", get, index) for index in range(asked(noun, "__len__", value.__len__))]
    wrong = next((item for item in items if not isinstance(item, tuple | list) or len(item) != _PAIR), None)
    if not items or wrong is not None:
        found = "no items" if wrong is None else f"items such as {type(wrong).__name__}"
        if isinstance(wrong, tuple | list):
            found = f"items of {len(wrong)} parts"
        raise DataError(f"{noun}: {found}; allowed: pairs of a sample and its target, at least one")
    x, y = ([array_of(item[place]) for item in items] for place in (0, 1))
    return x, y


def _whole(train: tuple[Rows, Rows], test: tuple[Rows, Rows], target_fill: float) -> Dataset:
    train_x, test_x = _alike(train[0], test[0])
    train_y, test_y = (_targets(one) for one in _alike(train[1], test[1], target_fill))
    more: dict[str, Any] = {}
    if train_x.dtype == np.uint8 and train_x.ndim in _IMAGE_AXES:
        train_x, test_x = (one if one.ndim == max(_IMAGE_AXES) else one[..., None] for one in (train_x, test_x))
        more["pixel_max"] = 255
    elif train_x.dtype.kind in "iu" and train_x.ndim == _PAIR and min(train_x.min(), test_x.min()) >= 0:
        train_x, test_x = train_x.astype(np.int64), test_x.astype(np.int64)
        more["vocabulary"] = 1 + int(max(train_x.max(), test_x.max()))
    elif train_x.ndim == 1:
        train_x, test_x = train_x[:, None], test_x[:, None]
    if train_y.dtype == np.int64 and train_y.ndim == 1:
        more["classes"] = 1 + int(max(train_y.max(initial=0), test_y.max(initial=0)))
    train_x, train_y, test_x, test_y = (one.copy(order="C") for one in (train_x, train_y, test_x, test_y))
    return Dataset(train_x, train_y, test_x, test_y, **more)


def _alike(one: Rows, other: Rows, fill: float = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two arrays of one type; rows of several lengths have one length afterwards."""
    if isinstance(one, list) and isinstance(other, list):
        both = padded([*one, *other], fill)
        first, second = both[: len(one)], both[len(one) :]
    else:
        first, second = _array(one, fill), _array(other, fill)
    kind = np.result_type(first, second)
    if kind.kind == "f":
        kind = np.dtype(np.float32)
    return first.astype(kind, copy=False), second.astype(kind, copy=False)


def _targets(found: NDArray[Any]) -> NDArray[Any]:
    if found.dtype.kind == "b" or (found.dtype == np.uint8 and found.ndim > 1):
        return found.astype(np.uint8)
    if found.dtype.kind in "iu":
        return found.astype(np.int64)
    return found[:, None] if found.ndim == 1 else found
