"""Checks of a selector's answers."""

from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from fedsim.answers import AnswerError, Flag, Kind, Number, Numbers, OneOf, OptionalOf, in_words, same_shape
from fedsim.arrays import IntArray, any_of
from fedsim.errors import SelectorError
from fedsim.measurements import MOST_WORK
from fedsim.selectors.contracts import Allocation, Cohort, Probe, RoundView, Sampling
from fedsim.selectors.questions import RandomizedResponse

_EACH: Final = same_shape("client")
_COHORT: Final[dict[str, Kind]] = {
    "draws": Numbers(_EACH, least=1, most=2**31 - 1, dtype=np.int64),
    "weights": Numbers(_EACH, least=0, most=1e300),
    "work": Numbers(_EACH, least=0, most=MOST_WORK),
}
"""What a cohort may hold beside its clients; the number of draws is that of the column in the table."""
_ALLOCATION: Final[dict[str, Kind]] = {
    "bandwidth_hz": Numbers(_EACH, least=0, most=1e12),
    "transmit_power_dbm": Numbers(_EACH, least=-100, most=100),
    "cpu_frequency": Numbers(_EACH, least=0, most=1),
}
"""What a cohort's allocation may hold."""
_SAMPLING: Final[dict[str, Kind]] = {
    "probability": Number(least=0, above=True, most=1),
    "divisor": OptionalOf(Number(least=0, above=True)),
    "bits": Number(least=0),
    "has_model": Flag(),
}
"""What a cohort's sampling may hold."""
_PROBE: Final[dict[str, Kind]] = {
    "asks": OneOf(("loss", "resources", "update_norm", "samples")),
    "down_bits": OptionalOf(Number(least=0)),
    "up_bits": Number(least=0),
    "samples": OptionalOf(Number(least=1, whole=True)),
    "wait_s": OptionalOf(Number(least=0)),
}


def as_cohort(chosen: object, view: RoundView, name: str) -> Cohort:
    """Return a selector's cohort, checked and copied: a selector may use its arrays again."""
    if not isinstance(chosen, Cohort):
        return Cohort(_distinct_candidates(f"{name}.select", chosen, view))
    source = f"{name}.select"
    client = _distinct_candidates(source, chosen.client, view)
    allocation = None if chosen.allocation is None else _allocated(source, chosen.allocation, client)
    trained = chosen.trained is not False and _has_trained(source, chosen.trained, client, view)
    sampling = None if chosen.sampling is None else _sampled(source, chosen, client, view)
    if chosen.draws is None and chosen.weights is None and chosen.work is None:
        return Cohort(client, allocation=allocation, trained=trained, sampling=sampling)
    draws, weights, work = (
        None if value is None else _checked(source, column, value, client)
        for column, value in (("draws", chosen.draws), ("weights", chosen.weights), ("work", chosen.work))
    )
    if work is not None and not work.all():
        one = int(client[work.argmin()])
        raise SelectorError(f"{source} returned work of 0", "allowed: leave the client out instead", client=one)
    return Cohort(client, draws, weights, work, allocation, trained, sampling)


def as_probe(asked: object, view: RoundView, name: str) -> Probe:
    """Return a selector's question to candidates, checked and copied."""
    name = f"{name}.probe"
    if not isinstance(asked, Probe):
        raise SelectorError(f"{name} returned {in_words(asked)}", "allowed: a Probe, or None for no question")
    client = _distinct_candidates(name, asked.client, view)
    values: dict[str, Any] = {what: _checked(name, what, vars(asked)[what], client) for what in _PROBE}
    if (asked.asks == "samples") != (type(asked.response) is RandomizedResponse):
        raise SelectorError(
            f"{name} returned a question for {asked.asks} with response = {in_words(asked.response)}",
            "allowed: a RandomizedResponse for samples, and None for all else",
        )
    return replace(asked, client=client, **values)


def _has_trained(source: str, trained: object, client: IntArray, view: RoundView) -> bool:
    """Return that a cohort has its updates, after a check that all its clients have answered with their norms."""
    if trained is not True:
        raise SelectorError(f"{source} returned trained = {in_words(trained)}", "allowed: True or False")
    answers = view.answers
    norms = answers is not None and answers.update_norm is not None
    silent = client if answers is None or not norms else client[~np.isin(client, answers.client)]
    if silent.size or not norms:
        raise SelectorError(
            f"{source} returned trained = True with clients that have not sent the norm of an update of this round: "
            f"{silent[:10]!r}",
            'allowed: clients with an answer to a question for "update_norm"',
            client=int(silent[0]) if silent.size else None,
        )
    return True


def _sampled(source: str, chosen: Cohort, client: IntArray, view: RoundView) -> Sampling:
    """Return a checked copy of how the clients (n,) of a cohort draw samples."""
    if type(chosen.sampling) is not Sampling:
        raise SelectorError(f"{source} returned sampling = {in_words(chosen.sampling)}", "allowed: a Sampling, or None")
    sampling = Sampling(
        **{what: _checked(source, what, value, client) for what, value in vars(chosen.sampling).items()}
    )
    if chosen.work is not None or chosen.trained:
        raise SelectorError(
            f"{source} returned sampling beside {'work' if chosen.work is not None else 'trained'}",
            "allowed: one of the two; a client works on all that it draws",
        )
    if sampling.has_model and (view.answers is None or not np.isin(client, view.answers.client).all()):
        raise SelectorError(
            f"{source} returned sampling with has_model = True for clients without an answer in this round",
            "allowed: only for clients that got the model with a question",
        )
    return sampling


def _allocated(source: str, allocation: object, client: IntArray) -> Allocation:
    """Return a checked copy of the resources of distinct clients (n,)."""
    if not isinstance(allocation, Allocation):
        raise SelectorError(f"{source} returned allocation = {in_words(allocation)}", "allowed: an Allocation, or None")
    given = {what: value for what, value in vars(allocation).items() if value is not None}
    checked = {what: _checked(source, what, value, client) for what, value in given.items()}
    for what in ("bandwidth_hz", "cpu_frequency"):
        if what in checked and not checked[what].all():
            one = int(client[checked[what].argmin()])
            raise SelectorError(f"{source} returned {what} = 0", "allowed: more than 0", client=one)
    return Allocation(**checked)


def _checked(source: str, what: str, value: object, client: IntArray) -> Any:
    """Return a checked copy of one column of a cohort, or of one entry of a question, to distinct clients (n,)."""
    try:
        return {**_COHORT, **_ALLOCATION, **_PROBE, **_SAMPLING}[what](value, {"client": client})
    except AnswerError as lie:
        one = None if lie.at is None else int(client[lie.at])
        found = in_words(value) if lie.at is None else f"{in_words(value)} with {lie.found} for client {one}"
        raise SelectorError(f"{source} returned {what} = {found}", f"allowed: {lie.allowed}", client=one) from None


def _distinct_candidates(source: str, client: object, view: RoundView) -> IntArray:
    """Return a copy of ids as integers, after a check that they are distinct candidates."""
    try:
        ids: NDArray[np.generic] = np.asarray(client)
    except Exception:
        ids = np.array(None)
    if ids.shape == (0,):
        return ids.astype(np.int64)  # an empty list has no type of its own
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        allowed = "allowed: a one-dimensional array of client ids, whole numbers; of a mask view.client[mask]"
        raise SelectorError(f"{source} returned {in_words(client)}", allowed)
    ids = cast(IntArray, ids.astype(np.int64))
    rising = not any_of(ids[1:] <= ids[:-1])
    if rising and view.count == view.clients and ids.item(0) >= 0 and ids.item(-1) < view.clients:
        return ids  # all clients of the crowd are candidates
    if not rising:
        ordered = np.sort(ids)
        if np.any(twice := ordered[1:] == ordered[:-1]):
            one = int(ordered[1:][twice][0])
            raise SelectorError(
                f"{source} returned a client twice: {one} in {in_words(ids)}", "allowed: draws for that", client=one
            )
    known = view.includes(ids)
    if not known.all():
        raise SelectorError(
            f"{source} returned clients that are no candidates: {ids[~known][:10]!r}",
            f"allowed: some of the {view.count} candidates",
            client=int(ids[~known][0]),
        )
    return ids
