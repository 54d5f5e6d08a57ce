"""Spectrum that several transfers share, on the clock.

A medium has so much bandwidth; a transfer is so much work for it, in Hz s: its bits over its link's spectral efficiency
in bit/s/Hz. Counting work rather than bits lets links of unlike quality share one clock. Shares change only when
somebody comes or goes, and a medium keeps one pending timer, for the next end. A transfer that has been carried
arrives after its propagation delay, during which the medium is free for others.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from simpy import Environment, Event

SAME_INSTANT_ULPS: Final = 4
"""Ends within so many units in the last place of the present instant are now: sums in another order differ so."""


@dataclass(frozen=True)
class SpectrumBook:
    """What a medium has done so far, each entry counted on its own; work in Hz s.

    Attributes
    ----------
    carried : work done, counted on the medium's clock
    received, lost, under_way : work done for transfers that ended, were cancelled, or are still there
    most : work that the bandwidth would have allowed
    presence_s : integral over time of the number of transfers there
    sojourn_s : sum over all transfers of the time they have been there
    """

    carried: float
    received: float
    lost: float
    under_way: float
    most: float
    presence_s: float
    sojourn_s: float


class SpectrumTransfer:
    """One transfer over a medium: a flow.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived
    bits, work : its size, and what it asks of the medium in Hz s
    delay_s : propagation delay
    came_s, began_s : when it was asked for, and when it was first served
    mark : its place on the medium's own clock
    there : whether the medium is busy with it, or it waits for that
    served : work done for it when it left the medium
    given_up, arrived : whether it was cancelled, or is complete at the receiver
    """

    __slots__ = (
        "_medium",
        "arrived",
        "began_s",
        "bits",
        "came_s",
        "delay_s",
        "done",
        "given_up",
        "mark",
        "served",
        "there",
        "work",
    )

    def __init__(self, medium: "SharedSpectrum", bits: float, work: float, delay_s: float) -> None:
        self._medium, self.bits, self.work, self.delay_s = medium, bits, work, delay_s
        self.done = Event(medium.env)
        self.came_s = medium.env.now
        self.began_s: float | None = None
        self.mark = self.served = 0.0
        self.there = self.given_up = self.arrived = False

    def cancel(self) -> None:
        """Give up and free the share at this instant; nothing if it has arrived."""
        if not (self.given_up or self.arrived):
            self.given_up = True
            self._medium.forget(self)

    def sent_bits(self) -> float:
        """Return how many bits have been carried so far."""
        served = self._medium.served(self) if self.there else self.served
        return self.bits if served >= self.work else self.bits * max(0.0, served / self.work)

    def queued_s(self) -> float:
        """Return how long it has waited for its turn."""
        return (self._medium.env.now if self.began_s is None else self.began_s) - self.came_s

    def arrive(self, _event: Event | None = None) -> None:
        """Tell that the last bit is there, unless the transfer was given up on its way."""
        if not self.given_up:
            self.arrived = True
            self.done.succeed()


class SharedSpectrum(ABC):
    """Bandwidth and a rule by which those present share it.

    Parameters
    ----------
    env : Environment
    bandwidth_hz : float > 0
    """

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        self.env, self.bandwidth_hz = env, bandwidth_hz
        self.present = 0
        self._seen_s = env.now
        self._timer: Event | None = None
        self._fires_s = math.inf
        self._carried = self._received = self._lost = 0.0
        self._most = self._presence_s = self._sojourn_s = self._came_s = 0.0

    def send(self, bits: float, efficiency: float, delay_s: float = 0.0) -> SpectrumTransfer:
        """Start a transfer now.

        Parameters
        ----------
        bits : size, >= 0
        efficiency : bit/s/Hz of its link, >= 0; at 0 it never ends and takes nothing from the others
        delay_s : propagation delay, >= 0
        """
        work = (bits / efficiency if efficiency > 0 else math.inf) if bits > 0 else 0.0
        transfer = SpectrumTransfer(self, bits, work, delay_s)
        if 0 < work < math.inf:
            self._catch_up()
            if self._fires_s - self.env.now <= 2 * SAME_INSTANT_ULPS * math.ulp(self.env.now):
                self._end_due()
            transfer.there = True
            self.present += 1
            self._came_s += transfer.came_s
            self._join(transfer)
            self._plan()
        else:
            transfer.began_s = transfer.came_s
            if work == 0:
                self._send_on(transfer)
        return transfer

    def forget(self, transfer: SpectrumTransfer) -> None:
        """Take a transfer that was given up off the medium; its share goes to the others at once."""
        if transfer.there:
            self._catch_up()
            transfer.served = self._served(transfer)
            self._lost += transfer.served
            self._let_go(transfer)
            self._plan()
        elif transfer.served:
            self._received -= transfer.served
            self._lost += transfer.served

    def served(self, transfer: SpectrumTransfer) -> float:
        """Return the work done so far for a transfer that is there."""
        self._catch_up()
        return self._served(transfer)

    def book(self) -> SpectrumBook:
        """Return what has been done up to now."""
        self._catch_up()
        under_way = math.fsum(self._served(transfer) for transfer in self._there())
        sojourn_s = self._sojourn_s + self.present * self.env.now - self._came_s
        return SpectrumBook(
            self._carried, self._received, self._lost, under_way, self._most, self._presence_s, sojourn_s
        )

    def rate_hz(self) -> float:
        """Return the work done per second while somebody is there."""
        return self.bandwidth_hz

    def _catch_up(self) -> None:
        """Do the work of the time since this was last called."""
        elapsed_s = self.env.now - self._seen_s
        if elapsed_s > 0:
            self._seen_s = self.env.now
            self._presence_s += self.present * elapsed_s
            work = self.rate_hz() * elapsed_s
            self._most += work
            if self.present:
                self._carried += work
                self._work(work)

    def _plan(self) -> None:
        """See that a timer fires no later than the next end.

        One that fires too early (more have come since) plans anew; so those who come cost no event of their own.
        """
        if not self.present:
            self._timer, self._fires_s = None, math.inf
            return
        delay_s = max(0.0, self._left() / self.rate_hz())
        fires_s = self.env.now + delay_s
        if fires_s < self._fires_s:
            self._timer, self._fires_s = self.env.timeout(delay_s), fires_s
            if self._timer.callbacks is not None:
                self._timer.callbacks.append(self._on_time)

    def _on_time(self, event: Event) -> None:
        if event is self._timer:
            self._timer, self._fires_s = None, math.inf
            self._catch_up()
            self._end_due()
            self._plan()

    def _end_due(self) -> None:
        """Let go of everybody whose end is now."""
        while self.present and self._left() <= SAME_INSTANT_ULPS * math.ulp(self.env.now) * self.rate_hz():
            transfer = self._next()
            transfer.served = transfer.work
            self._received += transfer.work
            self._let_go(transfer)
            self._send_on(transfer)

    def _let_go(self, transfer: SpectrumTransfer) -> None:
        transfer.there = False
        self._drop(transfer)
        self.present -= 1
        self._came_s -= transfer.came_s
        self._sojourn_s += self.env.now - transfer.came_s
        if not self.present:
            self._came_s = 0.0

    def _send_on(self, transfer: SpectrumTransfer) -> None:
        if transfer.delay_s > 0:
            timeout = self.env.timeout(transfer.delay_s)
            if timeout.callbacks is not None:
                timeout.callbacks.append(transfer.arrive)
        else:
            transfer.arrive()

    @abstractmethod
    def _join(self, transfer: SpectrumTransfer) -> None:
        """Take a transfer in; it counts as present."""

    @abstractmethod
    def _drop(self, transfer: SpectrumTransfer) -> None:
        """Take a transfer out that is given up or has ended; it still counts as present."""

    @abstractmethod
    def _work(self, work: float) -> None:
        """Share out work among those present."""

    @abstractmethod
    def _served(self, transfer: SpectrumTransfer) -> float:
        """Return the work done for a transfer that is there."""

    @abstractmethod
    def _left(self) -> float:
        """Return the work of the whole medium until the next end, with those present now."""

    @abstractmethod
    def _next(self) -> SpectrumTransfer:
        """Return the transfer that ends next."""

    @abstractmethod
    def _there(self) -> list[SpectrumTransfer]:
        """Return everybody present."""
