"""The updates that have arrived at a server, until an aggregation uses them."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, all_of, any_of, constant, same
from fedsim.clock import instants
from fedsim.history.outcomes import NO_VALUE, Fate
from fedsim.learning import Model, Release, Update
from fedsim.measurements import NUMBERS
from fedsim.rounds.aggregation.rules import AggregationRule
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.effects.server_port import Aggregated
from fedsim.rounds.server.context import Refused, ServerContext

T = TypeVar("T", bound=np.generic)
# Plain integers: assigned to an array several times faster than members of an enumeration.
_USED: Final = int(Fate.USED)
_BY_DISPATCH: Final = attrgetter("order")
_STALE_USED: Final = int(Fate.STALE_USED)
_NONE: Final[IntArray] = np.zeros(0, dtype=np.int64)
_ZERO: Final = constant(0.0)
_UNCOUNTED: Final = 32


class ReadyUpdates:
    """`Arrivals` of some members of cohorts; columns that only some rules read are made when they are read."""

    def __init__(
        self, members: Members, updates: Sequence[Update], held: BoolArray, version: int, picked: IntArray
    ) -> None:
        self.updates, self.held = updates, held
        self._members, self._version, self._picked = members, version, picked
        if len(members) == 1:
            self.client, self.weight = members[0][0].arrivals(members[0][1])
        else:
            clients, weights = zip(*[run.arrivals(part) for run, part in members], strict=True)
            self.client, self.weight = np.concatenate(clients), np.concatenate(weights)
        self.total = members[-1][0].total

    @property
    def base(self) -> Sequence[Model]:
        return [run.model for run, places in self._members for _ in range(places.size)]

    @property
    def staleness(self) -> IntArray:
        return _joined([np.full(places.size, self._version - run.model.version) for run, places in self._members])

    @property
    def arrived_s(self) -> FloatArray:
        return _joined([run.participations.ended_s[places] for run, places in self._members])

    @property
    def picked_before(self) -> BoolArray:
        return np.isin(self.client, self._picked)


class Buffer:
    """Updates between their arrival and their use, ordered by the dispatch of their cohorts and the place in them."""

    def __init__(self, context: ServerContext, rule: AggregationRule) -> None:
        self.context, self._rule, self._needs = context, rule, context.selector.needs
        self._noting, self._sending = context.effects.having("aggregated"), context.effects.having("sends")
        self._size = context.rules.policy.traits.buffer_size
        self._least = max(1, context.rules.minimum_updates, self._size or 1)
        # Positions in the cohort, in the parts in which they arrived.
        self._buffered: dict[CohortRun, list[IntArray]] = {}
        self._unchecked: set[CohortRun] = set()
        self._version = 0
        self._new: dict[CohortRun, list[IntArray]] = {}
        self._to_measure: Members = []
        self._held: set[tuple[CohortRun, int]] = set()
        self.picked = _NONE
        self._begun_with, self._sent = np.full((2, context.learner.samples.size), -1)
        self._any_silent = False  # whether a client has sent a message without bits
        self._uncounted: list[tuple[IntArray, IntArray, int]] = []  # clients with their `repeat`, and the version
        self._newest = -1  # version that an update which has arrived started from

    def repeats(self, client: IntArray, version: int) -> IntArray:
        """Return how many updates of one version of the model each client has sent."""
        if version > self._newest:
            return same(0, client.size)
        self._count_sent()
        return np.asarray(self._sent[client] * (self._begun_with[client] == version))

    def _count(self, run: CohortRun, places: IntArray | slice, version: int) -> None:
        """Note what members have sent; older versions than the newest that has arrived do not count any more."""
        if version > self._newest:
            self._newest = version
            self._uncounted.clear()
        if version == self._newest:
            # A client is sent again only after it has delivered or was lost.
            self._uncounted.append((run.cohort.client[places], run.repeat[places], version))
            if len(self._uncounted) > _UNCOUNTED:
                self._count_sent()

    def _count_sent(self) -> None:
        """Note what the clients have sent whose updates have arrived since the last call."""
        if self._uncounted:
            clients, repeats, versions = zip(*self._uncounted, strict=True)
            client = np.concatenate(clients)
            self._sent[client] = np.concatenate(repeats) + 1
            self._begun_with[client] = np.repeat(np.array(versions), [each.size for each in clients])
            self._uncounted.clear()

    def take(self, run: CohortRun, members: IntArray) -> None:
        """Add the updates of members of a cohort, at ascending positions, that have just arrived."""
        if not members.size:
            return
        self._buffered.setdefault(run, []).append(members)
        self._new.setdefault(run, []).append(members)
        self._unchecked.add(run)
        self._count(run, run.places(members), run.model.version)
        self._any_silent |= run.plan.silent is not None
        if self.context.learner.remembers:
            self._updates(run, _speaking(run, members))

    def count(self, version: int) -> int:
        """Return how many updates wait that a model of a version accepts; the others are discarded."""
        self._refuse_stale(version)
        return sum(part.size for parts in self._buffered.values() for part in parts) - len(self._held)

    def clients(self) -> IntArray:
        """Return the clients whose updates wait for their first aggregation."""
        return np.array([run.cohort.client[i] for run, i in self._each() if (run, i) not in self._held], dtype=np.int64)

    def take_arrived(self) -> Members:
        new, self._new = _in_order(self._new), {}
        return new

    def aggregate(self, number: int, model: Model) -> Model:
        """Return the next model; with too few updates the present one, and discard the updates."""
        self._refuse_stale(model.version)
        self._to_measure = self._unmeasured() if self._needs else []
        ready, silent = self._ready(number)
        if sum([members.size for _, members in ready]) < self._least:
            self._end_without_model()
            return model
        arrivals = self._arrivals(ready, model.version)
        aggregated = self._rule.aggregate(model, arrivals)
        if aggregated.model is model:
            # Too few updates have a weight.
            self._end_without_model()
            return model
        used = aggregated.weight > _ZERO
        if self._noting:
            cohorts = [(run.plan, members) for run, members in ready]
            for effect in self._noting:
                effect.aggregated(Aggregated(cohorts, arrivals.client, aggregated.weight, arrivals.updates))
        all_used = all_of(used)
        fresh = used & ~arrivals.held if self._held else used
        self.picked = arrivals.client if all_used and not self._held else arrivals.client[fresh]
        for run, members in silent:
            # A message without bits adds zero to the model.
            self._decide(run, members, np.zeros(members.size), number, model.version)
        done, any_held = 0, any_of(aggregated.held)
        for run, members in ready:
            part = slice(done, done + members.size)
            done += members.size
            weight = aggregated.weight[part]
            if any_held:
                held = aggregated.held[part]
                self._held.update((run, i) for i in members[held].tolist())
                self._decide(run, members[~held], weight[~held], number, model.version)
            else:
                self._decide(run, members, weight, number, model.version, any_unused=not all_used)
        return aggregated.model

    def _ready(self, number: int) -> tuple[Members, Members]:
        """Return the members whose updates are aggregated now, and those that have sent a message without bits."""
        ready = _in_order(self._buffered)
        if self._size is not None:
            ready = _earliest(ready, self._size)
        silent: Members = []
        if self._any_silent:
            ready, silent = _apart(ready)
        if self.context.rules.refused is not None:
            ready = self._finite(ready, number, self.context.rules.refused)
        return ready, silent

    def _end_without_model(self) -> None:
        self.picked = _NONE
        # A buffer from which updates were refused waits for others in their place.
        if self._size is None or self.context.rules.refused is None:
            self.discard()

    def discard(self) -> None:
        for run, parts in self._buffered.items():
            run.decide(_joined(parts), Fate.WASTED_UNMERGED)
        self._buffered.clear()
        self._unchecked.clear()
        self._held.clear()

    def refuse(self, run: CohortRun, members: IntArray) -> None:
        """Discard updates of members of a cohort, at ascending positions, that wait."""
        run.decide(members, Fate.WASTED_UNMERGED)
        self._remove(run, members)

    def _each(self) -> Iterable[tuple[CohortRun, int]]:
        return ((run, i) for run, parts in self._buffered.items() for part in parts for i in part.tolist())

    def _refuse_stale(self, version: int) -> None:
        """Discard updates that a model of a version does not accept."""
        if version == self._version and not self._unchecked:
            return
        for run in list(self._buffered) if version != self._version else self._unchecked:
            if run in self._buffered:
                members = _joined(self._buffered[run])
                staleness = same(version - run.model.version, members.size)
                accepted = self._rule.accepts(staleness, run.late_of(members))
                if not all_of(accepted):
                    refused = ~accepted
                    run.decide(members[refused], Fate.WASTED_LATE)
                    self._remove(run, members[refused])
        self._version = version
        self._unchecked.clear()

    def _remove(self, run: CohortRun, members: IntArray) -> None:
        if self._held:
            self._held.difference_update((run, i) for i in members.tolist())
        present = _joined(self._buffered[run])
        if members.size == present.size:
            del self._buffered[run]
        elif members.size:
            self._buffered[run] = [present[~np.isin(present, members)]]

    def _decide(
        self,
        run: CohortRun,
        members: IntArray,
        weight: FloatArray,
        number: int,
        version: int,
        *,
        any_unused: bool = True,
    ) -> None:
        """Decide the fate of members whose updates an aggregation with a model of a version has seen."""
        age = version - run.model.version
        fate: IntArray | int = _STALE_USED if age else _USED
        if age == 0 and run.any_late:
            fate = np.where(run.late_of(members), _STALE_USED, _USED)
        if not (any_unused and any_of(unused := np.isnan(weight))):
            run.use(members, fate, weight, number, age)
        else:
            used = ~unused
            run.use(
                members,
                np.where(used, fate, Fate.WASTED_UNMERGED),
                np.where(used, weight, 0.0),
                np.where(used, number, NO_VALUE),
                np.where(used, age, NO_VALUE),
            )
        self._remove(run, members)

    def _unmeasured(self) -> Members:
        """Return the members whose updates the selector needs measured: those that are new and not discarded."""
        kept = []
        for run, members in _in_order(self._new):
            here = members[np.isin(members, _joined(self._buffered.get(run, [members[:0]])))]
            here = _speaking(run, here)
            if here.size:
                kept.append((run, here))
        return kept

    def measure(self) -> None:
        """Measure what the selector needs of the updates that the last aggregation has seen and none before.

        After the aggregation, which computes nothing: so an update is added to the model as soon as it is there.
        """
        measured, self._to_measure = self._to_measure, []
        if not measured:
            return
        updates = [update for part in measured for update in self._updates(*part)]
        values = self.context.learner.measure(updates, self._needs)
        done = 0
        for run, members in measured:
            part = slice(done, done + members.size)
            done += members.size
            found = {name: column[part] for name, column in values.items()}
            for effect in self._sending:
                numbers = {name: column for name, column in found.items() if name in NUMBERS}
                found |= effect.sends(run.plan, members, numbers)
            run.measure(members, found)

    def _updates(self, run: CohortRun, members: IntArray) -> Sequence[Update]:
        """Return the handles of members' updates, the same ones at every call."""
        if run.together and (run.asked is members or np.array_equal(run.asked, members)):
            return run.together
        made = run.updates
        if run.together:
            made.update(zip(run.asked.tolist(), run.together, strict=True))
            run.together = ()
        missing = np.array([i for i in members.tolist() if i not in made], dtype=np.int64) if made else members
        repeats = run.repeat[run.places(missing)]
        kinds = set(repeats.tolist())
        if not made and len(kinds) == 1:
            run.asked, run.together = members, self._asked(run, members, kinds.pop())
            return run.together
        for repeat in sorted(kinds):
            alike = missing[repeats == repeat]
            made.update(zip(alike.tolist(), self._asked(run, alike, repeat), strict=True))
        return [made[i] for i in members.tolist()]

    def _asked(self, run: CohortRun, members: IntArray, repeat: int) -> Sequence[Update]:
        """Return handles of the updates of members that have sent equally many before, made anew."""
        releases: dict[int, Release] = {}
        if run.plan.releases:
            releases = {at: run.plan.releases[i] for at, i in enumerate(members.tolist()) if i in run.plan.releases}
        level = None if run.plan.level is None else run.plan.level[members]
        places = run.places(members)
        asked = run.model, run.cohort.client[places], releases, run.work[places], repeat, level
        ask = self.context.learner.updates
        return ask(*asked) if run.plan.drawn is None else ask(*asked, run.plan.drawn.part(members))

    def _finite(self, ready: Members, number: int, refused: Refused) -> Members:
        """Return the members whose updates are numbers; the updates of the others are discarded and noted."""
        found = []
        for run, members in ready:
            norms = self.context.learner.measure(self._updates(run, members), ("update_norm",))["update_norm"]
            wrong, right = members[~np.isfinite(norms)], members[np.isfinite(norms)]
            if wrong.size:
                refused.updates += [(int(client), number) for client in run.cohort.client[run.places(wrong)]]
                run.decide(wrong, Fate.WASTED_UNMERGED)
                self._remove(run, wrong)
            if right.size:
                found.append((run, right))
        return found

    def _arrivals(self, ready: Members, version: int) -> ReadyUpdates:
        if len(ready) == 1:
            updates = self._updates(*ready[0])
        else:
            updates = [update for part in ready for update in self._updates(*part)]
        held = same(False, len(updates))
        if self._held:
            held = np.array([(run, i) in self._held for run, members in ready for i in members.tolist()])
        return ReadyUpdates(ready, updates, held, version, self.picked)


def _in_order(members: dict[CohortRun, list[IntArray]]) -> Members:
    """Return members ordered by the dispatch of their cohorts and the place in them."""
    runs = sorted(members, key=_BY_DISPATCH) if len(members) > 1 else members
    return [(run, members[run][0] if len(members[run]) == 1 else np.sort(_joined(members[run]))) for run in runs]


def _speaking(run: CohortRun, members: IntArray) -> IntArray:
    """Return those of some members that have sent more than a message without bits."""
    return members if run.plan.silent is None else members[~run.plan.silent[members]]


def _apart(members: Members) -> tuple[Members, Members]:
    """Return members with updates, and those that have sent a message without bits."""
    parts = [
        (run, places, np.zeros(places.size, dtype=bool) if run.plan.silent is None else run.plan.silent[places])
        for run, places in members
    ]
    updates = [(run, places[~silent]) for run, places, silent in parts if not silent.all()]
    return updates, [(run, places[silent]) for run, places, silent in parts if silent.any()]


def _earliest(ready: Members, count: int) -> Members:
    """Return the members whose updates arrived first, at most a count; at equal times those sent first."""
    ended_s = np.concatenate([run.participations.ended_s[members] for run, members in ready] or [np.zeros(0)])
    chosen = np.zeros(ended_s.size, dtype=bool)
    chosen[np.argsort(instants(ended_s), kind="stable")[:count]] = True
    first, kept = 0, []
    for run, members in ready:
        mine = chosen[first : first + members.size]
        first += members.size
        if mine.any():
            kept.append((run, members[mine]))
    return kept


def _joined(parts: Sequence[NDArray[T]]) -> NDArray[T]:
    """Return the elements of at least one part, one part after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
