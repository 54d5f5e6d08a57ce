"""One transmission for everybody: a downlink that all of a cohort hear at once."""

import math
from collections.abc import Callable
from functools import partial

from simpy import Environment, Event

from fedsim.network.medium.disciplines import FirstCome
from fedsim.network.medium.spectrum import SpectrumTransfer


class Multicast:
    """Sends what is asked for at one instant as one message, with the whole bandwidth, at the rate of the weakest.

    The message is as long as the most that is asked for; a client that asks for fewer bits hears its beginning and no
    more. A client whose link carries nothing hears nothing and does not hold up the others. The rate is that of the
    least efficiency in the group when the transmission is asked for; members who leave do not change it, and when all
    have left it ends. Several messages on their way are sent one after another.

    Parameters
    ----------
    env : Environment
    bandwidth_hz : float > 0
    """

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        self.env = env
        self.medium = TransmissionQueue(env, bandwidth_hz)
        self._group: MulticastGroup | None = None

    def send(self, bits: float, efficiency: float, delay_s: float = 0.0) -> "MulticastReception":
        """Join the transmission of this instant; as `Medium.send`."""
        if self._group is None:
            self._group = MulticastGroup(self)
            _call(self.env.timeout(0), self._send_all)
        copy = MulticastReception(self._group, bits, delay_s)
        if efficiency > 0 or bits == 0:
            self._group.copies[copy] = efficiency
        return copy

    def _send_all(self, _event: Event) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.start()


class TransmissionQueue(FirstCome):
    """Transfers one after another; says when the turn of one has come."""

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        super().__init__(env, bandwidth_hz)
        self._waiting: dict[SpectrumTransfer, Callable[[], None]] = {}

    def when_begun(self, transfer: SpectrumTransfer, callback: Callable[[], None]) -> None:
        """Call back when the turn of a transfer comes; at once if it has come."""
        if transfer.began_s is None:
            self._waiting[transfer] = callback
        else:
            callback()

    def forget(self, transfer: SpectrumTransfer) -> None:
        """Take a transfer that was given up off the medium."""
        self._waiting.pop(transfer, None)
        super().forget(transfer)

    def _begin(self) -> None:
        super()._begin()
        if self._queue and (callback := self._waiting.pop(self._queue[0], None)) is not None:
            callback()


class MulticastGroup:
    """Those who are to hear one message; `copies` holds the efficiency of each that still listens."""

    def __init__(self, multicast: Multicast) -> None:
        self.multicast = multicast
        self.copies: dict[MulticastReception, float] = {}
        self.transfer: SpectrumTransfer | None = None

    def start(self) -> None:
        """Start the transmission."""
        if not self.copies:
            return
        asked: dict[float, list[MulticastReception]] = {}
        for copy in self.copies:
            asked.setdefault(copy.bits, []).append(copy)
        medium, bits = self.multicast.medium, max(asked)
        weakest = min((efficiency for efficiency in self.copies.values() if efficiency > 0), default=0.0)
        self.transfer = medium.send(bits, weakest)
        everything = asked.pop(bits)
        _call(self.transfer.done, partial(self._heard, everything))
        if asked:
            medium.when_begun(self.transfer, lambda: self._go_on_air(asked))

    def leave(self, copy: "MulticastReception") -> None:
        """Let a member go, and end the transmission if it was the last."""
        if self.copies.pop(copy, None) is not None and not self.copies and self.transfer is not None:
            self.transfer.cancel()

    def _go_on_air(self, asked: "dict[float, list[MulticastReception]]") -> None:
        """Wait for the instants at which those have heard enough who asked for the beginning only."""
        if (transfer := self.transfer) is not None:
            length_s = transfer.work / self.multicast.medium.bandwidth_hz
            for bits, copies in asked.items():
                heard = self.multicast.env.timeout(length_s * (bits / transfer.bits))
                _call(heard, partial(self._heard, copies))

    def _heard(self, copies: "list[MulticastReception]", _event: Event) -> None:
        """Let those who still listen have their last bit after their delay."""
        for copy in copies:
            if copy in self.copies:
                copy.complete()
                self.leave(copy)


class MulticastReception:
    """One client's copy of a message: a flow.

    Attributes
    ----------
    bits : how much of the message is asked for
    arrives_s : when the last of them arrives, once that is known; inf before
    """

    def __init__(self, group: MulticastGroup, bits: float, delay_s: float) -> None:
        self._group, self.bits, self.delay_s = group, bits, delay_s
        self.done = Event(group.multicast.env)
        self.arrives_s = math.inf
        self._listens = True
        self._sent_bits = self._queued_s = 0.0

    def cancel(self) -> None:
        """Stop listening; the others hear on."""
        if self._listens and not self.done.triggered:
            self._sent_bits, self._queued_s = self.sent_bits(), self.queued_s()
            self._listens = False
            self._group.leave(self)

    def sent_bits(self) -> float:
        """Return how many bits this client has heard so far."""
        if not self._listens:
            return self._sent_bits
        if self.arrives_s < math.inf:
            return self.bits
        transfer = self._group.transfer
        return 0.0 if transfer is None or self not in self._group.copies else min(self.bits, transfer.sent_bits())

    def queued_s(self) -> float:
        """Return how long the message has waited for its turn."""
        if not self._listens:
            return self._queued_s
        return 0.0 if self._group.transfer is None else self._group.transfer.queued_s()

    def complete(self) -> None:
        """Let the last bit arrive after the delay."""
        env = self._group.multicast.env
        self.arrives_s = env.now + self.delay_s
        if self.delay_s > 0:
            _call(env.timeout(self.delay_s), self._arrive)
        else:
            self._arrive()

    def _arrive(self, _event: Event | None = None) -> None:
        if self._listens:
            self.done.succeed()


def _call(event: Event, callback: Callable[[Event], None]) -> None:
    if event.callbacks is not None:
        event.callbacks.append(callback)
