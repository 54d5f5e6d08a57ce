"""The base station of each client on the clock: at the start of a transfer, while it moves, and when cells fail."""

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.network.medium.fluid import FluidTransfer
from fedsim.network.topology.attachment import AttachedTopology
from fedsim.network.topology.coverage import Coverage, Offer, View, offers
from fedsim.network.topology.handover import HandoverRule, Watch
from fedsim.network.topology.mobility import Walk

_AHEAD: Final = 64
Process = Generator[Event, Any, None]


class Handover(NamedTuple):
    """A change of a client from one base station to another during a transfer."""

    time_s: float
    client: int
    from_station: str
    to_station: str


@dataclass(frozen=True)
class Outlook:
    """The next measurements of a client, if no station fails meanwhile."""

    watch: Watch
    places_m: FloatArray
    rows: list[int]
    offers: list[Offer]
    target: int | None

    @property
    def ends_s(self) -> float:
        return float(self.watch.times_s[self.rows[-1]])


class AccessLinks(Protocol):
    """The access links of clients, which an association changes."""

    env: Environment

    def join(self, client: int, station: int, offer: Offer) -> bool:
        """Let a client's access lead to a base station; return whether its routes have changed."""
        ...

    def find_routes(self, transfers: Iterable[FluidTransfer]) -> None:
        """Let the remaining bits of transfers take the routes that are the shortest now."""
        ...


class Association:
    def __init__(
        self,
        medium: AccessLinks,
        attached: AttachedTopology,
        coverage: Coverage,
        rule: HandoverRule,
        interruption_s: float,
        station: IntArray,
        walk_of: Callable[[int], Walk],
    ) -> None:
        self.handovers: list[Handover] = []
        self._medium, self._env, self._attached, self._coverage = medium, medium.env, attached, coverage
        self._rule, self._interruption_s = rule, interruption_s
        self._station: list[int] = station.tolist()
        self._walk_of, self._walks = walk_of, dict[int, Walk]()
        self._flows: dict[int, list[FluidTransfer]] = {}
        self._following: dict[int, object] = {}
        self._client_at = {node: client for client, node in enumerate(attached.topology.client_node)}
        self._news = medium.env.event()

    def clients_at(self, nodes: Iterable[int]) -> list[int]:
        return [self._client_at[node] for node in nodes if node in self._client_at]

    def connect(self, client: int) -> None:
        """Attach a client to the strongest station, unless one of its transfers is in progress."""
        if self._busy(client):
            return
        place_m, usable = self._place_m(client), self._usable()
        view = self._view(client, place_m)
        signal_db = view.signal_db[0]
        if self._rule.reselect_after_s is not None and usable.any():
            signal_db = np.where(usable, signal_db, -np.inf)
        self._attach(client, int(np.argmax(signal_db)), view)
        self._following[client] = token = object()
        self._env.process(self._follow(client, token, place_m[0]))

    def begun(self, client: int, transfer: FluidTransfer) -> None:
        self._flows[client] = [*self._under_way(client), transfer]

    def stations_changed(self) -> None:
        news, self._news = self._news, self._env.event()
        news.succeed()

    def _follow(self, client: int, token: object, seen_m: FloatArray) -> Process:
        """Follow a client while it has transfers in progress; `seen_m` is the place of its last update of rates."""
        never_s = np.full(len(self._attached.stations), np.inf)
        seen_s, since_s = self._env.now, never_s
        while self._goes_on(client, token):
            if not self._usable()[self._station[client]]:
                yield from self._look_for_another(client, token)
                seen_s, since_s = self._env.now, never_s
                continue
            ahead = self._look_ahead(client, seen_s, since_s, seen_m)
            if ahead.target is None and self._walks[client].stands:
                yield self._news
                seen_s = self._env.now
                continue
            for row, offer in zip(ahead.rows, ahead.offers, strict=True):
                until_s = float(ahead.watch.times_s[row])
                timer = self._env.timeout(max(0.0, until_s - self._env.now))
                yield timer | self._news
                seen_s = max(self._env.now, until_s) if timer.processed else self._env.now
                if not (timer.processed and self._goes_on(client, token)):
                    break
                seen_m = ahead.places_m[row]
                self._join(client, self._station[client], offer)
            since_s = ahead.watch.since_at(seen_s, since_s)
            took_over = ahead.target if seen_s >= ahead.ends_s and self._goes_on(client, token) else None
            if took_over is not None and self._usable()[took_over]:
                since_s = never_s
                yield from self._hand_over(client, took_over)

    def _look_ahead(self, client: int, seen_s: float, since_s: FloatArray, seen_m: FloatArray) -> Outlook:
        """Return the changes over the next measurements, if no station fails or works again meanwhile."""
        station = self._station[client]
        times_s = self._rule.ticks_s(seen_s, max(_AHEAD, self._rule.patience))
        places_m = self._places_m(client, times_s)
        view = self._view(client, places_m)
        signal_db = np.where(self._usable(), view.signal_db, -np.inf)
        watch = Watch.over(self._rule, times_s, signal_db, station, since_s)
        last, target = watch.first() or (len(times_s) - 1, None)
        rows = []
        for row in range(last if math.isfinite(self._coverage.step_m) else 0):
            if math.hypot(*(places_m[row] - seen_m)) >= self._coverage.step_m:
                rows.append(row)
                seen_m = places_m[row]
        rows.append(last)
        found = offers(view, np.full(len(times_s), station), rows)
        return Outlook(watch, places_m, rows, found, target)

    def _look_for_another(self, client: int, token: object) -> Process:
        """Wait until a client's lost station works again, or another one is found."""
        after_s = self._rule.reselect_after_s
        if after_s is None:
            yield self._news
            return
        timer = self._env.timeout(after_s)
        while not (timer.processed or self._usable()[self._station[client]]):
            yield timer | self._news
        if self._usable()[self._station[client]] or not self._goes_on(client, token):
            return
        view = self._view(client, self._place_m(client))
        found = self._usable() & view.in_reach()[0]
        if found.any():
            best = int(np.argmax(np.where(found, view.signal_db[0], -np.inf)))
            self._record(client, best)
            self._attach(client, best, view)
        else:
            yield self._env.timeout(self._rule.measured_every_s) | self._news

    def _hand_over(self, client: int, station: int) -> Process:
        self._record(client, station)
        self._attach(client, station, self._view(client, self._place_m(client)))
        if self._interruption_s > 0:
            self._break_off(client, True)
            yield self._env.timeout(self._interruption_s)
            self._break_off(client, False)

    def _break_off(self, client: int, lost: bool) -> None:
        for link in self._attached.access[client]:
            self._attached.topology.lose_link(link, lost)
        self._medium.find_routes(self._under_way(client))

    def _attach(self, client: int, station: int, view: View) -> None:
        self._join(client, station, offers(view, np.array([station]))[0])

    def _join(self, client: int, station: int, offer: Offer) -> None:
        self._station[client] = station
        if self._medium.join(client, self._attached.stations[station], offer):
            self._medium.find_routes(self._under_way(client))

    def _record(self, client: int, station: int) -> None:
        old, new = (self._attached.topology.names[self._attached.stations[i]] for i in (self._station[client], station))
        self.handovers.append(Handover(self._env.now, client, old, new))

    def _goes_on(self, client: int, token: object) -> bool:
        return self._following.get(client) is token and self._busy(client)

    def _busy(self, client: int) -> bool:
        return bool(self._under_way(client))

    def _under_way(self, client: int) -> list[FluidTransfer]:
        return [transfer for transfer in self._flows.get(client, ()) if transfer.slot is not None]

    def _usable(self) -> BoolArray:
        return np.array([self._attached.topology.works(station) for station in self._attached.stations])

    def _view(self, client: int, places_m: FloatArray) -> View:
        return self._coverage.view(np.full(len(places_m), client), places_m)

    def _place_m(self, client: int) -> FloatArray:
        return self._places_m(client, np.array([self._env.now]))

    def _places_m(self, client: int, times_s: FloatArray) -> FloatArray:
        if client not in self._walks:
            self._walks[client] = self._walk_of(client)
        return self._walks[client].at(times_s, self._env.now)
