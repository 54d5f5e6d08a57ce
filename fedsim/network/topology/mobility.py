"""Mobility of clients: straight legs as arithmetic, without a clock.

Streams: ``waypoint-radius``, ``waypoint-angle`` and ``waypoint-speed`` by (client, leg).
"""

import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final, Literal, Protocol, Self

import numpy as np
from pydantic import BeforeValidator, Field, NonNegativeFloat, model_validator

from fedsim.answers import AnswerError, Contract, Given, asked, in_words
from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import PartError
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import TIMES, Origin, Table, followed, instants, note, origin_of, owned, picked
from fedsim.inputs.tables.published import LAST_STEP, SPEED
from fedsim.registry import Component, Registry
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import COORDINATES, LONGEST_S, Bound, Metres, MetresPerSecond, NonNegative, Positive, Seconds

MOBILITIES = Registry(
    "mobility",
    "fedsim.mobilities",
    ("build",),
    {
        "random-waypoint": "fedsim.network.topology.mobility:RandomWaypoint",
        "trace": "fedsim.network.topology.mobility:Trace",
    },
)

_POINTS: Final = Bound(0.0, LONGEST_S)
_Id = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value % 1 == 0 else value)
]
"""The number of a client, which an array of NumPy has as a float."""
_COME_AND_GO: Final = "clients come or go within the trace and stand still outside"
_ABSENT: Final = "; devices.availability = { kind = 'traces', path = the same file } makes them absent there"
_ANY: Final = Bound(0.0, 1e300)
_WALKS_M_PER_S: Final = 1.0
"""Speeds beyond which clients do not stand still."""
_OTHER_UNIT: Final = 100.0
_DRAWN_AT_ONCE: Final = 16
_SHORTEST_LEG_S: Final = 0.01
"""Time from the middle of the disc to its edge at the greatest speed."""
Place = tuple[float, float]
Points = dict[int, list[tuple[float, float, float]]]


@dataclass(frozen=True, slots=True)
class Leg:
    """A straight line at constant speed; a pause is one at speed 0."""

    start_s: float
    end_s: float
    place_m: Place
    velocity_m_per_s: Place


class Movement(Protocol):
    def __call__(self, client: int, place_m: Place, /) -> Iterator[Leg]:
        """Yield the legs of a client without gaps, from time 0 on."""
        ...


class Mobility(Protocol):
    """A scenario's mobility: settings that build the movement of one run."""

    def build(self, run: RunSetup) -> Movement:
        """Return the movement of one run."""
        ...


@dataclass(frozen=True)
class _Moves:
    def __call__(self, answer: object, given: Given) -> Movement:
        if not callable(answer):
            raise AnswerError(in_words(answer), "a function of a client and its place")
        movement: Movement = answer
        return lambda client, place_m: _checked_legs(movement, client, place_m)


def _checked_legs(movement: Movement, client: int, place_m: Place) -> Iterator[Leg]:
    """Yield a client's legs, which begin at time 0 and have no gaps."""
    legs = asked("mobility", "build", lambda: iter(movement(client, place_m)))
    end_s = 0.0
    while (leg := asked("mobility", "build", lambda: next(legs, None))) is not None:
        if not isinstance(leg, Leg):
            raise PartError(f"mobility: a leg is {in_words(leg)}", "allowed: Leg", client)
        numbers = (leg.start_s, *leg.place_m, *leg.velocity_m_per_s)
        if not all(map(math.isfinite, numbers)) or leg.start_s != end_s or not leg.end_s > leg.start_s:
            allowed = "allowed: finite numbers, from the end of the leg before to a later instant"
            raise PartError(f"mobility: a leg is {leg}", allowed, client)
        end_s = leg.end_s
        yield leg


MOBILITY_MODEL: Final = Contract("mobility", Mobility, {"build": _Moves()})


def standing(_client: int, place_m: Place) -> Iterator[Leg]:
    """Yield the one leg of a client that does not move."""
    yield Leg(0.0, math.inf, place_m, (0.0, 0.0))


class RandomWaypoint(Component):
    """Legs to places drawn uniformly from a disc, at speeds drawn uniformly, with a pause at each place.

    Johnson and Maltz, "Dynamic source routing in ad hoc wireless networks", 1996. The least speed is above 0, else
    the mean speed decays without end (Yoon, Liu and Noble, "Random waypoint considered harmful", INFOCOM 2003).
    Clients begin at the positions of the crowd's placement, so the first legs are not stationary.

    Attributes
    ----------
    radius_m : of the disc around the origin
    slowest_m_per_s, fastest_m_per_s : ends of the range of speeds
    pause_s : at each waypoint
    """

    radius_m: Positive[Metres]
    slowest_m_per_s: Positive[MetresPerSecond]
    fastest_m_per_s: Positive[MetresPerSecond]
    pause_s: NonNegative[Seconds] = 0.0

    @property
    def known_deviation(self) -> str:
        return "clients begin where they are placed, and are not spread as later on before some 1,000 s"

    @model_validator(mode="after")
    def _range_rises(self) -> Self:
        if self.slowest_m_per_s > self.fastest_m_per_s:
            raise ValueError(
                f"slowest_m_per_s = {self.slowest_m_per_s} is not allowed; "
                f"it must be at most fastest_m_per_s = {self.fastest_m_per_s}"
            )
        if self.fastest_m_per_s > self.radius_m / _SHORTEST_LEG_S:
            raise ValueError(
                f"fastest_m_per_s = {self.fastest_m_per_s} is not allowed; with radius_m = {self.radius_m} it must be "
                f"at most {self.radius_m / _SHORTEST_LEG_S}, so that a leg takes a while"
            )
        return self

    def build(self, run: RunSetup) -> Movement:
        return partial(self._legs, run.streams)

    def _legs(self, streams: Streams, client: int, place_m: Place) -> Iterator[Leg]:
        now_s, (x_m, y_m) = 0.0, place_m
        for first in itertools.count(0, _DRAWN_AT_ONCE):
            leg = np.arange(first, first + _DRAWN_AT_ONCE)
            radius = self.radius_m * np.sqrt(streams.uniform("waypoint-radius", client, leg))
            angle = 2 * np.pi * streams.uniform("waypoint-angle", client, leg)
            spread = self.fastest_m_per_s - self.slowest_m_per_s
            speed = self.slowest_m_per_s + spread * streams.uniform("waypoint-speed", client, leg)
            goals = zip(
                (radius * np.cos(angle)).tolist(), (radius * np.sin(angle)).tolist(), speed.tolist(), strict=True
            )
            for goal_x_m, goal_y_m, pace in goals:
                way_m = math.hypot(goal_x_m - x_m, goal_y_m - y_m)
                if way_m > 0:
                    arrives_s = now_s + way_m / pace
                    heading = (goal_x_m - x_m) / way_m, (goal_y_m - y_m) / way_m
                    yield Leg(now_s, arrives_s, (x_m, y_m), (pace * heading[0], pace * heading[1]))
                    now_s, x_m, y_m = arrives_s, goal_x_m, goal_y_m
                if self.pause_s > 0:
                    yield Leg(now_s, now_s + self.pause_s, (x_m, y_m), (0.0, 0.0))
                    now_s += self.pause_s


class Trace(Component):
    """Places at given times, with straight lines in between; exactly one of points and path is given.

    Before its first time a client stands still; one that is not in the trace stands at the position of the crowd's
    placement, which the run's notes say.

    Attributes
    ----------
    points : rows (client, time in s, x in m, y in m); the times of a client rise
    path : a table with the columns ``client,time_s,x_m,y_m``, floating car data of SUMO (XML or CSV), or movements of
        ns-2
        Vehicles of SUMO are available while they are in the file, unless the scenario has ``devices.availability``.
        Rows may be in any order, times may be dates or seconds since 1970, ids may be names.
    after : after its last time a client stands still (``"hold"``), or its way begins anew (``"repeat"``); by default
        it stands still, which the run's notes say of a file
    origin : instant of the trace at which the run begins; by default 0, or the first date
    """

    points: (
        Annotated[
            Annotated[
                tuple[Annotated[tuple[_Id, NonNegativeFloat, float, float], Field(strict=False)], ...],
                Field(min_length=1, strict=False),
            ],
            _POINTS,
        ]
        | None
    ) = None
    path: InputPath | None = None
    after: Literal["hold", "repeat"] | None = None
    origin: Origin = None

    @model_validator(mode="after")
    def _is_one_trace(self) -> Self:
        if (self.points is None) == (self.path is None):
            raise ValueError("a trace needs either points or the path of a file")
        last: dict[int, float] = {}
        for client, time_s, _, _ in self.points or ():
            if time_s <= last.get(client, -1.0):
                raise ValueError(
                    f"points: time {time_s} s of client {client} is not allowed; it must be after {last[client]} s"
                )
            last[client] = time_s
        return self

    def build(self, run: RunSetup) -> Movement:
        return self.of_clients(run.clients)

    def of_clients(self, clients: int) -> Movement:
        """Return the movement of K clients, refusing a trace whose ids are those of others."""
        if self.path is not None:
            table = Table.read(self.path, "network.mobility.path")
        else:
            names = ("client", "time_s", "x_m", "y_m")
            columns = dict(zip(names, np.array(self.points, dtype=np.float64).T, strict=True))
            table = Table(columns, "network.mobility.points")
        ways = _ways(table, clients, self.origin)
        spans = {(way[0][0], way[-1][0]) for way in ways.values()}
        whole = min(first for first, _ in spans), max(last for _, last in spans)
        if self.path is not None and self.after is None:
            note(table.where, "after its last row a client stands still, as no after is stated")
        if self.path is not None and self.after != "repeat":
            hint = "" if table.find(LAST_STEP) else _ABSENT
            table.note(sum((way[0][0], way[-1][0]) != whole for way in ways.values()), _COME_AND_GO + hint)
        return partial(_along, ways, self.after == "repeat")


def _ways(table: Table, clients: int, origin: float | str | None) -> Points:
    row, client = owned(table, clients, "any")
    least = 0.0 if origin is None else -np.inf
    times = instants(table, table.called(*TIMES), least=least)
    begins = origin_of(table, [times], origin)
    x_m, y_m = (table.numbers(name, COORDINATES, missing="nan", rows=row) for name in ("x_m", "y_m"))
    there = np.bincount(client, minlength=clients) > 0
    client, value, row, x_m, y_m = followed(table, client, times.at(row), row, x_m, y_m)
    if not client.size:
        table.refuse("it has no row with an instant and a place; allowed: at least one")
    lost = there & (np.bincount(client, minlength=clients) == 0)
    table.note(int(lost.sum()), "clients stand where they are placed: none of their rows has an instant and a place")
    time_s = replace(times, value=value).since(begins)
    if time_s.max() < 0:
        table.refuse(f"origin: {origin!r} is not allowed; all rows are of instants before it")
    again = (np.diff(client, prepend=-1) == 0) & (np.diff(time_s, prepend=-1.0) == 0)
    for at in np.flatnonzero(again & ((np.diff(x_m, prepend=0.0) != 0) | (np.diff(y_m, prepend=0.0) != 0)))[:1]:
        what = f"at {time_s[at]:g} s client {client[at]} is at two places: ({x_m[at - 1]:g}, {y_m[at - 1]:g}) and"
        table.refuse(f"row {row[at] + 1}: {what} ({x_m[at]:g}, {y_m[at]:g}) m; allowed: one")
    table.note(int(again.sum()), "rows not used: the same place at the same instant as a row before")
    row, client, time_s, x_m, y_m = picked(~again, row, client, time_s, x_m, y_m)
    _hold_against_speeds(table, row, client, time_s, x_m, y_m)
    ends = np.searchsorted(client, np.arange(clients + 1))
    return {
        number: list(zip(*(values[begin:end].tolist() for values in (time_s, x_m, y_m)), strict=True))
        for number, (begin, end) in enumerate(itertools.pairwise(ends.tolist()))
        if end > begin
    }


def _hold_against_speeds(
    table: Table, row: IntArray, client: IntArray, time_s: FloatArray, x_m: FloatArray, y_m: FloatArray
) -> None:
    """Refuse places that are no metres, such as degrees, where a column of speeds says how far clients move."""
    if table.find(SPEED) is None:
        return
    speed = table.numbers(SPEED, _ANY, missing="nan", rows=row)[1:]
    moves = (np.diff(client) == 0) & (speed > _WALKS_M_PER_S)
    if not moves.any():
        return
    apart, by_speed = np.hypot(np.diff(x_m), np.diff(y_m))[moves], (speed * np.diff(time_s))[moves]
    ratio = float(np.median(apart) / np.median(by_speed))
    if not 1 / _OTHER_UNIT < ratio < _OTHER_UNIT:
        table.refuse(
            f"clients move {np.median(apart):.3g} between rows by x_m and y_m, and {np.median(by_speed):.3g} m by "
            f"{table.called(SPEED)}, in the median; allowed: places in metres, not in degrees (SUMO without geo), and "
            "instants in seconds"
        )


def _along(points: Points, repeats: bool, client: int, place_m: Place) -> Iterator[Leg]:
    """Yield the legs of a client's way from time 0 on, which lies in the way where that begins before."""
    way = points.get(client, [(0.0, *place_m)])
    repeats = repeats and way[-1][0] > way[0][0]
    if way[0][0] > 0:
        way = [(0.0, *way[0][1:]), *way]
    # A run that begins within or after a way begins it anew as a whole.
    period_s = way[-1][0] - way[0][0]
    rounds = itertools.count(max(0, math.floor(-way[-1][0] / period_s) + 1)) if repeats else (0,)
    for number in rounds:
        shift_s = number * period_s
        for (from_s, x_m, y_m), (to_s, to_x_m, to_y_m) in itertools.pairwise(way):
            if shift_s + to_s > 0:
                took_s, begins_s = to_s - from_s, max(shift_s + from_s, 0.0)
                velocity = (to_x_m - x_m) / took_s, (to_y_m - y_m) / took_s
                had_s = begins_s - (shift_s + from_s)
                place = x_m + had_s * velocity[0], y_m + had_s * velocity[1]
                yield Leg(begins_s, shift_s + to_s, place, velocity)
    yield Leg(max(way[-1][0], 0.0), math.inf, way[-1][1:], (0.0, 0.0))


class Walk:
    def __init__(self, legs: Iterator[Leg]) -> None:
        self._legs = legs
        self._known = deque([next(legs)])

    @property
    def stands(self) -> bool:
        return math.isinf(self._known[0].end_s) and self._known[0].velocity_m_per_s == (0.0, 0.0)

    def at(self, times_s: FloatArray, now_s: float) -> FloatArray:
        while self._known[-1].end_s <= times_s[-1]:
            self._known.append(next(self._legs))
        while self._known[0].end_s <= now_s:
            self._known.popleft()
        starts_s = np.array([leg.start_s for leg in self._known])
        number = np.searchsorted(starts_s, times_s, side="right") - 1
        places = np.array([leg.place_m for leg in self._known])[number]
        velocity = np.array([leg.velocity_m_per_s for leg in self._known])[number]
        return np.asarray(places + (times_s - starts_s[number])[:, None] * velocity)
