"""Conservation of bits, time, spectrum and energy, checked during a run.

Bits neither appear nor vanish, no medium carries more than its capacity, and each second of a client has one use: idle,
receiving, computing, queueing, sending, or a phase that was cut short. Batteries pay for what was done and for nothing
else. The audit is an effect that only looks: it computes these sums from what participations have spent and sent,
independently of the simulation's own counts.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.errors import AuditError
from fedsim.history.outcomes import DOWNLINK, PHASES, UPLINK
from fedsim.network.transfers import SharedMedium, SpectrumBook
from fedsim.rounds.effects.audit.carried import CarriedBits
from fedsim.rounds.effects.audit.energy import EnergyBook
from fedsim.rounds.effects.audit.records import Records, refuse
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.contract import BesidePhases
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run

USES: Final = ("idle", "down", "compute", "queue", "up", "cut off")
_COLUMNS: Final = ("idle_s", "downlink_s", "compute_s", "queue_s", "uplink_s", "cut_off_s")
_TOLERANCE: Final = 1e-9


class Book(Protocol):
    """Sums over a run, to which participations are added."""

    def check(self, number: int, records: Records) -> None:
        """Account for participations of a round that have ended, and refuse false ones."""
        ...


class Audit(BesidePhases):
    """The audit of one run with K clients."""

    def __init__(self, clients: int, *books: Book) -> None:
        self.time_s = np.zeros((len(USES), clients))
        self._now_s, self._ended_s = 0.0, np.zeros(clients)
        self._books, self._media = list(books), tuple[SharedMedium, ...]()

    def begin(self, run: Run) -> None:
        self._run, self._media = run, run.media
        powered = [effect.batteries for effect in run.effects if type(effect) is Battery]
        self._books += [CarriedBits(run.links), *(EnergyBook(one, run.links.shared) for one in powered)]

    def settle(self, plan: Plan, members: IntArray) -> None:
        links = self._run.links_of(plan, UPLINK)
        self.check(plan.number, Records(plan, members, links, float(self._run.env.now)))

    def columns(self, plan: Plan, members: IntArray) -> Mapping[str, float]:
        """Take note of the instant at which participations are recorded."""
        self._now_s = max(self._now_s, float(self._run.env.now))
        return {}

    def accounts(self) -> dict[str, NDArray[Any]]:
        """Return the seconds of every client by use; they add up to the instant of the last record."""
        time_s = self.time_s.copy()
        time_s[0] += self._now_s - self._ended_s
        return {"client": np.arange(self._ended_s.size), **dict(zip(_COLUMNS, time_s, strict=True))}

    def check(self, number: int, records: Records) -> None:
        self._now_s = max(self._now_s, records.now_s)
        self._check_time(number, records)
        self._check_bits(number, records)
        for book in self._books:
            book.check(number, records)
        for medium in self._media:
            for name, spectrum in medium.books().items():
                check_book(f"round {number}: {name}", spectrum)

    def _check_time(self, number: int, records: Records) -> None:
        """Add up every client's seconds, and compare the sum with the clock."""
        client, ended_s = records.client, records.ended_s
        down_s, compute_s, up_s = records.spent_s
        spent_s = np.stack([down_s, compute_s, records.queue_s, up_s, np.zeros(client.size)])
        cut = np.flatnonzero(~records.arrived)
        row = np.array([0, 1, 3])[records.cut_in[cut]]
        spent_s[-1, cut] = spent_s[row, cut]
        spent_s[row, cut] = 0.0
        idle_s = records.start_s - self._ended_s[client]
        self.time_s[0, client] += idle_s
        self.time_s[1:, client] += spent_s
        self._ended_s[client] = ended_s
        total_s = self.time_s[:, client].sum(axis=0)
        slack_s = _TOLERANCE * np.maximum(1.0, ended_s)

        def told(i: int) -> str:
            uses = zip(USES, self.time_s[:, client[i]], strict=True)
            return f"{total_s[i]} s at {ended_s[i]} s (" + ", ".join(f"{use} {s:g} s" for use, s in uses) + ")"

        refuse("it begins before its last participation has ended", idle_s < -slack_s, number, records, told)
        refuse("it ends later than now", ended_s > records.now_s, number, records, told)
        refuse("it uses less than no time", np.any(spent_s < -slack_s, axis=0), number, records, told)
        # Not a number is no sum either.
        apart = ~(np.abs(total_s - ended_s) <= slack_s)
        refuse("its uses of time do not add up to the clock", apart, number, records, told)

    def _check_bits(self, number: int, records: Records) -> None:
        """Compare the bits sent with those due, given the phase that each client reached."""
        bits = np.stack([np.broadcast_to(size, records.client.shape) for size in records.bits])
        sent, slack, arrived = records.sent_bits, _TOLERANCE * bits, records.arrived
        reached = np.where(arrived, len(PHASES), records.cut_in)
        due = np.where(np.stack([reached > DOWNLINK, arrived]), bits, 0.0)
        begun = np.stack([reached >= DOWNLINK, reached >= UPLINK])
        most = np.where(begun, bits, 0.0)

        def told(i: int) -> str:
            return (
                f"it received {sent[0, i]} bits of {bits[0, i]} and sent {sent[1, i]} of {bits[1, i]}; "
                f"{due[:, i]} to {most[:, i]} are due"
            )

        refuse("bits are missing", np.any(~(sent >= due - slack), axis=0), number, records, told)
        refuse("bits are too many", np.any(~(sent <= most + slack), axis=0), number, records, told)


def check_book(name: str, book: SpectrumBook) -> None:
    """Check the conservation of a medium's work, its capacity, and Little's law.

    Work that was carried has been received, was lost or is in progress. The integral of the number of transfers in
    progress is the sum of their sojourn times.
    """
    accounted = book.received + book.lost + book.under_way
    slack = _TOLERANCE * max(book.most, 1.0) + book.rounding
    if not abs(book.carried - accounted) <= slack:
        raise AuditError(
            f"{name} carried {book.carried} Hz s, but {book.received} were received, {book.lost} lost and "
            f"{book.under_way} are in progress"
        )
    if not accounted <= book.most + slack:
        raise AuditError(f"{name} carried {accounted} Hz s, more than its capacity of {book.most}")
    if not abs(book.presence_s - book.sojourn_s) <= _TOLERANCE * max(book.presence_s, 1.0):
        raise AuditError(
            f"{name} breaks Little's law: {book.presence_s} s of transfers in progress, {book.sojourn_s} s of sojourns"
        )
