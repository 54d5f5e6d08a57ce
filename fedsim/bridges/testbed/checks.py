"""What is given to a testbed, checked before its clock moves."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import PartError, StepError
from fedsim.learning import Evaluation
from fedsim.measurements import MEASUREMENTS
from fedsim.per_client import Values, is_one
from fedsim.selectors import Cohort, RoundView
from fedsim.selectors.validation import as_cohort

_SHOWN: Final = 5
Numbers = ArrayLike | Mapping[int, ArrayLike]
"""One for each client in the order of the round, or a mapping by id."""


def checked_ids(call: str, cohort: ArrayLike, view: RoundView | None, clients: int) -> IntArray:
    """Return the ids of a cohort, distinct candidates, shape (n,)."""
    ids = np.asarray(cohort)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise StepError(f"{call}: {cohort!r} is not allowed; it must be ids of clients, whole numbers in a row")
    ids = ids.astype(np.int64)
    candidates = 0 if view is None else view.count
    if not ids.size:
        if not candidates:
            return ids
        raise StepError(f"{call}: it is empty, and {candidates} clients are candidates; allowed: at least one of them")
    unknown = (ids < 0) | (ids >= clients)
    if unknown.any():
        raise StepError(f"{call}: {_some(ids[unknown])} is no client of this crowd; allowed: ids in 0..{clients - 1}")
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise StepError(f"{call}: client {_some(values[counts > 1])} stands more than once; allowed: each client once")
    away = np.ones(ids.size, dtype=np.bool_) if view is None else ~view.includes(ids)
    if away.any():
        raise StepError(
            f"{call}: client {_some(ids[away])} is no candidate now, as it is busy or not available; allowed: "
            f"{_listed(view)}"
        )
    return ids


def checked_values(call: str, name: str, given: ArrayLike, size: int, *, above: bool = False) -> Values:
    bound = "above 0" if above else "of at least 0"
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise StepError(f"{call}: {name}: {given!r} is not allowed; it must be numbers {bound}") from None
    if values.ndim > 1 or (values.ndim == 1 and values.size != size):
        raise StepError(
            f"{call}: {name}: values of shape {values.shape} are not allowed; there must be one for all, or one for "
            f"each of the {size} clients"
        )
    wrong = ~np.isfinite(values) | (values < 0) | ((values == 0) if above else False)
    if wrong.any():
        first = float(values[wrong][0]) if values.ndim else float(values)
        raise StepError(f"{call}: {name}: {first!r} is not allowed; it must be a finite number {bound}")
    return float(values) if not values.ndim else values


def checked_cohort(call: str, cohort: Cohort | ArrayLike, view: RoundView | None, clients: int) -> Cohort:
    if not isinstance(cohort, Cohort):
        return Cohort(checked_ids(call, cohort, view, clients))
    ids = checked_ids(call, cohort.client, view, clients)
    if view is None or not ids.size:
        return Cohort(ids)
    if cohort.sampling is not None or cohort.trained:
        raise StepError(
            f"{call}: sampling and trained are not allowed in a cohort of your own; allowed: draws, weights, work and "
            "allocation, or the cohort that select has returned"
        )
    try:
        return as_cohort(replace(cohort, client=ids), view, call)
    except PartError as error:
        raise StepError(f"{call}: {error.in_a_line()}") from None


def checked_statement(
    call: str, size: int, flops_per_sample: float | None, statement: Mapping[str, ArrayLike | None]
) -> dict[str, Values]:
    """Return what a call states of its participations by name: one number for all clients, or one for each."""
    stated = {name: checked_values(call, name, value, size) for name, value in statement.items() if value is not None}
    if "flops" not in stated:
        return stated
    if "samples" in stated:
        raise StepError(f"{call}: samples and flops are both given; allowed: one of the two")
    if not flops_per_sample:
        raise StepError(
            f"{call}: flops: {statement['flops']!r} is not allowed, as the scenario does not state the operations of a "
            "sample; allowed: learning.flops_per_sample, or samples"
        )
    work = stated.pop("flops")
    stated["samples"] = work / flops_per_sample if is_one(work) else np.asarray(work) / flops_per_sample
    return stated


def checked_wait(call: str, name: str, given: float, least: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating):
        raise StepError(f"{call}: {name}: {given!r} is not allowed; it must be a number of seconds")
    if math.isnan(given) or given < least:
        raise StepError(f"{call}: {name}: {given!r} is not allowed; it must be at least {least:.9g} s")
    return float(given)


def checked_weights(call: str, given: Numbers, client: IntArray) -> dict[int, float]:
    found = {one: float(value) for one, value in _by_client(call, "weights", given, client).items()}
    for one, weight in found.items():
        if not 0 <= weight < math.inf:
            raise StepError(
                f"{call}: weights: {weight} of client {one} is not allowed; it must be finite and at least 0"
            )
    return found


def checked_report(call: str, name: str, given: Numbers, client: IntArray) -> dict[int, NDArray[Any]]:
    if name not in MEASUREMENTS:
        raise StepError(f"{call}: measured: {name!r} is not allowed; it must be some of {', '.join(MEASUREMENTS)}")
    return _by_client(call, name, given, client, vectors=name == "update")


def _by_client(
    call: str, name: str, given: Numbers, client: IntArray, *, vectors: bool = False
) -> dict[int, NDArray[Any]]:
    try:
        if isinstance(given, Mapping):
            pairs = [(int(one), np.asarray(value, dtype=np.float64)) for one, value in given.items()]
        else:
            column = np.asarray(given, dtype=np.float64)
            pairs = list(zip(client.tolist(), column, strict=True)) if column.ndim else [(-1, column)]
    except (TypeError, ValueError):
        raise StepError(
            f"{call}: {name}: {given!r} is not allowed; it must be numbers, one for each of the {client.size} clients "
            "of the round or by their ids"
        ) from None
    for one, value in pairs:
        if one < 0 or value.ndim != int(vectors):
            what = "vectors" if vectors else "numbers"
            raise StepError(
                f"{call}: {name}: {given!r} is not allowed; it must be {what}, one for each of the {client.size} "
                "clients of the round or by their ids"
            )
    return dict(pairs)


def checked_evaluation(
    call: str, accuracy: float | None, loss: float | None, metrics: Mapping[str, float] | None
) -> Evaluation | None:
    if accuracy is None and loss is None and not metrics:
        return None
    values = {"accuracy": accuracy, "loss": loss, **(metrics or {})}
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise StepError(f"{call}: {name}: {value!r} is not allowed; it must be a number")
    if accuracy is not None and not 0 <= accuracy <= 1:
        raise StepError(f"{call}: accuracy: {accuracy!r} is not allowed; it must be a share in [0, 1]")
    known = {name: float(value) for name, value in values.items() if value is not None and name != "loss"}
    number = math.nan if loss is None else float(loss)
    return Evaluation(known.get("accuracy", math.nan), number, known, has_loss=loss is not None)


def _some(ids: FloatArray | IntArray) -> str:
    shown = ", ".join(str(one) for one in ids[:_SHOWN].tolist())
    return shown if ids.size <= _SHOWN else f"{shown} (and {ids.size - _SHOWN} more)"


def _listed(view: RoundView | None) -> str:
    if view is None:
        return "none, there is no candidate"
    few = view.pick(np.arange(min(view.count, _SHOWN)))
    return f"the {view.count} candidates {', '.join(map(str, few.tolist()))}{', ...' if view.count > _SHOWN else ''}"
