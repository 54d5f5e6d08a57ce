"""The clients of one server: who is available, who is idle, and who is in flight."""

from typing import Final

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import BoolArray, IntArray
from fedsim.devices import Availability
from fedsim.rounds.clients.cohort import CohortRun

BLOCK: Final = 1024
_FEW: Final = 64
_SINGLE: Final = 3
"""Up to this number of clients are taken one by one, which is faster than arrays."""


class Crowd:
    """The state of a server's clients, as far as the server knows; candidates are those that are available and idle.

    A client that was lost stays in flight until the server gives it up. A busy client is no candidate: it is in flight
    beyond the round in which it was sent. Where clients end with their round at the latest, no client ever is.
    """

    def __init__(self, env: Environment, availability: Availability, clients: int, member: IntArray | None) -> None:
        self.env, self.availability = env, availability
        self.whole = member is None
        self.member = np.arange(clients, dtype=np.int64) if member is None else member
        self.in_flight = self.released = self.lost_in_a_row = 0
        self.given_up: list[CohortRun] = []
        self.candidates = CandidateSet(self.member, whole_crowd=self.whole)
        self._tracker = availability.tracker(self.member)
        self._round_draw = (0, 0)
        self._cohort, self._version = np.full((2, clients), -1)
        self._busy = np.zeros(clients, dtype=bool)
        self._busy_count = 0
        self._waited_for: dict[int, CohortRun] = {}
        self._turned: list[int] = []  # clients that have become busy or idle since the candidates were looked at
        self._changed: Event = env.event()
        self._idled: Event | None = None

    # Candidates.

    def draw(self, number: int) -> int:
        """Return the draw of availability that holds in a round: its number, or the repeated draw found for it."""
        if self._round_draw[0] != number:
            # A round that starts while clients are in flight does not wait; its draw holds at once.
            self.next_start_s(number)
        return self._round_draw[1]

    def next_start_s(self, number: int) -> float:
        """Return the first instant from now on with an available client in a round, whose draw holds from here on."""
        if self._any_available(self.env.now, number):
            start_s, draw = self.env.now, number
        else:
            start_s, draw = self.availability.next_s(self.env.now, number)
        self._round_draw = number, draw
        return start_s

    def any_available(self, time_s: float, number: int) -> bool:
        """Return whether a client, idle or not, is available at an instant of a round."""
        return self._any_available(time_s, self.draw(number))

    def look(self, time_s: float, number: int) -> "CandidateSet":
        draw = self.draw(number)
        position = self._tracker.update(time_s, draw)
        if position.size:
            self._come_or_gone(position)
        if self._turned:
            turned, self._turned = np.array(sorted(set(self._turned)), dtype=np.int64), []
            self._come_or_gone(turned if self.whole else np.searchsorted(self.member, turned))
        return self.candidates

    def next_candidate_s(self, number: int) -> float:
        """Return the first instant from now on with an available and idle client; inf if there is none."""
        if not self._busy_count:
            return self.next_start_s(number)
        if self.look(self.env.now, number).count:
            return self.env.now
        return self.availability.next_s(self.env.now, self.draw(number), self.member[self.idle])[0]

    def next_candidate(self, number: int) -> Event | None:
        """Return the event of the next candidate: a client becomes idle, or available; None if there is none."""
        next_s = self.next_candidate_s(number)
        if next_s == np.inf and not self._busy_count:
            return None
        self._idled = idle = self.env.event()
        if next_s == np.inf:
            return idle
        return idle | self.env.timeout(max(next_s - self.env.now, float(np.spacing(self.env.now))))

    @property
    def idle(self) -> BoolArray:
        return ~(self._busy if self.whole else self._busy[self.member])

    @property
    def any_busy(self) -> bool:
        """Whether any of the server's clients is in flight beyond the round in which it was sent."""
        return self._busy_count > 0

    # Clients in flight.

    def sent(self, run: CohortRun) -> None:
        """Record a cohort in flight, whose clients stay busy beyond the round."""
        client = run.cohort.client
        self._version[client] = run.model.version
        if client.size == 1:
            self._sent_one(client.item(), run.order)
            return
        turned = client[~self._busy[client]]
        self._busy[turned] = True
        self._busy_count += turned.size
        self._turned.extend(turned.tolist())
        self.in_flight += (self._cohort[client] < 0).tobytes().count(True)
        self._cohort[client] = run.order

    def _sent_one(self, client: int, order: int) -> None:
        """Do as `sent` without arrays: an asynchronous server sends one client at a time."""
        if not self._busy[client]:
            self._busy[client] = True
            self._busy_count += 1
            self._turned.append(client)
        if self._cohort[client] < 0:
            self.in_flight += 1
        self._cohort[client] = order

    def delivered(self, client: int, run: CohortRun) -> None:
        """Record the delivery of a client that was sent with a cohort."""
        self.lost_in_a_row = 0
        self._release(client, run)

    def give_up(self, run: CohortRun) -> None:
        """Record that the server no longer waits for the client of a cohort of one."""
        client = int(run.cohort.client[0])
        self.lost_in_a_row += 1
        self.given_up.append(run)
        self._release(client, run)
        self.mark_idle(client)

    def cancelled(self, version: int) -> None:
        """Record that no client of a model before a version is waited for; they are idle once they have stopped."""
        behind = (self._cohort >= 0) & (self._version < version)
        self._cohort[behind] = -1
        self.in_flight -= int(np.count_nonzero(behind))

    def wait_for(self, run: CohortRun) -> None:
        """Remember a cohort of one client, which was sent, until the client has delivered or is given up."""
        self._waited_for[run.order] = run

    def longest_waited_for(self) -> CohortRun | None:
        """Return that of the remembered cohorts which was sent first; None if no client of one is in flight."""
        return next(iter(self._waited_for.values()), None)

    def mark_idle(self, client: int) -> None:
        if self._busy[client]:
            self._busy[client] = False
            self._busy_count -= 1
            self._turned.append(client)
        if self._idled is not None:
            self._idled.succeed()
            self._idled = None

    def clear(self) -> None:
        for client in np.flatnonzero((self._cohort >= 0) & self._busy).tolist():
            self.mark_idle(client)
        self._cohort[:] = -1
        self._waited_for.clear()
        self.in_flight = 0
        self.given_up.clear()

    def take_given_up(self) -> list[CohortRun]:
        taken, self.given_up = self.given_up, []
        return taken

    def next_change(self) -> Event:
        """Return the event that `notify` triggers next."""
        if self._changed.triggered:
            self._changed = self.env.event()
        return self._changed

    def notify(self) -> None:
        """Trigger the event of an update, of a client given up, or of a client that has become available."""
        if not self._changed.triggered:
            self._changed.succeed()

    def _any_available(self, time_s: float, draw: int) -> bool:
        position = self._tracker.update(time_s, draw)
        if position.size:
            self._come_or_gone(position)
        return self._tracker.count > 0

    def _come_or_gone(self, position: IntArray) -> None:
        busy = self._busy[position if self.whole else self.member[position]]
        self.candidates.put(position, self._tracker.available[position] & ~busy)

    def _release(self, client: int, run: CohortRun) -> None:
        if self._cohort[client] == run.order:
            self._cohort[client] = -1
            self._waited_for.pop(run.order, None)
            self.in_flight -= 1
            self.released += 1


class CandidateSet:
    """Some of the n clients of a server, in the order of their ids.

    Clients are counted in blocks of 1024, so that one client at a place among the candidates costs a sum over the
    counts and a look at one block.
    """

    def __init__(self, member: IntArray, *, whole_crowd: bool) -> None:
        self.count = 0
        self._member, self._whole_crowd = member, whole_crowd
        blocks = -(-member.size // BLOCK)
        self._in: BoolArray = np.zeros(blocks * BLOCK, dtype=np.bool_)
        self._counts: IntArray = np.zeros(blocks, dtype=np.int64)
        self._ends: IntArray | None = None
        self._places: IntArray | None = None

    @property
    def complete(self) -> bool:
        return self.count == self._member.size

    def put(self, position: IntArray, candidate: BoolArray) -> None:
        """Take the present state of clients at distinct positions."""
        if position.size <= _SINGLE:
            for one, is_one in zip(position.tolist(), candidate.tolist(), strict=True):
                self._put_one(one, is_one)
            return
        changed = self._in[position] != candidate
        if not changed.any():
            return
        position, candidate = position[changed], candidate[changed]
        self._in[position] = candidate
        np.add.at(self._counts, position // BLOCK, np.where(candidate, 1, -1))
        self.count += 2 * int(np.count_nonzero(candidate)) - position.size
        self._ends = self._places = None

    def _put_one(self, position: int, candidate: bool) -> None:
        if self._in[position] != candidate:
            self._in[position] = candidate
            change = 1 if candidate else -1
            self._counts[position // BLOCK] += change
            self.count += change
            self._ends = self._places = None

    def everyone(self) -> IntArray:
        return self._member[self._all_places()]

    def pick(self, place: IntArray) -> IntArray:
        """Return the ids at given places among the candidates."""
        place = np.asarray(place)
        if self.complete:
            return self._member[place]
        if self._places is None and place.size <= _FEW:
            return self._member[[self._position(each) for each in place.tolist()]]
        return self._member[self._all_places()[place]]

    def below(self, client: int) -> int:
        position = int(np.searchsorted(self._member, client))
        block = position // BLOCK
        before = int(self._counts[:block].sum())
        return before + int(np.count_nonzero(self._in[block * BLOCK : position]))

    def includes(self, client: IntArray) -> BoolArray:
        inside = (client >= self._member[0]) & (client <= self._member[-1])
        if not inside.all():
            found = np.zeros(client.size, dtype=np.bool_)
            found[inside] = self.includes(client[inside])
            return found
        if self._whole_crowd:
            return self._in[client]
        position = np.searchsorted(self._member, client)
        return np.asarray((self._member[position] == client) & self._in[position])

    def _position(self, place: int) -> int:
        if self._ends is None:
            self._ends = np.cumsum(self._counts)
        block = int(np.searchsorted(self._ends, place, side="right"))
        before = int(self._ends[block - 1]) if block else 0
        start = block * BLOCK
        return start + int(np.flatnonzero(self._in[start : start + BLOCK])[place - before])

    def _all_places(self) -> IntArray:
        """Return the positions of all candidates among the server's clients."""
        if self._places is None:
            self._places = np.flatnonzero(self._in)
        return self._places
