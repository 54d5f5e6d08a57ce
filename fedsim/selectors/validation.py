"""Checks of a selector's constructor arguments and of its answers."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, Probe, RoundView


def check_whole_numbers(lowest: int, /, *, optional: bool = False, **values: object) -> None:
    """Refuse arguments that are no whole number of at least ``lowest``.

    Parameters
    ----------
    lowest : least value that is allowed
    optional : whether None is allowed as well
    **values : arguments by name

    Raises
    ------
    ValueError
        Naming the argument, its value and what is allowed.
    """
    for name, value in values.items():
        if optional and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
            raise ValueError(f"{name}: {value!r} is not allowed; it must be a whole number of at least {lowest}")


def check_numbers(lowest: float, /, *, above: bool = False, optional: bool = False, **values: Any) -> None:
    """Refuse arguments that are no finite number of at least ``lowest``, or of more than that if ``above``.

    The other parameters and the error are those of `check_whole_numbers`.
    """
    for name, value in values.items():
        if optional and value is None:
            continue
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not np.isfinite(value) or value < lowest or (above and value == lowest):
            allowed = f"above {lowest}" if above else f"of at least {lowest}"
            raise ValueError(f"{name}: {value!r} is not allowed; it must be a finite number {allowed}")


def check_shares(*, inside: bool = False, **values: Any) -> None:
    """Refuse arguments that are no number from 0 to 1; with ``inside``, 0 and 1 are refused as well."""
    check_numbers(0, above=inside, **values)
    for name, value in values.items():
        if value > 1 or (inside and value == 1):
            raise ValueError(f"{name}: {value!r} is not allowed; it must be {'below' if inside else 'at most'} 1")


def check_choice(name: str, value: object, *allowed: str) -> None:
    """Refuse an argument that is none of the words allowed."""
    if value not in allowed:
        raise ValueError(f"{name}: {value!r} is not allowed; it must be {' or '.join(map(repr, allowed))}")


def as_cohort(chosen: object, view: RoundView, name: str) -> Cohort:
    """Return a selector's answer as a valid cohort of the candidates.

    Parameters
    ----------
    chosen : Cohort or array of client ids
        What ``select`` has returned.
    view : view of the selection
    name : of the selector, for messages

    Raises
    ------
    SelectorError
        If the ids are no distinct candidates, or a column has the wrong length or range.
    """
    cohort = chosen if isinstance(chosen, Cohort) else Cohort(np.asarray(chosen))
    client = _distinct_candidates(f"{name}.select", cohort.client, view)
    _check_column(name, "draws", cohort.draws, client.size, lowest=1)
    _check_column(name, "weights", cohort.weights, client.size, lowest=0)
    _check_column(name, "work", cohort.work, client.size, lowest=0, highest=1)
    if cohort.work is not None and not np.all(cohort.work > 0):
        raise SelectorError(f"{name}.select returned work of 0; leave the client out instead")
    return Cohort(client, cohort.draws, cohort.weights, cohort.work)


def as_probe(asked: object, view: RoundView, name: str) -> Probe:
    """Return a selector's question to clients as a valid one to candidates.

    Parameters
    ----------
    asked : what ``probe`` has returned
    view : view of the selection
    name : of the selector, for messages

    Raises
    ------
    SelectorError
        If it is no `Probe`, the ids are no distinct candidates, or a size or time is out of range.
    """
    name = f"{name}.probe"
    if not isinstance(asked, Probe):
        raise SelectorError(f"{name} returned {asked!r}; it must be a Probe, or None for no question")
    client = _distinct_candidates(name, asked.client, view)
    if asked.asks not in ("loss", "resources"):
        raise SelectorError(f"{name} asks for {asked.asks!r}; allowed: 'loss', 'resources'")
    for what, value in (("down_bits", asked.down_bits), ("up_bits", asked.up_bits), ("wait_s", asked.wait_s)):
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise SelectorError(f"{name} returned {what} = {value!r}; it must be a finite number of at least 0")
    if asked.samples is not None and asked.samples < 1:
        raise SelectorError(f"{name} returned samples = {asked.samples!r}; it must be at least 1, or None for all")
    return replace(asked, client=client)


def _distinct_candidates(source: str, client: NDArray[np.generic], view: RoundView) -> IntArray:
    """Return ids as integers, after a check that they are distinct candidates."""
    ids = np.asarray(client)
    if ids.shape == (0,):
        return ids.astype(np.int64)  # an empty list has no type of its own
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise SelectorError(f"{source} returned {client!r}; allowed: a one-dimensional array of client ids")
    ids = ids.astype(np.int64)
    rising = bool((ids[1:] > ids[:-1]).all())
    if rising and view.count == view.clients and ids[0] >= 0 and ids[-1] < view.clients:
        return ids  # all clients of the crowd are candidates
    if not rising:
        ordered = np.sort(ids)
        if np.any(ordered[1:] == ordered[:-1]):
            raise SelectorError(f"{source} returned a client twice: {ordered!r}; use draws for that")
    known = view.includes(ids)
    if not known.all():
        raise SelectorError(f"{source} returned clients that are no candidates: {ids[~known][:10]!r}")
    return ids


def _check_column(
    name: str,
    column: str,
    values: NDArray[np.generic] | None,
    length: int,
    lowest: float,
    highest: float = np.inf,
) -> None:
    if values is None:
        return
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (length,) or not np.all((array >= lowest) & (array <= highest) & np.isfinite(array)):
        raise SelectorError(
            f"{name}.select returned {column} = {values!r}; it must be {length} finite numbers "
            f"from {lowest} to {highest}"
        )
