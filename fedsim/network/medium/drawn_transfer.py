"""One transfer over a spectrum whose fading is drawn."""

import math
from typing import Protocol

from simpy import Environment, Event

from fedsim.clock import process_now
from fedsim.network.transfers import Transfer


class Carrier(Protocol):
    """A medium that carries transfers.

    Attributes
    ----------
    env : Environment
    """

    env: Environment

    def start(self, transfer: "DrawnTransfer") -> None:
        """Start a transfer now."""
        ...

    def forget(self, transfer: "DrawnTransfer") -> None:
        """Remove a cancelled transfer."""
        ...

    def sent_bits(self, transfer: "DrawnTransfer") -> float:
        """Return the bits carried so far of a transfer that is present."""
        ...


class DrawnTransfer(Transfer):
    """One transfer over a `DrawnSpectrum`.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived
    bits : its size
    client : its id
    delay_s : propagation delay
    came_s : instant of its start; `inf` before
    began_s : instant at which its service began; None before
    row : among the transfers present; -1 if it is not among them
    work_done : hertz times seconds that it had when it left the medium
    cancelled, arrived : whether it was cancelled, or is complete at the receiver
    """

    __slots__ = (
        "_medium",
        "_sent_bits",
        "arrived",
        "began_s",
        "bits",
        "came_s",
        "cancelled",
        "client",
        "delay_s",
        "done",
        "row",
        "work_done",
    )

    def __init__(self, medium: Carrier, client: int, bits: float, delay_s: float) -> None:
        self._medium, self.client, self.bits, self.delay_s = medium, client, bits, delay_s
        self.done = Event(medium.env)
        self.came_s = math.inf
        self.began_s: float | None = None
        self.row, self.work_done, self._sent_bits = -1, 0.0, 0.0
        self.cancelled = self.arrived = False

    def begin(self) -> None:
        """Start now, unless the transfer has been cancelled."""
        if not self.cancelled:
            self._medium.start(self)

    def cancel(self) -> None:
        """End the transfer now and free its share; nothing if it has arrived."""
        if not (self.cancelled or self.arrived):
            self.cancelled = True
            self._medium.forget(self)

    def sent_bits(self) -> float:
        """Return the number of bits carried so far."""
        return self._sent_bits if self.row < 0 else self._medium.sent_bits(self)

    def queued_s(self) -> float:
        """Return the seconds between the start of the transfer and the begin of its service, or now; 0 before both."""
        if self.began_s is not None:
            return self.began_s - self.came_s
        return 0.0 if self.came_s == math.inf else self._medium.env.now - self.came_s

    def leave(self, sent_bits: float, work_done: float) -> None:
        """Keep what was carried when the transfer left the medium."""
        self.row, self._sent_bits, self.work_done = -1, sent_bits, work_done

    def arrive(self, _event: Event) -> None:
        """Trigger `done` as part of this event, unless the transfer was cancelled during its propagation delay."""
        if not self.cancelled:
            self.arrived = True
            process_now(self.done)
