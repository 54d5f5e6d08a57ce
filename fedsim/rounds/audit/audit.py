"""Conservation, checked while a run goes on.

Bits do not appear or vanish, no medium carries more than it can, and a client's time is spent once: idle, receiving,
computing, queueing, sending or in a phase that was cut off. Batteries pay for what was done and for nothing else. All
of it is worked out anew from what a round has left behind, never taken from where it was counted first.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.devices import Batteries
from fedsim.errors import AuditError
from fedsim.network.contracts import SharedMedium, SpectrumBook
from fedsim.rounds.audit.energy import EnergyBook
from fedsim.rounds.clients.record import ParticipationRecords

USES: Final = ("idle", "down", "compute", "queue", "up", "cut off")
_COLUMNS: Final = ("idle_s", "downlink_s", "compute_s", "queue_s", "uplink_s", "cut_off_s")
_TOLERANCE: Final = 1e-9


class Audit:
    """The books of one run.

    Parameters
    ----------
    clients : number of clients of the crowd
    air : what is shared on the run's clock; its books are checked
    batteries : those of the run, as they are before the first round; None where energy is not looked at

    Attributes
    ----------
    time_s : array of shape (6, K), seconds of every client by `USES`, up to the end of its last participation
    """

    def __init__(self, clients: int, air: SharedMedium | None, batteries: Batteries | None = None) -> None:
        self.time_s = np.zeros((len(USES), clients))
        self._now_s, self._ended_s = 0.0, np.zeros(clients)
        self._books = dict if air is None else air.books
        self._energy = None if batteries is None else EnergyBook(batteries)

    def accounts(self) -> dict[str, NDArray[Any]]:
        """Return the seconds of every client by use, as columns; they add up to the end of the last round checked."""
        time_s = self.time_s.copy()
        time_s[0] += self._now_s - self._ended_s
        return {"client": np.arange(self._ended_s.size), **dict(zip(_COLUMNS, time_s, strict=True))}

    def check(self, number: int, said: ParticipationRecords) -> None:
        """Check participations that are over.

        Parameters
        ----------
        number : of the round in which they began
        said : what became of them; a client's participations come in their order

        Raises
        ------
        AuditError
            Naming the round, and the client or medium, at the first thing that does not add up.
        """
        self._now_s = max(self._now_s, said.now_s)
        self._check_time(number, said)
        self._check_bits(number, said)
        if self._energy is not None:
            _refuse(*self._energy.wrong(said), number, said.client)
        for name, book in self._books().items():
            check_book(f"round {number}: {name}", book)

    def _check_time(self, number: int, said: ParticipationRecords) -> None:
        """Book every member's time, and compare the sum with the clock."""
        client, ended_s = said.client, said.ended_s
        down_s, compute_s, up_s = said.spent_s
        spent_s = np.stack([down_s, compute_s, said.queue_s, up_s])
        cut = np.flatnonzero(said.cut_in >= 0)
        row = np.array([0, 1, 3])[said.cut_in[cut]]
        cut_off_s = np.zeros(client.size)
        cut_off_s[cut] = spent_s[row, cut]
        spent_s[row, cut] = 0.0
        self.time_s[0, client] += said.start_s - self._ended_s[client]
        self.time_s[1:5, client] += spent_s
        self.time_s[5, client] += cut_off_s
        self._ended_s[client] = ended_s
        total_s = self.time_s[:, client].sum(axis=0)
        slack_s = _TOLERANCE * np.maximum(1.0, ended_s)
        wrong = ~(np.abs(total_s - ended_s) <= slack_s) | (ended_s > said.now_s)
        wrong |= np.any(spent_s < -slack_s, axis=0)
        _refuse(
            wrong,
            lambda i: (
                f"its uses of time add up to {total_s[i]} s at {ended_s[i]} s ("
                + ", ".join(
                    f"{use} {seconds:g} s" for use, seconds in zip(USES, self.time_s[:, client[i]], strict=True)
                )
                + ")"
            ),
            number,
            client,
        )

    def _check_bits(self, number: int, said: ParticipationRecords) -> None:
        """Compare what was sent with what had to arrive, and with how far each member got."""
        bits = np.array(said.bits)[:, None]
        sent, slack, arrived = said.sent_bits, _TOLERANCE * bits, said.arrived
        reached = np.where(arrived, 3, said.cut_in)
        due = np.where(np.stack([reached > 0, arrived]), bits, 0.0)
        begun = np.stack([reached >= 0, reached >= 2])
        wrong = (sent < due - slack) | (sent > np.where(begun, bits, 0.0) + slack)
        _refuse(
            np.any(wrong, axis=0),
            lambda i: (
                f"it was sent {sent[0, i]} bits of {said.bits[0]} and sent {sent[1, i]} of {said.bits[1]}, and "
                f"received must be {due[:, i]}"
            ),
            number,
            said.client,
        )


def check_book(name: str, book: SpectrumBook) -> None:
    """Check that what a medium carried was received, lost or is under way, within its capacity, and Little's law.

    Raises
    ------
    AuditError
        If not, naming the medium.
    """
    accounted = book.received + book.lost + book.under_way
    slack = _TOLERANCE * max(book.most, 1.0)
    if not abs(book.carried - accounted) <= slack:
        raise AuditError(
            f"{name} carried {book.carried} Hz s, but {book.received} were received, {book.lost} lost and "
            f"{book.under_way} are under way"
        )
    if not accounted <= book.most + slack:
        raise AuditError(f"{name} carried {accounted} Hz s, more than its capacity of {book.most}")
    if not abs(book.presence_s - book.sojourn_s) <= _TOLERANCE * max(book.presence_s, 1.0):
        raise AuditError(f"{name} breaks Little's law: {book.presence_s} s of presence, {book.sojourn_s} s of sojourns")


def _refuse(wrong: NDArray[Any], why: Callable[[int], str], number: int, client: NDArray[np.int64]) -> None:
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise AuditError(f"round {number}, client {client[i]}: {why(i)}")
