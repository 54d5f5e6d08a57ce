"""What arrays, frames, lists of samples and datasets of torch are as a data set: types, images, tokens, lengths."""

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Number
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsim.answers import asked
from fedsim.arrays import IntArray, Shaped, TensorLike
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.division import Division, Undivided

Rows = NDArray[Any] | list[Any]
"""An array, or a list of samples of several lengths."""

_NUMBERS: Final = "biufc"
"""Kinds of NumPy's types that are numbers, truth values among them."""


@runtime_checkable
class Framed(Protocol):
    """A table of columns with types of their own, such as a frame of pandas."""

    @property
    def dtypes(self) -> Any: ...

    @property
    def shape(self) -> Any: ...

    @property
    def columns(self) -> Any: ...


@runtime_checkable
class Named(Protocol):
    """Rows with names, such as those of a frame or a series of pandas."""

    index: Any
    iloc: Any


def rows_of(value: Any) -> Rows:
    """Return arrays, tensors and frames as an array, and a list, or an array of sequences, as a list of samples."""
    if isinstance(value, list):
        return value
    if not isinstance(value, TensorLike):
        found = np.asarray(value)
        if found.dtype == object and found.ndim == 1 and found.size and isinstance(found[0], list | Shaped):
            return list(found)
    return array_of(value)


def padded(rows: Sequence[Any], fill: float = 0) -> NDArray[Any]:
    """Return samples of different lengths as one array, filled up at their end."""
    arrays = [array_of(row) for row in rows]
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    if len({(array.ndim, array.shape[1:]) for array in arrays}) > 1 or not arrays[0].ndim:
        shapes = sorted({array.shape for array in arrays})
        raise DataError(
            f"samples of the shapes {shapes[0]} and {shapes[-1]}; allowed: shapes that differ in their length"
        )
    longest = max(len(array) for array in arrays)
    kind = np.result_type(*arrays)
    if kind.kind == "b" and fill not in (0, 1):
        kind = np.dtype(np.uint8)
    elif kind.kind == "f":
        kind = np.result_type(kind, np.float32)
    found = np.full((len(arrays), longest, *arrays[0].shape[1:]), _of_kind(fill, kind), dtype=kind)
    for row, array in zip(found, arrays, strict=True):
        row[: len(array)] = array
    return found


def array_of(value: Any) -> NDArray[Any]:
    """Return an array or a tensor as an array of numbers; bfloat16, which NumPy lacks, becomes float32."""
    torch = sys.modules.get("torch")  # who hands over a tensor has imported it
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().to_dense()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if np.ma.is_masked(value):
        raise DataError("samples or targets are masked in places; allowed: numbers everywhere, as by .filled(value)")
    found = np.asarray(value)
    if found.dtype == object and found.ndim:
        with suppress(ValueError):  # columns of several types, and of pandas' own
            plain = np.array(found.tolist())
            found = plain if plain.dtype.kind in _NUMBERS else found
    if found.dtype.kind not in _NUMBERS:
        wrong = next((one for one in found.flat if not isinstance(one, Number | np.bool_)), None)
        raise DataError(
            f"samples or targets such as {wrong!r} are no numbers; allowed: numbers; names become whole numbers by "
            "np.unique(names, return_inverse=True)[1]"
        )
    return found


def _of_kind(fill: float, kind: np.dtype[Any]) -> Any:
    """Convert a value to a type, whole numbers exactly."""
    exact = kind.kind == "f" and np.isfinite(fill)
    if kind.kind in "iu" and np.isfinite(fill) and fill == int(fill):
        exact = np.iinfo(kind).min <= fill <= np.iinfo(kind).max
    if not exact and not (kind.kind == "b" and fill in (0, 1)):
        raise DataError(f"samples of {kind} cannot be filled up with {fill}; allowed: a number that {kind} has")
    return kind.type(fill)


TARGET_FILL: Final = "target_fill"
"""Option of a class or function in a file: the number that fills up targets of several lengths."""

_NOBODY: Final = ("None", "nan", "<NA>", "NaT", "")
"""What stands for nothing among objects and names."""
_PAIR, _TRIPLE, _FOUR = 2, 3, 4
_GREY_AXES, _COLOUR_AXES = 3, 4
_CHANNELS: Final = ((1, 3), (2, 4))
"""Numbers of channels that tell which axis of an image has them, the usual ones first."""
_MOST_GAPS: Final = 100
"""Classes for each sample, and for a thousand more, beyond which labels are taken for names."""
_MARKS: Final = {"i": -100, "u": 255, "f": float(np.finfo(np.float32).min)}
"""Numbers that fill targets up, by type; -100 is what torch's losses leave out by default."""
ALLOWED: Final = (
    "allowed: a Dataset, samples and targets as two arrays, or with the user of each as a third, four arrays (train_x, "
    "train_y, test_x, test_y), a dataset of torch, two of them (training and test), or a class or function that gives "
    "one of these"
)


@runtime_checkable
class MapStyle(Protocol):
    """A dataset of torch whose items are pairs of a sample and its target."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def dataset_of(
    value: Any,
    *,
    target_fill: float | None = None,
    division: Division | None = None,
    seed: int = 0,
    noun: str = "the data set",
) -> Dataset:
    """Return a data set made of arrays, frames, lists of samples or datasets of torch.

    Floating-point numbers become float32. uint8 of shape (n, h, w), (n, h, w, channels) or (n, channels, h, w) are
    images. Whole numbers of shape (n, length) are tokens. Targets that are whole numbers or truth values of
    shape (n,) are labels; other numbers of shape (n,) become (n, 1), other truth values uint8.

    Samples of different lengths are filled up at their end: tokens with 0, or if it is one of them with the next token
    beyond theirs (a module of your own gets 0), other samples with 0. Targets are filled up with a number that none of
    them is, or with ``target_fill``; fedsim's tasks leave these places out. Without a division of their own,
    ``division`` says which rows are for testing, a fifth of them by default, drawn by ``seed``.
    """
    return divided(read(value, target_fill, noun), division, np.random.default_rng(seed))


def divided(
    found: Dataset | Undivided, division: Division | None = None, rng: np.random.Generator | None = None
) -> Dataset:
    if isinstance(found, Dataset):
        return found
    return found.divided(division or Division(), rng or np.random.default_rng(0))


def read(value: Any, target_fill: float | None, noun: str) -> Dataset | Undivided:
    if isinstance(value, Dataset):
        return value
    if isinstance(value, Framed):
        raise DataError(f"{noun}: {type(value).__name__} does not say which of its columns are targets; {ALLOWED}")
    parts = list(value) if isinstance(value, tuple) or _is_split(value) else [value]
    if len(parts) > _FOUR or (len(parts) > _PAIR and not all(map(_is_array, parts))):
        raise DataError(f"{noun}: {len(parts)} parts ({', '.join(type(one).__name__ for one in parts)}); {ALLOWED}")
    if len(parts) == _FOUR:
        return _whole([_pair(parts[:2]), _pair(parts[2:])], target_fill, noun)
    if len(parts) == _PAIR and not all(map(_is_array, parts)):
        return _whole([_rows(part, noun) for part in parts], target_fill, noun)
    x, y = _pair(parts) if len(parts) > 1 else _rows(value, noun)
    if len(x) != len(y) or len(x) <= 1:
        raise DataError(f"{noun}: {len(x)} samples and {len(y)} targets; allowed: as many, and at least two")
    return _whole([(x, y)], target_fill, noun, _users(parts[2], len(x), noun) if len(parts) == _TRIPLE else None)


def _users(value: Any, count: int, noun: str) -> IntArray:
    users = np.asarray(value)
    if users.shape != (count,) or users.dtype.kind not in "iuUO":
        raise DataError(
            f"{noun}: its third part is {users.dtype} of shape {users.shape}; allowed: the user of each of the {count} "
            "samples, as whole numbers or names"
        )
    if users.dtype.kind in "OU":
        users = users.astype(str)
        if (nobody := np.flatnonzero(np.isin(users, _NOBODY))).size:
            row = int(nobody[0])
            who = users[row] or "nothing"
            raise DataError(f"{noun}: its third part, row {row + 1}: {who} is no user; allowed: one of each sample")
    return np.unique(users, return_inverse=True)[1].astype(np.int64)


def _is_array(value: Any) -> bool:
    return isinstance(value, list | Shaped | Framed)


def _is_split(value: Any) -> bool:
    """Return whether a value is a list of two datasets, as `torch.utils.data.random_split` gives it."""
    return (
        isinstance(value, list)
        and len(value) == _PAIR
        and all(isinstance(one, MapStyle) and not isinstance(one, list | tuple | str | Shaped) for one in value)
    )


def _pair(parts: Sequence[Any]) -> tuple[Rows, Rows]:
    names = [np.asarray(part.index).tolist() for part in parts if isinstance(part, Named)]
    for one, other in itertools.combinations(names, _PAIR):
        if one != other and (set(one) == set(other) or list(range(len(one))) not in (one, other)):
            raise DataError(
                "samples, targets and users do not have the same index in the same order; allowed: rows in one order, "
                "such as y.loc[x.index], or arrays, whose rows belong together by their places"
            )
    x, y = map(rows_of, parts[:_PAIR])
    if isinstance(parts[1], Framed) and isinstance(y, np.ndarray) and y.shape[1:] == (1,):
        y = y[:, 0]
    return x, y


def _rows(value: Any, noun: str) -> tuple[Rows, Rows]:
    if isinstance(value, tuple) and len(value) == _PAIR and all(map(_is_array, value)):
        return _pair(value)
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is not None and isinstance(value, torch_data.IterableDataset | torch_data.DataLoader):
        raise DataError(
            f"{noun}: {type(value).__name__} is read in an order of its own; allowed: a dataset of torch with __len__ "
            "and __getitem__, or a list of pairs of a sample and its target, such as list(...) of an iterable dataset"
        )
    if not isinstance(value, MapStyle) or isinstance(value, np.ndarray | tuple):
        raise DataError(f"{noun}: {type(value).__name__} is no data set; {ALLOWED}")
    get: Callable[[int], Any] = value.__getitem__
    x, y = list[NDArray[Any]](), list[NDArray[Any]]()
    for index in range(asked(noun, "__len__", value.__len__)):
        item = asked(noun, "__getitem__", get, index)
        if not isinstance(item, tuple | list) or len(item) != _PAIR:
            parts = f" of {len(item)} parts" if isinstance(item, tuple | list) else f" such as {type(item).__name__}"
            raise DataError(f"{noun}: items{parts}; allowed: pairs of a sample and its target, at least one")
        for rows, part in zip((x, y), item, strict=True):
            rows.append(array_of(part).copy())  # the next item may lie in the same memory
    if not x:
        raise DataError(f"{noun}: no items; allowed: pairs of a sample and its target, at least one")
    return x, y


def _whole(
    parts: Sequence[tuple[Rows, Rows]], target_fill: float | None, noun: str, users: IntArray | None = None
) -> Dataset | Undivided:
    """Return the data of one part, or of two, which are for training and for testing, as their types say."""
    xs, ys = [x for x, _ in parts], [y for _, y in parts]
    more: dict[str, Any] = {}
    fill = 0
    if _ragged(xs) and (top := _greatest_token(xs)) is not None:
        fill = 0 if all(np.all(array_of(row) != 0) for rows in xs for row in rows) else top + 1
        more["token_fill"] = fill
    if _ragged(ys):
        more["target_fill"] = _mark(ys, target_fill, noun)
    x, y = _alike(xs, fill), [_targets(one) for one in _alike(ys, more.get("target_fill", 0))]
    notes = tuple(note for what, rows in (("samples", xs), ("targets", ys)) if (note := _in_lengths(what, rows)))
    if x[0].dtype == np.uint8 and x[0].ndim in (_GREY_AXES, _COLOUR_AXES):
        x = _channels_last(x, noun)
        more["pixel_max"] = 255
    elif x[0].dtype.kind in "iu" and x[0].ndim == _PAIR and min(one.min() for one in x) >= 0:
        x = [one.astype(np.int64) for one in x]
        more["vocabulary"] = _counted("tokens", x, noun)
    elif x[0].ndim == 1:
        x = [one[:, None] for one in x]
    if y[0].dtype == np.int64 and y[0].ndim == 1:
        more["classes"] = _counted("labels", y, noun)
    x, y = ([one.copy(order="C") for one in arrays] for arrays in (x, y))
    if len(parts) == 1:
        return Undivided(x[0], y[0], more, users, notes)
    return Dataset(x[0], y[0], x[1], y[1], notes=notes, **more)


def _counted(what: str, arrays: Sequence[NDArray[Any]], noun: str) -> int:
    """Return one more than the greatest label or token, refusing numbers with gaps as those of users or hashes have."""
    count, size = 1 + int(max(one.max(initial=0) for one in arrays)), sum(one.size for one in arrays)
    if count > _MOST_GAPS * (1000 + size):
        raise DataError(
            f"{noun}: {what} reach {count - 1:,}, and there are {size:,} of them; allowed: numbers from 0 on without "
            "such gaps, as np.unique(numbers, return_inverse=True)[1] makes them"
        )
    return count


def _ragged(parts: Sequence[Rows]) -> bool:
    return all(isinstance(rows, list) for rows in parts) and len({np.shape(row) for rows in parts for row in rows}) > 1


def _in_lengths(what: str, parts: Sequence[Rows]) -> str:
    """Return how many places of rows of several lengths are filled up; nothing for rows of one length."""
    if not _ragged(parts):
        return ""
    sizes = np.array([len(row) for rows in parts for row in rows])
    filled = int(sizes.size * sizes.max() - sizes.sum())
    return (
        f"{what} of {sizes.min():,} to {sizes.max():,} places are filled up at their end: {filled:,} of "
        f"{sizes.size * sizes.max():,} places{'' if what == 'samples' else ', which count for nothing'}"
    )


def _greatest_token(parts: Sequence[Rows]) -> int | None:
    """Return the greatest token of texts; None for samples that are no tokens."""
    rows = [array_of(row) for part in parts for row in part]
    if any(row.ndim != 1 or row.dtype.kind not in "iu" or row.min(initial=0) < 0 for row in rows):
        return None
    return max(int(row.max(initial=0)) for row in rows)


def _mark(parts: Sequence[Rows], asked: float | None, noun: str) -> float:
    """Return the number that fills targets up: what is asked for, or the usual one of their type; none has it."""
    rows = [array_of(row) for part in parts for row in part]
    kind = np.result_type(*rows).kind
    mark = float(_MARKS.get(kind, _MARKS["u"])) if asked is None else asked
    taken = {*np.unique(np.concatenate([row.ravel() for row in rows])).tolist()}
    if asked is not None and asked in taken:
        raise DataError(
            f"{noun}: {TARGET_FILL}: {asked} is not allowed, since a target is {asked}; allowed: a number that no "
            "target is, or none, and a free one is taken"
        )
    while mark in taken:
        mark -= 1
    return mark if kind == "f" else int(mark)


def _channels_last(images: Sequence[NDArray[Any]], noun: str) -> list[NDArray[Any]]:
    """Return images of shape (n, h, w, channels); refuse those whose axis of channels cannot be told."""
    if images[0].ndim == _GREY_AXES:
        return [one[..., None] for one in images]
    first, last = images[0].shape[1], images[0].shape[3]
    for channels in _CHANNELS:
        if (first in channels) != (last in channels):
            return [one if last in channels else np.moveaxis(one, 1, -1) for one in images]
        if first in channels:
            break
    raise DataError(
        f"{noun}: images of uint8 of shape {images[0].shape}: which axis has the channels cannot be told; allowed: "
        f"(n, h, w, channels) or (n, channels, h, w) with 1 to 4 channels on one of the two axes, or float32"
    )


def _alike(parts: Sequence[Rows], fill: float = 0) -> list[NDArray[Any]]:
    """Return arrays of one type; rows of several lengths have one length afterwards."""
    if all(isinstance(rows, list) for rows in parts):
        ends = np.cumsum([len(rows) for rows in parts])
        found = np.split(padded([row for rows in parts for row in rows], fill), ends[:-1])
    else:
        found = [padded(rows, fill) if isinstance(rows, list) else rows for rows in parts]
    kind = np.result_type(*found)
    if kind.kind == "f":
        kind = np.dtype(np.float32)
        if any(one.dtype == np.uint8 for one in found):
            raise DataError("of two parts, one is uint8 and one floating-point numbers; allowed: one scale and type")
    return [one.astype(kind, copy=False) for one in found]


def _targets(found: NDArray[Any]) -> NDArray[Any]:
    if found.dtype.kind == "b" and found.ndim == 1:
        return found.astype(np.int64)
    if found.dtype.kind == "b" or (found.dtype == np.uint8 and found.ndim > 1):
        return found.astype(np.uint8)
    if found.dtype.kind in "iu":
        return found.astype(np.int64)
    return found[:, None] if found.ndim == 1 else found
