"""Types of arrays and of bounded numbers: one name for each, so that signatures read alike."""

import importlib.util
import sys
from collections.abc import Callable, Iterator, MutableSequence
from functools import cache, lru_cache
from typing import Annotated, Any, Protocol, TypeVar, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Vector = NDArray[np.float32]
"""A model, an update or a gradient: one flat array of shape (parameters,)."""
Mask = NDArray[np.bool_]
"""Which entries of a `Vector` are meant, shape (parameters,)."""
Array = TypeVar("Array", bound=NDArray[Any])
Whole = Annotated[int, Field(ge=1)]
"""A setting that is a count of at least one."""
_FEW = 256
"""Up to this number of numbers, lists are faster than functions of NumPy."""
_HIGHEST = slice(7 if sys.byteorder == "little" else 0, None, 8)
_BLOCK = 1 << 14
"""Numbers of a block: five arrays of float64 fit into a second-level cache of 1 MB."""


@runtime_checkable
class Shaped(Protocol):
    """An array of any library, such as torch's tensor."""

    @property
    def dtype(self) -> Any: ...

    @property
    def shape(self) -> Any: ...


@runtime_checkable
class TensorLike(Shaped, Protocol):
    """A tensor of torch, recognised without torch."""

    @property
    def requires_grad(self) -> bool: ...

    def is_floating_point(self) -> bool: ...


def filled(size: int, value: float) -> FloatArray:
    """Return an array of one value, shape (size,); NumPy's ``full`` is slower for small ones."""
    array = np.empty(size)
    array.fill(value)
    return array


@lru_cache(maxsize=64, typed=True)
def same(value: float, size: int) -> NDArray[Any]:
    """Return an array of one value, shape (size,), that all share: nothing can write to it."""
    array = np.full(size, value)
    array.flags.writeable = False
    return array


@lru_cache(maxsize=16)
def positions(size: int) -> IntArray:
    """Return 0..size-1, shape (size,), which all cohorts of a size share."""
    array = np.arange(size)
    array.flags.writeable = False
    return array


def blocks(size: int) -> Iterator[slice]:
    """Yield the places of an array of shape (size,), in blocks whose temporary arrays stay in the cache.

    A long array goes through memory once then, and no temporary array asks the operating system for pages.
    """
    for start in range(0, size, _BLOCK):
        yield slice(start, min(start + _BLOCK, size))


def constant(value: float) -> FloatArray:
    """Return an array without axes, with which operations of a few numbers are faster than with a float."""
    array = np.array(value, dtype=np.float64)
    array.flags.writeable = False
    return array


def read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def any_of(flags: BoolArray | np.bool_) -> bool:
    """Return whether any flag is set; NumPy's ``any`` is slower for a few."""
    return 1 in flags.tobytes()


def all_of(flags: BoolArray | np.bool_) -> bool:
    """Return whether all flags are set; NumPy's ``all`` is slower for a few."""
    return 0 not in flags.tobytes()


def from_zero_to_finite(numbers: FloatArray) -> bool:
    """Return whether all numbers are at least 0 and below 1e300; faster than comparisons by NumPy."""
    highest = numbers.tobytes()[_HIGHEST]  # sign and the upper bits of the exponent
    return highest.isascii() and 0x7F not in highest


def all_equal(numbers: FloatArray, value: float) -> bool:
    """Return whether all numbers are one value; for a few, faster than a comparison by NumPy."""
    if numbers.size > _FEW:
        return bool((numbers == value).all())
    return numbers.tobytes() == _bytes_of(numbers.size, value)


@lru_cache(maxsize=256)
def _bytes_of(size: int, value: float) -> bytes:
    return filled(size, value).tobytes()


def largest(numbers: FloatArray) -> float:
    """Return the largest of some numbers, at least 0; NumPy's ``max`` is slower for a few."""
    if numbers.size > _FEW:
        return float(np.maximum.reduce(numbers))
    return float(max(numbers.tolist())) if numbers.size else 0.0


def normal_quantile(u: FloatArray) -> FloatArray:
    """Return the quantile of the standard normal distribution, of the shape of u."""
    return special("ndtri")(u)


@cache
def special(name: str) -> Callable[..., FloatArray]:
    """Return a function of `scipy.special`.

    To import that package takes a quarter of a second, a hundredth of it for its compiled functions, which its other
    parts add nothing to here; so it is left empty while they are loaded.
    """
    found = importlib.util.find_spec("scipy.special")
    if "scipy.special" not in sys.modules and found is not None:
        sys.modules["scipy.special"] = importlib.util.module_from_spec(found)
        try:
            importlib.import_module("scipy.special._ufuncs")
        finally:
            del sys.modules["scipy.special"]
    function: Callable[..., FloatArray] = getattr(importlib.import_module("scipy.special._ufuncs"), name)
    return function


@overload
def numbers_of(row: FloatArray) -> MutableSequence[float]: ...
@overload
def numbers_of(row: IntArray) -> MutableSequence[int]: ...
def numbers_of(row: Any) -> Any:
    """Return the elements of a row of memory, to read and change single ones faster than NumPy does."""
    return memoryview(row)


def count_until(values: FloatArray, low: IntArray, high: IntArray, bound: float | FloatArray) -> IntArray:
    """Return the number of elements of each ascending slice ``values[low:high]`` that are at most its bound."""
    left, right = low, high
    for _ in range(int(np.max(right - left, initial=0)).bit_length()):
        middle = (left + right) >> 1
        open_ = left < right
        below = open_ & (values[np.where(open_, middle, 0)] <= bound) if values.size else open_
        left = np.where(below, middle + 1, left)
        right = np.where(open_ & ~below, middle, right)
    return np.asarray(left - low)
