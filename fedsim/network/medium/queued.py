"""A transfer that comes to a medium, perhaps waits there, is served, and arrives after a propagation delay."""

import math
from typing import Any, Final, Generic, Protocol, TypeVar

from simpy import Environment, Event

from fedsim.clock import happen_after, silence
from fedsim.network.transfers import Transfer

SAME_INSTANT_ULPS: Final = 4
"""Ends within this many units in the last place of the present instant are now: sums in another order differ so."""

Carried_contra = TypeVar("Carried_contra", contravariant=True)
Medium = TypeVar("Medium", bound="Carrier[Any]")


class Carrier(Protocol[Carried_contra]):
    """A medium that carries transfers."""

    env: Environment

    def start(self, transfer: Carried_contra) -> None: ...

    def forget(self, transfer: Carried_contra) -> None: ...


class QueuedTransfer(Transfer, Generic[Medium]):
    """One transfer over a medium with a queue."""

    __slots__ = ("_medium", "began_s", "bits", "came_s", "cancelled", "delay_s", "done", "occupied", "work_done")

    def __init__(self, medium: Medium, bits: float, delay_s: float) -> None:
        self._medium, self.bits, self.delay_s = medium, bits, delay_s
        self.done = Event(medium.env)
        self.came_s = math.inf
        self.began_s: float | None = None
        self.work_done = self.occupied = 0.0
        self.cancelled = False

    def begin(self) -> None:
        if not self.cancelled:
            self._medium.start(self)

    def cancel(self) -> None:
        if not (self.cancelled or self.done.triggered):
            self.cancelled = True
            silence(self.done)
            self._medium.forget(self)

    def queued_s(self) -> float:
        """Return the seconds between the start of the transfer and the begin of its service, or now; 0 before both."""
        if self.began_s is not None:
            return self.began_s - self.came_s
        return 0.0 if self.came_s == math.inf else self._medium.env.now - self.came_s

    def send_on(self) -> None:
        """Arrive after the propagation delay, now that all has been carried."""
        if self.delay_s > 0:
            happen_after(self.done, self.delay_s)
        else:
            # Not as part of this event: the medium is busy with it.
            self.done.succeed()
