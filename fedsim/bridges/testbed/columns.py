"""What a testbed returns: the clients of a round as columns, and single arrivals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.history.outcomes import NO_VALUE, Fate, Outcome
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.effects.privacy.budget import charged
from fedsim.rounds.server.outside import Closed

_OUTCOMES: Final = np.array(Outcome.labels())
_TYPES: Final[dict[Any, Any]] = {IntArray: np.int64, BoolArray: np.bool_, FloatArray: np.float64}
_USED: Final = int(Fate.USED)
_STALE_USED: Final = int(Fate.STALE_USED)


@dataclass(frozen=True, kw_only=True)
class Participations:
    """Participations of clients as columns of shape (n,), one element each.

    Attributes
    ----------
    client : ids
    round : number of the round in which each was sent, from 1
    start_version : version of the model that each started from, from 0
    outcome : ``"delivered"``, ``"late"`` or ``"dropped"``; a real server cannot tell the last two apart
    arrived : whether the update has arrived, in time or not
    used : whether an aggregation has used the update
    weight : of the update in that aggregation; 0 without
    staleness : aggregations between the start of the client and the use of its update; -1 without a use
    start_s, end_s : instants in simulated seconds; the end is NaN for a client in flight
    downlink_s, compute_s, queue_s, uplink_s : seconds of each phase; NaN for a client in flight
    downlink_bits, uplink_bits : bits that were carried; NaN for a client in flight
    energy_j : joules that the battery has paid; 0 without batteries, NaN for a client in flight
    epsilon : privacy that the upload was charged; 0 without privacy
    """

    client: IntArray
    round: IntArray
    start_version: IntArray
    outcome: NDArray[np.str_]
    arrived: BoolArray
    used: BoolArray
    weight: FloatArray
    staleness: IntArray
    start_s: FloatArray
    end_s: FloatArray
    downlink_s: FloatArray
    compute_s: FloatArray
    queue_s: FloatArray
    uplink_s: FloatArray
    downlink_bits: FloatArray
    uplink_bits: FloatArray
    energy_j: FloatArray
    epsilon: FloatArray

    @property
    def delivered(self) -> BoolArray:
        """Which updates have arrived in time, shape (n,)."""
        return np.asarray(self.outcome == Outcome.DELIVERED.label)

    @property
    def arrivals(self) -> IntArray:
        """Positions of the updates that have arrived, in the order of time, shape (m,)."""
        order = np.argsort(self.end_s, kind="stable")
        return np.asarray(order[self.arrived[order]])

    @property
    def duration_s(self) -> FloatArray:
        """Seconds of each participation, shape (n,); NaN for a client in flight."""
        return self.end_s - self.start_s


@dataclass(frozen=True, kw_only=True)
class RoundResult(Participations):
    """A round that was played; its columns are of the clients that were sent, in the order of the cohort.

    At an asynchronous server, which sends clients one by one, they are of the clients whose updates the round has used.

    Attributes
    ----------
    number : of the round, from 1
    round_start_s, round_end_s : begin and end in simulated seconds
    version : of the newest model, which counts aggregations
    ended_by : what has ended the round: ``"enough"``, ``"deadline"`` or ``"restart"``
    candidates : number of candidates at the selection
    late : updates of earlier rounds that have arrived since the round before, or were used in this one

    Examples
    --------
    >>> from fedsim import Testbed
    >>> wait = {"kind": "constant", "value_s": 1.0}
    >>> tables = {
    ...     "name": "one-round",
    ...     "crowd": {"clients": 2},
    ...     "learning": "none",
    ...     "network": {"kind": "latency", "downlink": wait, "uplink": wait},
    ...     "devices": {"compute": "zero"},
    ...     "rounds": {"count": 1, "policy": {"kind": "deadline", "deadline_s": 4.0}},
    ...     "selector": {"kind": "uniform", "cohort": 2},
    ... }
    >>> with Testbed(tables) as testbed:
    ...     result = testbed.round([0, 1], compute_s=[3.0, 0.5])
    >>> result.duration_s.tolist(), result.delivered.tolist(), result.arrivals.tolist()
    ([4.0, 2.5], [False, True], [1])
    >>> result.compute_s.tolist(), result.ended_by, result.round_end_s
    ([3.0, 0.5], 'deadline', 4.0)
    """

    number: int
    round_start_s: float
    round_end_s: float
    version: int
    ended_by: str
    candidates: int
    late: Participations


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """An update that has arrived at an asynchronous server, or a client that it has given up.

    Attributes
    ----------
    client : id; -1 where a round has closed without an arrival, as at the end of an interval
    outcome : ``"delivered"``, or ``"late"`` or ``"dropped"`` for a client that was given up
    time_s : instant in simulated seconds
    start_s : instant at which the client was sent; NaN without a client
    start_version : version of the model that it started from; -1 without a client
    staleness : aggregations between that and the arrival
    closed : the round that has ended with this arrival; None if the server waits for more updates

    Examples
    --------
    >>> from fedsim import Testbed
    >>> wait = {"kind": "constant", "value_s": 1.0}
    >>> tables = {
    ...     "name": "two-places",
    ...     "crowd": {"clients": 2},
    ...     "learning": "none",
    ...     "network": {"kind": "latency", "downlink": wait, "uplink": wait},
    ...     "devices": {"compute": "zero"},
    ...     "rounds": {"count": 1, "policy": {"kind": "fedbuff", "concurrency": 2, "buffer": 1}},
    ...     "selector": {"kind": "uniform", "cohort": 2},
    ... }
    >>> with Testbed(tables) as testbed:
    ...     testbed.send([0, 1], compute_s=[3.0, 0.5])
    ...     arrival = testbed.next_arrival()
    >>> arrival.client, arrival.time_s, arrival.staleness, arrival.closed.client.tolist()
    (1, 2.5, 0, [1])
    """

    client: int
    outcome: str
    time_s: float
    start_s: float
    start_version: int
    staleness: int
    closed: RoundResult | None = None

    @property
    def delivered(self) -> bool:
        """Whether there is an update."""
        return self.client >= 0 and self.outcome == Outcome.DELIVERED.label


def round_of(closed: Closed, ended: Sequence[tuple[CohortRun, int, float]]) -> RoundResult:
    """Return a round that is over, with the clients that have delivered since the round before."""
    own: Members = closed.served if closed.own is None else [(closed.own, closed.own.everyone)]
    late: dict[CohortRun, set[int]] = {}
    if closed.own is not None:
        for run, places in closed.served:
            late.setdefault(run, set()).update(places.tolist())
        for run, i, _ in ended:
            late.setdefault(run, set()).add(i)
        late.pop(closed.own, None)
    others = [(run, np.array(sorted(places))) for run, places in sorted(late.items(), key=lambda item: item[0].order)]
    return RoundResult(
        **_columns_of(own),
        number=closed.number,
        round_start_s=closed.start_s,
        round_end_s=closed.end_s,
        version=closed.version,
        ended_by=closed.ended_by.label,
        candidates=closed.candidates,
        late=Participations(**_columns_of(others)),
    )


def arrival_of(run: CohortRun, i: int, time_s: float, version: int) -> Arrival:
    """Return the arrival of a member of a cohort, or of a client that was given up, at the model of a version."""
    return Arrival(
        client=int(run.cohort.client[i]),
        outcome=str(_OUTCOMES[run.participations.outcome[i]]),
        time_s=float(time_s),
        start_s=float(run.participations.start_s),
        start_version=run.model.version,
        staleness=version - run.model.version,
    )


def without_client(time_s: float) -> Arrival:
    return Arrival(client=-1, outcome="", time_s=time_s, start_s=math.nan, start_version=-1, staleness=0)


def _columns_of(members: Members) -> dict[str, Any]:
    parts = [_columns(run, places) for run, places in members]
    columns = {
        one.name: np.concatenate([part[one.name] for part in parts])
        if parts
        else np.zeros(0, dtype=_TYPES.get(one.type, _OUTCOMES.dtype))
        for one in fields(Participations)
    }
    for column in columns.values():
        column.flags.writeable = False
    return columns


def _columns(run: CohortRun, places: IntArray) -> dict[str, NDArray[Any]]:
    members, plan, size = run.participations, run.participations.plan, places.size
    ended, fate = members.ended[places], run.fate[places]

    def known(values: FloatArray) -> FloatArray:
        return np.where(ended, values[places], math.nan)

    down_bits, up_bits = members.sent_bits
    return {
        "client": run.cohort.client[places],
        "round": np.full(size, run.number),
        "start_version": np.full(size, run.model.version),
        "outcome": _OUTCOMES[members.outcome[places]],
        "arrived": members.arrived[places],
        "used": (fate == _USED) | (fate == _STALE_USED),
        "weight": run.used_weight[places],
        "staleness": np.where(run.served_round[places] == NO_VALUE, NO_VALUE, run.staleness[places]),
        "start_s": np.full(size, float(members.start_s)),
        "end_s": members.ended_s[places],
        "downlink_s": known(plan.spent_s[0]),
        "compute_s": known(plan.spent_s[1]),
        "queue_s": known(plan.queue_s.sum(axis=0)),
        "uplink_s": known(plan.spent_s[2]),
        "downlink_bits": known(down_bits),
        "uplink_bits": known(up_bits),
        "energy_j": known(plan.columns.get("energy_j", np.zeros(plan.client.size))),
        "epsilon": charged(run.plan, places),
    }
