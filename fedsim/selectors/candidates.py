"""A view of candidates whose columns are taken from the crowd when a selector first reads them.

At an asynchronous server one client is replaced at a time, among nearly all clients of the crowd. A selector that needs
the number of candidates and a client at a place among them has its answer without a column over the crowd.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, IntArray
from fedsim.selectors.contracts import Cohort, RoundView


class Candidates(Protocol):
    """The candidates of one instant, in the order of their ids."""

    @property
    def count(self) -> int: ...

    def everyone(self) -> IntArray:
        """Return the ids of all candidates in the whole crowd, ascending, shape (n,)."""
        ...

    def pick(self, place: IntArray) -> IntArray:
        """Return the ids at given places among the candidates, shape (m,)."""
        ...

    def below(self, client: int) -> int:
        """Return how many candidates have a lower id."""
        ...

    def includes(self, client: IntArray) -> BoolArray:
        """Return which ids are those of candidates, shape (m,)."""
        ...


def _taken(name: str) -> Any:
    """Return a column of the crowd that is taken when it is first read; None for one that the crowd has not."""

    def column(view: "CandidateView") -> NDArray[Any] | None:
        return _read_only(view._crowd[name][view._everyone]) if name in view._crowd else None

    return cached_property(column)


class CandidateView(RoundView):
    """A `RoundView` that takes a column when it is first read."""

    _candidates: Candidates | None = None
    _crowd: Mapping[str, NDArray[Any]] = {}
    _members: IntArray | None = None

    @classmethod
    def of(
        cls, candidates: Candidates, crowd: Mapping[str, NDArray[Any]], members: IntArray | None = None, **known: Any
    ) -> Self:
        """Return a view without columns yet."""
        view = object.__new__(cls)
        vars(view).update(known, answers=None, _candidates=candidates, _crowd=crowd, _members=members)
        return view

    @property
    def count(self) -> int:
        return super().count if self._candidates is None else self._candidates.count

    def pick(self, place: IntArray) -> IntArray:
        return super().pick(place) if self._candidates is None else self._shown(self._candidates.pick(place))

    def below(self, client: int) -> int:
        if self._candidates is None:
            return super().below(client)
        if self._members is None:
            return self._candidates.below(client)
        return (
            self.count if client >= self._members.size else self._candidates.below(int(self._members[max(client, 0)]))
        )

    def includes(self, client: IntArray) -> BoolArray:
        if self._candidates is None:
            return super().includes(client)
        if self._members is None:
            return self._candidates.includes(client)
        inside = (client >= 0) & (client < self._members.size)
        return inside & self._candidates.includes(self._members[np.where(inside, client, 0)])

    def at_edge(self, members: IntArray, total_samples: int) -> RoundView:
        if self._candidates is None or self.answers is not None:
            return super().at_edge(members, total_samples)
        known = {name: vars(self)[name] for name in _KNOWN}
        known.update(clients=members.size, total_samples=total_samples)
        return CandidateView.of(self._candidates, self._crowd, members, **known)

    def settle(self) -> None:
        for column in fields(self):
            getattr(self, column.name)
        for name in self.at_request:
            getattr(self, name)
        vars(self).update(_candidates=None, _crowd={})

    @cached_property
    def client(self) -> IntArray:
        return _read_only(self._shown(self._everyone))

    samples = _taken("samples")
    participations = _taken("participations")
    last_duration_s = _taken("last_duration_s")
    last_loss = _taken("last_loss")
    privacy_spent = _taken("privacy_spent")
    features = _taken("features")
    snr_hz = _taken("snr_hz")

    @cached_property
    def _everyone(self) -> IntArray:
        return np.zeros(0, dtype=np.int64) if self._candidates is None else self._candidates.everyone()

    def _shown(self, client: IntArray) -> IntArray:
        return client if self._members is None else np.searchsorted(self._members, client)


_COLUMNS = (
    *("client", "samples", "participations", "last_duration_s", "last_loss", "privacy_spent", "features"),
    "snr_hz",
)
_KNOWN = tuple(field.name for field in fields(RoundView) if field.name not in (*_COLUMNS, "answers"))


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    column.flags.writeable = False
    return column


def ask(
    select: Callable[[RoundView, np.random.Generator], Cohort], shown: list[RoundView], rng: np.random.Generator
) -> Cohort:
    """Return a selector's answer to a view, and let a view that the selector still holds take its columns."""
    view = shown.pop()
    kept = weakref.ref(view)
    cohort = select(view, rng)
    del view
    still = kept()
    if still is not None:
        still.settle()
    return cohort
