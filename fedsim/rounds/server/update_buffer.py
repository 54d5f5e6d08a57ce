"""What has arrived at a server and waits to be merged, and how it becomes the next model."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fedsim.clock import instants
from fedsim.history.outcomes import NO_VALUE, Fate
from fedsim.learning import Model, Update
from fedsim.rounds.aggregation.rules import AggregationRule, Arrivals
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.server.context import ServerContext


class UpdateBuffer:
    """Updates between their arrival and their use.

    They are taken in the order in which their cohorts were sent, and of one cohort in its own order.

    Parameters
    ----------
    context : ServerContext
    merger : makes models of updates
    needs : what the selector wants to be measured of updates
    """

    def __init__(self, context: ServerContext, merger: AggregationRule, needs: tuple[str, ...]) -> None:
        self.context, self._merger, self._needs = context, merger, needs
        self._buffer = context.policy.traits.buffer_size
        self._waiting: dict[CohortRun, list[int]] = {}
        self._unsorted: set[CohortRun] = set()
        self._version = 0
        self._new: dict[CohortRun, list[int]] = {}
        self._held: set[tuple[CohortRun, int]] = set()
        self.picked: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._begun_with, self._sent = np.full((2, context.learner.samples.size), -1)

    def repeats(self, client: NDArray[np.int64], version: int) -> NDArray[np.int64]:
        """Return how many updates clients have sent that began with a version of the model."""
        return np.where(self._begun_with[client] == version, self._sent[client], 0)

    def take(self, flight: CohortRun, members: Iterable[int]) -> None:
        """Take in the updates of members of a cohort that have just arrived."""
        added = list(members)
        if added:
            self._waiting.setdefault(flight, []).extend(added)
            self._new.setdefault(flight, []).extend(added)
            self._unsorted.add(flight)
            client, version = flight.cohort.client[added], flight.model.version
            self._sent[client] = self.repeats(client, version) + 1
            self._begun_with[client] = version

    def count(self, version: int) -> int:
        """Return how many updates wait that a model of this version accepts; the others are thrown away."""
        self._sort_out(version)
        return sum(len(members) for members in self._waiting.values()) - len(self._held)

    def clients(self) -> NDArray[np.int64]:
        """Return the clients whose updates wait for their first merge."""
        return np.array(
            [flight.cohort.client[i] for flight, i in self._each() if (flight, i) not in self._held], dtype=np.int64
        )

    def arrived(self) -> Members:
        """Return whose updates have arrived since this was last asked."""
        new, self._new = _in_order(self._new), {}
        return new

    def aggregate(self, number: int, model: Model) -> Model:
        """Return the next model, or the present one and throw away what has arrived if that is too little."""
        self._sort_out(model.version)
        self._measure()
        ready = _in_order(self._waiting)
        if self._buffer is not None:
            ready = _earliest(ready, self._buffer)
        before, self.picked = self.picked, np.zeros(0, dtype=np.int64)
        if sum(members.size for _, members in ready) < max(1, self.context.minimum_updates, self._buffer or 1):
            self.lose()
            return model
        arrivals = self._arrivals(ready, model.version, before)
        merged = self._merger.aggregate(model, arrivals)
        self.picked = arrivals.client[(merged.weight > 0) & ~arrivals.held]
        done = 0
        for flight, members in ready:
            part = slice(done, done + members.size)
            done += members.size
            self._decide(
                flight, members[~merged.held[part]], merged.weight[part][~merged.held[part]], number, model.version
            )
            self._held.update((flight, i) for i in members[merged.held[part]].tolist())
        return merged.model

    def lose(self) -> None:
        """Throw away whatever waits."""
        for flight, members in self._waiting.items():
            flight.fate[members] = Fate.WASTED_UNMERGED
        self._waiting.clear()
        self._unsorted.clear()
        self._held.clear()

    def _each(self) -> Iterable[tuple[CohortRun, int]]:
        return ((flight, i) for flight, members in self._waiting.items() for i in members)

    def _sort_out(self, version: int) -> None:
        """Throw away what a model of this version does not accept."""
        for flight in list(self._waiting) if version != self._version else self._unsorted:
            members = np.array(self._waiting.get(flight, ()), dtype=np.int64)
            staleness = np.full(members.size, version - flight.model.version)
            refused = members[~self._merger.accepts(staleness, flight.late[members])]
            if refused.size:
                flight.fate[refused] = Fate.WASTED_LATE
                self._remove(flight, refused)
        self._version = version
        self._unsorted.clear()

    def _remove(self, flight: CohortRun, members: NDArray[np.int64]) -> None:
        gone = set(members.tolist())
        left = [i for i in self._waiting[flight] if i not in gone]
        self._held.difference_update((flight, i) for i in gone)
        if left:
            self._waiting[flight] = left
        else:
            del self._waiting[flight]

    def _decide(
        self, flight: CohortRun, members: NDArray[np.int64], weight: NDArray[np.float64], number: int, version: int
    ) -> None:
        """Take down which of some members' updates went into a model that was made of one of a version."""
        merged = ~np.isnan(weight)
        stale = flight.late[members] | (version > flight.model.version)
        flight.used_weight[members] = np.where(merged, weight, 0.0)
        flight.staleness[members] = np.where(merged, version - flight.model.version, NO_VALUE)
        flight.served_round[members] = np.where(merged, number, NO_VALUE)
        flight.fate[members] = np.where(merged, np.where(stale, Fate.STALE_USED, Fate.USED), Fate.WASTED_UNMERGED)
        self._remove(flight, members)

    def _measure(self) -> None:
        """Work out what the selector wants to know of updates that are new and have not been thrown away."""
        if not self._needs:
            return
        kept = []
        for flight, members in _in_order(self._new):
            here = members[np.isin(members, self._waiting.get(flight, []))]
            if here.size:
                kept.append((flight, here))
        values = self.context.learner.measure([update for part in kept for update in self._updates(*part)], self._needs)
        done = 0
        for flight, members in kept:
            part = slice(done, done + members.size)
            done += members.size
            flight.measure(members, {name: column[part] for name, column in values.items()})

    def _updates(self, flight: CohortRun, members: NDArray[np.int64]) -> list[Update]:
        """Return the handles of members' updates, the same ones whenever they are asked for."""
        missing = np.array([i for i in members.tolist() if i not in flight.updates], dtype=np.int64)
        for repeat in np.unique(flight.repeat[missing]).tolist():
            alike = missing[flight.repeat[missing] == repeat]
            releases = {at: flight.releases[i] for at, i in enumerate(alike.tolist()) if i in flight.releases}
            made = self.context.learner.updates(
                flight.model, flight.cohort.client[alike], releases, flight.work[alike], repeat
            )
            flight.updates.update(zip(alike.tolist(), made, strict=True))
        return [flight.updates[i] for i in members.tolist()]

    def _arrivals(self, ready: Members, version: int, picked: NDArray[np.int64]) -> Arrivals:
        client = np.concatenate([flight.cohort.client[members] for flight, members in ready])
        return Arrivals(
            client=client,
            updates=[update for part in ready for update in self._updates(*part)],
            base=[flight.model for flight, members in ready for _ in range(members.size)],
            weight=np.concatenate([flight.weight[members] for flight, members in ready]),
            total=ready[-1][0].total,
            staleness=np.concatenate([np.full(m.size, version - flight.model.version) for flight, m in ready]),
            arrived_s=np.concatenate([flight.participations.ended_s[members] for flight, members in ready]),
            picked_before=np.isin(client, picked),
            held=np.array([(flight, i) in self._held for flight, members in ready for i in members.tolist()]),
        )


def _in_order(members: dict[CohortRun, list[int]]) -> Members:
    """Return members in the order in which their cohorts were sent, and of one cohort in its own order."""
    return [
        (flight, np.array(sorted(members[flight]), dtype=np.int64))
        for flight in sorted(members, key=lambda flight: flight.order)
    ]


def _earliest(ready: Members, count: int) -> Members:
    """Return the members whose updates arrived first, at most so many; at equal times those that come first."""
    ended_s = np.concatenate([flight.participations.ended_s[members] for flight, members in ready] or [np.zeros(0)])
    chosen = np.zeros(ended_s.size, dtype=bool)
    chosen[np.argsort(instants(ended_s), kind="stable")[:count]] = True
    first, kept = 0, []
    for flight, members in ready:
        mine = chosen[first : first + members.size]
        first += members.size
        if mine.any():
            kept.append((flight, members[mine]))
    return kept
