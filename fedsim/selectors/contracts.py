"""What a selector is asked, what it may know, and what it is told.

A selector is any object with two methods (no base class, nothing but NumPy needed)::

    select(view: RoundView, rng: numpy.random.Generator) -> Cohort   (or an array of client ids)
    observe(reports: Reports) -> None

It sees columns, one element per candidate, so that a million candidates cost arrays and not objects. What it
sees is what a real server could know at that moment and never the future; a method that needs more sets
``oracle = True`` on its class, is given an `OracleView` and is listed as an oracle.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A question to clients before the selection; it costs time and bits like every message.

    A selector that has a method ``probe(view, rng) -> Probe | None`` is asked for one at the start of a round. Who
    answers in time stands in the ``answers`` of the view with which it then selects.

    Attributes
    ----------
    client : distinct ids among the candidates
    asks : ``"loss"``, the mean loss of the current model on the client's data, or ``"resources"``, how long work and
        upload will take on average
    down_bits : size of the question; None for a whole model, which a loss needs
    up_bits : size of the answer
    samples : how many samples of its data a client looks at for its loss; None for all
    wait_s : longest wait for answers; None to wait for everybody
    """

    client: IntArray
    asks: Literal["loss", "resources"]
    down_bits: float | None = None
    up_bits: float
    samples: int | None = None
    wait_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What clients have answered to a `Probe`, one element per client that did in time.

    Attributes
    ----------
    client : ids, in the probe's order
    loss : mean loss of the current model on the client's data; NaN if it was not asked for
    compute_s, uplink_s : expected time of the local work and of the upload; NaN if they were not asked for
    """

    client: IntArray
    loss: FloatArray
    compute_s: FloatArray
    uplink_s: FloatArray


@dataclass(frozen=True, kw_only=True)
class RoundView:
    """What the server knows when it selects; every array has one element per candidate.

    The arrays are read-only and some are live: copy what shall be kept beyond the call.

    Attributes
    ----------
    round : int
        From 1.
    time_s : float
        Simulated time at which the round begins.
    clients : int
        Number of clients K in the crowd, candidates or not; ids are 0..K-1.
    wanted : int or None
        How many clients the server asks for; None for as many as the selector is set to. Where a selector returns
        more, the server keeps so many of them at random.
    client : ids of the candidates, ascending
    samples : training samples of each candidate
    total_samples : int
        Training samples of the whole crowd, ``|D|``.
    participations : how often each was selected before this round
    last_duration_s : how long its last delivered participation took, NaN before the first
    last_loss : mean training loss of its last delivered update, NaN before the first and in a run whose
        selector does not ask for losses (``needs = ("loss",)``)
    privacy_spent : epsilon that each has leaked so far, 0 without privacy
    privacy_budget : float or None
        Most that a client may ever leak; None without privacy.
    features : array of shape (candidates, f)
        What clients declare about themselves, for a selector whose class says ``uses_features = True``: expected
        seconds of downlink, work and uplink, and samples. f is 0 for others.
    answers : what clients have answered to the selector's probe; None where it has not asked
    """

    round: int
    time_s: float
    clients: int
    wanted: int | None = None
    client: IntArray
    samples: IntArray
    total_samples: int
    participations: IntArray
    last_duration_s: FloatArray
    last_loss: FloatArray
    privacy_spent: FloatArray
    privacy_budget: float | None
    features: FloatArray
    answers: Answers | None = None


@dataclass(frozen=True, kw_only=True)
class OracleView(RoundView):
    """A round view with knowledge that no server has.

    Attributes
    ----------
    expected_duration_s : mean time of a whole participation (downlink, work, uplink) of each candidate
    coming_duration_s : called without arguments, returns how long a participation that starts now will take each
        candidate; over a shared medium as if each were alone
    stays : called with two arrays of seconds after now, one element per candidate, returns which candidates will be
        there at both and at every instant between
    """

    expected_duration_s: FloatArray
    coming_duration_s: Callable[[], FloatArray] | None = None
    stays: Callable[[FloatArray, FloatArray], BoolArray] | None = None


@dataclass(frozen=True)
class Cohort:
    """Who takes part in a round.

    Attributes
    ----------
    client : distinct ids among the candidates
    draws : how often each was drawn, for methods that draw with replacement; once each if None
    weights : aggregation weight of each; by samples (FedAvg) if None
    work : share of the local work that each shall do, in (0, 1]; all of it if None
    """

    client: IntArray
    draws: IntArray | None = None
    weights: FloatArray | None = None
    work: FloatArray | None = None

    def part(self, kept: IntArray) -> "Cohort":
        """Return the members at some positions, with what is prescribed for them."""
        return Cohort(
            self.client[kept],
            None if self.draws is None else np.asarray(self.draws)[kept],
            None if self.weights is None else np.asarray(self.weights)[kept],
            None if self.work is None else np.asarray(self.work)[kept],
        )


@dataclass(frozen=True, kw_only=True)
class Reports:
    """What became of a cohort, as far as the server can tell; one element per member of the cohort.

    A synchronous server reports each round's cohort when the round is over; a client that delivers later is not
    reported again. An asynchronous one reports whoever has delivered or was given up since its last aggregation, a
    client that did so twice twice, and by then it may be at work again.

    Attributes
    ----------
    round : int
    time_s : float
        Simulated time at which the round ended.
    client : ids, in the cohort's order
    delivered : whether its update arrived in time
    duration_s : from the start of the participation until the update arrived or, for those that did not deliver,
        until the server stopped waiting (a censored duration)
    loss : mean training loss behind a delivered update if the selector asks for it, NaN otherwise
    measured : what else the selector's ``needs`` ask for, by name; NaN for those that did not deliver
    """

    round: int
    time_s: float
    client: IntArray
    delivered: BoolArray
    duration_s: FloatArray
    loss: FloatArray
    measured: Mapping[str, NDArray[np.floating[Any]]] = field(default_factory=dict)


@runtime_checkable
class Selector(Protocol):
    """What the server asks each round; an object may also carry ``paper``, ``needs``, ``oracle``, ``communication``."""

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return who takes part in the round that begins now."""
        ...

    def observe(self, reports: Reports) -> None:
        """Learn from what became of the cohort."""
        ...


class PublishedSelector:
    """Attributes by which fedsim lists its own selectors.

    Attributes
    ----------
    paper : where the method comes from
    needs : what of delivered updates it wants to be measured, some of `fedsim.measurements.MEASUREMENTS`
    oracle : whether it is given an `OracleView`
    communication : messages besides the cohort's models and updates: ``"a number up per update"``
    uses_features : whether clients declare features to it
    """

    paper: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    oracle: ClassVar[bool] = False
    communication: ClassVar[str] = "nothing"
    uses_features: ClassVar[bool] = False

    def observe(self, reports: Reports) -> None:
        """Learn nothing; methods with memory override this."""


def cohort_size(view: RoundView, cohort: int) -> int:
    """Return how many to select: what the server asks for, or else the selector's own number; at most all there are."""
    return min(cohort if view.wanted is None else view.wanted, view.client.size)


def check_whole(name: str, value: object, lowest: int) -> None:
    """Refuse a constructor's argument that is no whole number from ``lowest`` on.

    Raises
    ------
    ValueError
        Naming the argument, its value and what is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise ValueError(f"{name}: {value!r} is not allowed; it must be a whole number of at least {lowest}")


def check_number(name: str, value: object, lowest: float, *, above: bool = False) -> None:
    """Refuse a constructor's argument that is no finite number from ``lowest`` on (``above``: beyond it).

    Raises
    ------
    ValueError
        Naming the argument, its value and what is allowed.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not np.isfinite(value)
        or value < lowest
        or (above and value == lowest)
    ):
        allowed = f"above {lowest}" if above else f"of at least {lowest}"
        raise ValueError(f"{name}: {value!r} is not allowed; it must be a finite number {allowed}")
