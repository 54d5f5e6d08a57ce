"""Multicast: one transmission of a downlink that all clients of a cohort receive at once."""

import math
from functools import partial
from typing import ClassVar

from simpy import Environment, Event

from fedsim.clock import call_after, call_when
from fedsim.network.contracts import Transfer
from fedsim.network.medium.disciplines import FirstCome
from fedsim.network.medium.spectrum import SharedSpectrum, SpectrumTransfer


class Multicast:
    """A sender that carries all transfers of one instant as one message, with the whole bandwidth, at the least rate.

    The message is as long as the longest transfer; a client that asks for fewer bits receives the beginning of it. A
    client whose link carries nothing receives nothing and does not delay the others. The rate is that of the least
    efficiency in the group when the transmission starts; a client that cancels later does not change it, and when all
    have cancelled the transmission ends. Several messages are sent one after another.

    Parameters
    ----------
    env : Environment
    bandwidth_hz : float > 0
    """

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        self.env = env
        self.medium = SharedSpectrum(env, bandwidth_hz, FirstCome())
        self._group: MulticastGroup | None = None

    def send(self, bits: float, efficiency: float, delay_s: float = 0.0) -> "MulticastReception":
        """Join the transmission of this instant; parameters as in `SharedSpectrum.send`."""
        if self._group is None:
            self._group = MulticastGroup(self)
            call_after(self.env, 0.0, self._send_all)
        reception = MulticastReception(self._group, bits, delay_s)
        if efficiency > 0 or bits == 0:
            self._group.members[reception] = efficiency
        return reception

    def _send_all(self, _event: Event) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.start()


class MulticastGroup:
    """The receivers of one message.

    Parameters
    ----------
    multicast : the sender

    Attributes
    ----------
    members : efficiency in bit/s/Hz of each reception that is not over
    transfer : that of the message; None before it is sent
    """

    def __init__(self, multicast: Multicast) -> None:
        self.multicast = multicast
        self.members: dict[MulticastReception, float] = {}
        self.transfer: SpectrumTransfer | None = None

    def start(self) -> None:
        """Start the transmission."""
        if not self.members:
            return
        by_bits: dict[float, list[MulticastReception]] = {}
        for reception in self.members:
            by_bits.setdefault(reception.bits, []).append(reception)
        medium, bits = self.multicast.medium, max(by_bits)
        least = min((efficiency for efficiency in self.members.values() if efficiency > 0), default=0.0)
        self.transfer = medium.send(bits, least)
        call_when(self.transfer.done, partial(self._received, by_bits.pop(bits)))
        if by_bits:
            medium.when_begun(self.transfer, lambda: self._end_shorter(by_bits))

    def leave(self, reception: "MulticastReception") -> None:
        """Remove a member, and end the transmission if it was the last."""
        if self.members.pop(reception, None) is not None and not self.members and self.transfer is not None:
            self.transfer.cancel()

    def _end_shorter(self, by_bits: "dict[float, list[MulticastReception]]") -> None:
        """Wait for the ends of the receptions that ask for the beginning of the message only."""
        if (transfer := self.transfer) is not None:
            length_s = transfer.work / self.multicast.medium.bandwidth_hz
            for bits, receptions in by_bits.items():
                call_after(self.multicast.env, length_s * (bits / transfer.bits), partial(self._received, receptions))

    def _received(self, receptions: "list[MulticastReception]", _event: Event) -> None:
        """Let the last bit of the receptions that are not over arrive after their delay."""
        for reception in receptions:
            if reception in self.members:
                reception.complete()
                self.leave(reception)


class MulticastReception(Transfer):
    """The reception of a message by one client.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived
    bits : length of the part that is asked for
    """

    announces_arrival: ClassVar[bool] = True

    def __init__(self, group: MulticastGroup, bits: float, delay_s: float) -> None:
        self._group, self.bits, self.delay_s = group, bits, delay_s
        self.done = Event(group.multicast.env)
        self._arrives_s = math.inf
        self._listens = True
        self._sent_bits = self._queued_s = 0.0

    def cancel(self) -> None:
        """End the reception now; the others continue."""
        if self._listens and not self.done.triggered:
            self._sent_bits, self._queued_s = self.sent_bits(), self.queued_s()
            self._listens = False
            self._group.leave(self)

    def sent_bits(self) -> float:
        """Return the number of bits that this client has received so far."""
        if not self._listens:
            return self._sent_bits
        if self._arrives_s < math.inf:
            return self.bits
        transfer = self._group.transfer
        return 0.0 if transfer is None or self not in self._group.members else min(self.bits, transfer.sent_bits())

    def queued_s(self) -> float:
        """Return the seconds for which the message has waited for a free medium."""
        if not self._listens:
            return self._queued_s
        return 0.0 if self._group.transfer is None else self._group.transfer.queued_s()

    def arrives_s(self) -> float:
        """Return the instant at which the last bit arrives, known when the transmission has ended; `inf` before."""
        return self._arrives_s

    def complete(self) -> None:
        """Let the last bit arrive after the propagation delay."""
        env = self._group.multicast.env
        self._arrives_s = env.now + self.delay_s
        if self.delay_s > 0:
            call_after(env, self.delay_s, self._arrive)
        else:
            self._arrive()

    def _arrive(self, _event: Event | None = None) -> None:
        if self._listens:
            self.done.succeed()
