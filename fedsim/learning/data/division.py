"""Rows of data that come without a division: which of them are for testing."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.arrays import BoolArray, IntArray
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from fedsim.registry import Settings

_IN_WORDS: Final = {"first": "the first ones", "last": "the last ones"}


class Division(Settings):
    """Which rows of data that come without a division of their own are for testing.

    Attributes
    ----------
    rows : ``"drawn"``, ``"first"`` or ``"last"``
        Drawn by the seed of the scenario, of each label in proportion; or the first or last rows, of data with an
        order, such as that of time.
    share : float in (0, 1)
        Of the rows, to within one, and at least one row; of labels with few rows fewer, so that one stays of each for
        training; rows of whole users may be a few more.
    whole_users : bool
        Whether all rows of a user are for testing, or none, where rows are drawn and users are given.

    Examples
    --------
    >>> Division(rows="last", share=0.25).test_rows(8, None, None, np.random.default_rng(0)).nonzero()[0].tolist()
    [6, 7]
    """

    rows: Literal["drawn", "first", "last"] = "drawn"
    share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    whole_users: bool = True

    def test_rows(
        self, count: int, labels: IntArray | None, users: IntArray | None, rng: np.random.Generator
    ) -> BoolArray:
        """Return which of at least two rows, with their labels and users, are for testing, shape (count,)."""
        wanted = min(max(round(self.share * count), 1), count - 1)
        test = np.zeros(count, dtype=bool)
        if self.rows != "drawn":
            test[slice(wanted) if self.rows == "first" else slice(-wanted, None)] = True
        elif users is not None and self.whole_users:
            test = _of_users(users, wanted, rng)
        else:
            parts = np.zeros(count, dtype=np.int64) if labels is None else labels
            test[_in_proportion(parts, wanted, rng)] = True
        return test

    def in_words(self, labels: IntArray | None, users: IntArray | None) -> str:
        if self.rows != "drawn":
            return _IN_WORDS[self.rows]
        if users is not None and self.whole_users:
            return "those of users drawn by the seed"
        return "drawn by the seed" if labels is None else "drawn by the seed, of each label in proportion"


def _in_proportion(parts: IntArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """Return drawn rows, of each part its share, by largest remainders; a part has one row more than are drawn."""
    order = rng.permutation(parts.size)
    order = order[np.argsort(parts[order], kind="stable")]
    _, starts, sizes = np.unique(parts[order], return_index=True, return_counts=True)
    exact = wanted * sizes / parts.size
    drawn = np.floor(exact).astype(np.int64)
    ranked = np.lexsort((rng.permutation(sizes.size), drawn - exact))
    room = ranked[drawn[ranked] + 1 < sizes[ranked]]
    drawn[room[: wanted - int(drawn.sum())]] += 1
    if not drawn.any():  # each part has one row
        return order[rng.permutation(order.size)[:wanted]]
    return np.concatenate([order[start : start + many] for start, many in zip(starts, drawn, strict=True)])


def _of_users(users: IntArray, wanted: int, rng: np.random.Generator) -> BoolArray:
    """Return the rows of drawn users, as few users of a random order as have the rows that are wanted."""
    known, sizes = np.unique(users, return_counts=True)
    if known.size < 2:
        raise DataError(
            "learning.data: all rows belong to one user; allowed: several users, or learning.test.whole_users = false"
        )
    order = rng.permutation(known.size)
    many = int(np.searchsorted(np.cumsum(sizes[order]), wanted)) + 1
    return np.isin(users, known[order[: min(many, known.size - 1)]])


def shared_labels(train: IntArray, test: IntArray, classes: int) -> str:
    """Return in words how many of the labels the samples for training and for testing have, and share."""
    one, other = np.unique(train), np.unique(test)
    both = np.intersect1d(one, other).size
    return f"of {classes:,} labels clients have {one.size:,}, the test set {other.size:,}, and both {both:,}"


@dataclass(frozen=True)
class Undivided:
    x: NDArray[Any]
    y: NDArray[Any]
    more: dict[str, Any]
    users: IntArray | None = None
    notes: tuple[str, ...] = ()

    def divided(self, division: Division, rng: np.random.Generator) -> Dataset:
        """Return the data set with some rows for testing, and a note on how many, and which labels they have."""
        labels = self.y if "classes" in self.more else None
        test = division.test_rows(len(self.x), labels, self.users, rng)
        users = None if self.users is None else np.unique(self.users[~test], return_inverse=True)[1].astype(np.int64)
        arrays = (self.x[~test], self.y[~test], self.x[test], self.y[test])
        note = f"{int(test.sum()):,} of {test.size:,} rows are for testing: {division.in_words(labels, self.users)}"
        if labels is not None:
            note += f"; {shared_labels(arrays[1], arrays[3], self.more['classes'])}"
        if users is not None:
            note += f"; {users.max() + 1:,} users have rows for training"
        return Dataset(*arrays, train_users=users, notes=(note, *self.notes), **self.more)
