"""Multicast: one transmission of a downlink that all clients of a cohort receive at once.

In each fading block the sender has the rate of the least efficient link.
"""

import math
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, Protocol

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import call_after, call_when
from fedsim.network.medium.disciplines import FirstCome
from fedsim.network.medium.spectrum import SharedSpectrum, SpectrumTransfer
from fedsim.network.radio.channel import MOST_BLOCKS, Channel
from fedsim.network.transfers import Transfer

_FIRST: Final = 32
_AT_ONCE: Final = 2**14
_MOST_GAINS: Final = 2**22
_LAST_BLOCK: Final = 2.0**52


class Pace(Protocol):
    """The bits of a message by time, in seconds from its beginning."""

    def time_s(self, bits: float) -> float: ...

    def bits(self, time_s: float) -> float: ...


@dataclass(frozen=True)
class ConstantPace:
    rate_bps: float

    def time_s(self, bits: float) -> float:
        if bits <= 0:
            return 0.0
        return bits / self.rate_bps if self.rate_bps > 0 else math.inf

    def bits(self, time_s: float) -> float:
        return self.rate_bps * time_s


class LeastRate:
    """The integral over time of the least rate of several clients, exact over their fading blocks."""

    def __init__(self, channel: Channel, client: IntArray, start_s: float) -> None:
        self._channel, self._client = channel, np.unique(client)
        self._coherence_s = channel.fading.coherence_s
        self._most = max(1, min(MOST_BLOCKS, _MOST_GAINS // self._client.size))
        self._rate, self._ends_s, self._carried = np.empty(0), np.zeros(1), np.zeros(1)
        self._beyond_bps: float | None = None
        if math.isinf(self._coherence_s):
            self._beyond_bps = float(channel.rate_bps(self._client, 0).min())
        elif start_s >= _LAST_BLOCK * self._coherence_s:
            self._beyond_bps = float(channel.ergodic_rate_bps[self._client].min())
        else:
            self._first = math.floor(start_s / self._coherence_s)
            left_s = (self._first + 1) * self._coherence_s - start_s
            self._first_s = min(max(left_s, 0.0), self._coherence_s)

    def time_s(self, bits: float) -> float:
        if bits <= 0:
            return 0.0
        while self._beyond_bps is None and self._carried[-1] < bits:
            self._draw()
        if self._beyond_bps is not None and self._carried[-1] < bits:
            return float(self._ends_s[-1]) + ConstantPace(self._beyond_bps).time_s(bits - float(self._carried[-1]))
        block = int(np.searchsorted(self._carried, bits)) - 1
        within_s = (bits - self._carried[block]) / self._rate[block]
        return float(min(self._ends_s[block] + within_s, self._ends_s[block + 1]))

    def bits(self, time_s: float) -> float:
        while self._beyond_bps is None and self._ends_s[-1] < time_s:
            self._draw()
        if self._beyond_bps is not None and self._ends_s[-1] <= time_s:
            return float(self._carried[-1] + self._beyond_bps * (time_s - self._ends_s[-1]))
        return float(np.interp(time_s, self._ends_s, self._carried))

    def _draw(self) -> None:
        drawn = self._rate.size
        count = min(max(_FIRST, drawn), max(_FIRST, _AT_ONCE // self._client.size), self._most - drawn)
        blocks = self._first + np.arange(drawn, drawn + count)
        rate: FloatArray = self._channel.rate_bps(self._client[:, None], blocks).min(axis=0)
        lasts_s = np.full(count, self._coherence_s)
        if drawn == 0:
            lasts_s[0] = self._first_s
        self._rate = np.append(self._rate, rate)
        # Sequential sums: the result does not depend on where one drawing ends and the next begins.
        ends_s = self._first_s + np.arange(drawn, drawn + count) * self._coherence_s
        carried = np.cumsum(np.append(self._carried[-1:], rate * lasts_s))[1:]
        self._ends_s, self._carried = np.append(self._ends_s, ends_s), np.append(self._carried, carried)
        if self._rate.size >= self._most:
            self._beyond_bps = float(self._carried[-1] / self._ends_s[-1])


class Multicast:
    """A sender that carries all transfers of one instant as one message, with the whole bandwidth, at the least rate.

    The message is as long as the longest transfer; a client that asks for fewer bits receives the beginning of it. A
    client whose link carries nothing receives nothing and does not delay the others. With a channel the rate of each
    fading block is the least of all receivers in that block: what all must be able to decode. Without one it is that of
    the least efficiency in the group, which stands for a rateless code: a client makes up in its good blocks for what
    it missed in bad ones. A client that cancels does not change the rate; the transmission ends when all have
    cancelled. Several messages are sent one after another.
    """

    def __init__(self, env: Environment, bandwidth_hz: float, channel: Channel | None = None) -> None:
        self.env, self.channel = env, channel
        self.medium = SharedSpectrum(env, bandwidth_hz, FirstCome())
        self._group: MulticastGroup | None = None
        self._sending: MulticastGroup | None = None
        self._waiting = deque[MulticastGroup]()

    def send(self, bits: float, efficiency: float, delay_s: float = 0.0, client: int = 0) -> "MulticastReception":
        """Join the transmission of this instant."""
        if self._group is None:
            self._group = MulticastGroup(self)
            call_after(self.env, 0.0, self._send_all)
        reception = MulticastReception(self._group, bits, delay_s)
        if efficiency > 0 or bits == 0:
            self._group.add(reception, client, efficiency)
        return reception

    def over(self, group: "MulticastGroup") -> None:
        """Send the next message if this group's was the one under way."""
        if self._sending is group:
            self._sending = None
            self._send_next()

    def pace(self, members: list[tuple[int, float]]) -> Pace:
        """Return the pace of a message that begins now."""
        if self.channel is None or not members:
            least = min((efficiency for _, efficiency in members), default=0.0)
            return ConstantPace(self.medium.bandwidth_hz * least)
        return LeastRate(self.channel, np.array([client for client, _ in members]), self.env.now)

    def _send_all(self, _event: Event) -> None:
        group, self._group = self._group, None
        if group is not None:
            self._waiting.append(group)
            if self._sending is None:
                self._send_next()

    def _send_next(self) -> None:
        while self._sending is None and self._waiting:
            group = self._waiting.popleft()
            if group.members:
                self._sending = group
                group.start()


class MulticastGroup:
    """The receivers of one message."""

    def __init__(self, multicast: Multicast) -> None:
        self.multicast = multicast
        self.members: dict[MulticastReception, tuple[int, float]] = {}
        self.transfer: SpectrumTransfer | None = None
        self.pace: Pace | None = None
        self.came_s = self.began_s = multicast.env.now

    def add(self, reception: "MulticastReception", client: int, efficiency: float) -> None:
        self.members[reception] = client, efficiency

    def start(self) -> None:
        sender, by_bits = self.multicast, dict[float, list[MulticastReception]]()
        for reception in self.members:
            by_bits.setdefault(reception.bits, []).append(reception)
        pace = self.pace = sender.pace([member for member in self.members.values() if member[1] > 0])
        self.began_s, bits = sender.env.now, max(by_bits)
        work = pace.time_s(bits) * sender.medium.bandwidth_hz
        self.transfer = sender.medium.send(bits, bits / work if work > 0 else 0.0)
        call_when(self.transfer.done, partial(self._received, by_bits.pop(bits)))
        call_when(self.transfer.done, lambda _event: sender.over(self))
        for shorter, receptions in by_bits.items():
            call_after(sender.env, pace.time_s(shorter), partial(self._received, receptions))

    def leave(self, reception: "MulticastReception") -> None:
        if reception in self.members:
            del self.members[reception]
            if not self.members and self.transfer is not None:
                self.transfer.cancel()
                self.multicast.over(self)

    def carried_bits(self) -> float:
        if self.transfer is None or self.pace is None:
            return 0.0
        if self.transfer.done.triggered:
            return self.transfer.bits
        return min(self.transfer.bits, self.pace.bits(self.multicast.env.now - self.began_s))

    def queued_s(self) -> float:
        return (self.multicast.env.now if self.transfer is None else self.began_s) - self.came_s

    def _received(self, receptions: "list[MulticastReception]", _event: Event) -> None:
        for reception in receptions:
            if reception in self.members:
                reception.complete()
                self.leave(reception)


class MulticastReception(Transfer):
    announces_arrival: ClassVar[bool] = True

    def __init__(self, group: MulticastGroup, bits: float, delay_s: float) -> None:
        self._group, self.bits, self.delay_s = group, bits, delay_s
        self.done = Event(group.multicast.env)
        self._arrives_s = math.inf
        self._listens = True
        self._sent_bits = self._queued_s = 0.0

    def cancel(self) -> None:
        if self._listens and not self.done.triggered:
            self._sent_bits, self._queued_s = self.sent_bits(), self.queued_s()
            self._listens = False
            self._group.leave(self)

    def sent_bits(self) -> float:
        if not self._listens:
            return self._sent_bits
        if self._arrives_s < math.inf:
            return self.bits
        return min(self.bits, self._group.carried_bits()) if self in self._group.members else 0.0

    def queued_s(self) -> float:
        return self._group.queued_s() if self._listens else self._queued_s

    def on_air_s(self, elapsed_s: float) -> float:
        """Return the seconds of the transmission up to the last bit that this client receives."""
        return max(0.0, elapsed_s - self.delay_s) if self.done.triggered else elapsed_s

    def arrives_s(self) -> float:
        """Return the instant of the last bit, known when the transmission has ended; `inf` before."""
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
