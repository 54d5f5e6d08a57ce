"""Links over a wide-area path: those of a network, with what a transport adds to each message."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Environment
from fedsim.network.contracts import Directions, LinkFacts, Links
from fedsim.network.medium.server_link import Alone, Plan, ServerCapacity, TransportMedium
from fedsim.network.transfers import SharedMedium
from fedsim.network.transport.tcp import TcpPath


@dataclass(frozen=True)
class Path:
    tcp: TcpPath
    rtt_s: float
    handshakes: int
    segment_bits: float
    window: float
    overhead: float
    header_bits: float

    def carried_bits(self, bits: float) -> float:
        return (bits + self.header_bits) * (1.0 + self.overhead)

    def extra_s(self, bits: float, sending_s: FloatArray) -> FloatArray:
        """Return by how much TCP takes longer than links alone, shape (K,)."""
        segments = (bits + self.header_bits) / self.segment_bits
        if segments == 0:
            return np.zeros(sending_s.shape)
        with np.errstate(divide="ignore"):
            rate = segments / sending_s
        first = min(self.tcp.first_window, self.window)
        window = np.clip(rate * self.rtt_s, first, self.window)
        busy = (rate > 0) & (window > rate * self.rtt_s)
        rtt_s = np.divide(window, rate, out=np.full(sending_s.shape, self.rtt_s), where=busy)
        took_s = self.tcp.latency_s(segments, window, rtt_s)
        return np.subtract(took_s, sending_s, out=np.zeros(sending_s.shape), where=took_s > sending_s)


class TransportLinks(Links):
    """The links of a network with a transport."""

    def __init__(
        self, links: Links, path: Path, capacities: tuple[ServerCapacity | None, ServerCapacity | None]
    ) -> None:
        self.links, self.path, self.capacities = links, path, capacities
        self.serving, self.connection, self.broadcast = links.serving, links.connection, links.broadcast
        self.allocates = links.allocates
        limited = (capacity is not None for capacity in capacities)
        self.shared = Directions(*(shared or limit for shared, limit in zip(links.shared, limited, strict=True)))
        handshakes_s = 0.0 if links.broadcast else path.handshakes * path.rtt_s
        # The sizes asked last: those of a model, of an update, and of a question and its answer.
        self._down = lru_cache(maxsize=4)(
            lambda bits: self._plan(bits, links.expected_downlink_s, handshakes_s, tcp=not links.broadcast)
        )
        self._up = lru_cache(maxsize=4)(lambda bits: self._plan(bits, links.expected_uplink_s, 0.0))

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._took_s(self.links.downlink_s, self._down(bits), self.capacities[0], client, draw, start_s)

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._took_s(self.links.uplink_s, self._up(bits), self.capacities[1], client, draw, start_s)

    def _took_s(
        self,
        alone_s: Callable[[IntArray, int, FloatArray, float], FloatArray],
        plan: Plan,
        capacity: ServerCapacity | None,
        client: IntArray,
        draw: int,
        start_s: FloatArray,
    ) -> FloatArray:
        before_s = plan.before_s[client]
        return before_s + _limited(partial(alone_s, client, draw, start_s + before_s), plan.bits, capacity)

    def carried_bits(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the share of the message in what the network's link has carried, headers included."""
        plan = (self._up if up else self._down)(bits)
        before_s = plan.before_s[client]
        left_s = elapsed_s - before_s
        carried = self.links.carried_bits(client, draw, start_s + before_s, np.maximum(left_s, 0.0), plan.bits, up=up)
        return np.where(left_s > 0, carried, 0.0) * (bits / plan.bits if plan.bits > 0 else 1.0)

    def on_air_s(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the seconds on the air of the network's link: handshakes and round trips are waits."""
        plan = (self._up if up else self._down)(bits)
        before_s = plan.before_s[client]
        left_s = np.maximum(elapsed_s - before_s, 0.0)
        air_s = self.links.on_air_s(client, draw, start_s + before_s, left_s, plan.bits, up=up)
        return np.where(left_s > 0, air_s, 0.0)

    def expected_on_air_s(self, bits: float, *, up: bool) -> FloatArray:
        return self.links.expected_on_air_s((self._up if up else self._down)(bits).bits, up=up)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        plan = self._down(bits)
        return plan.before_s + _limited(self.links.expected_downlink_s, plan.bits, self.capacities[0])

    def expected_uplink_s(self, bits: float) -> FloatArray:
        plan = self._up(bits)
        return plan.before_s + _limited(self.links.expected_uplink_s, plan.bits, self.capacities[1])

    def uplink_snr_hz(self, client: IntArray, time_s: float) -> FloatArray | None:
        return self.links.uplink_snr_hz(client, time_s)

    def uplink_gain(self, client: IntArray, time_s: float) -> FloatArray | None:
        return self.links.uplink_gain(client, time_s)

    def uplink_power_dbm(self, client: IntArray) -> FloatArray | None:
        return self.links.uplink_power_dbm(client)

    def allocated(
        self, client: IntArray, bandwidth_hz: FloatArray | None, transmit_power_dbm: FloatArray | None
    ) -> "TransportLinks":
        """Return the links of a cohort under an allocation; what TCP adds stays that of the links without it."""
        links = copy(self)
        links.links = self.links.allocated(client, bandwidth_hz, transmit_power_dbm)
        return links

    def describe(self) -> LinkFacts:
        return self.links.describe()

    def open(self, env: Environment) -> SharedMedium:
        inner = self.links.open(env) if any(self.links.shared) else None
        ways = Alone(self.links.downlink_s, self._down), Alone(self.links.uplink_s, self._up)
        clients = self.links.expected_uplink_s(0.0).size
        return TransportMedium(env, inner, ways, self.capacities, clients, announces=self.broadcast)

    def _plan(
        self, bits: float, expected_s: Callable[[float], FloatArray], handshakes_s: float, *, tcp: bool = True
    ) -> Plan:
        carried = self.path.carried_bits(bits)
        sending_s = _sending_s(carried, expected_s)
        return Plan(carried, handshakes_s + (self.path.extra_s(bits, sending_s) if tcp else np.zeros(sending_s.size)))


def _limited(alone_s: Callable[[float], FloatArray], bits: float, capacity: ServerCapacity | None) -> FloatArray:
    """Return the times of clients that are alone on the server's link, which may be slower than their own."""
    if capacity is None:
        return alone_s(bits)
    return alone_s(bits) + np.maximum(bits / capacity.mean_bps - _sending_s(bits, alone_s), 0.0)


def _sending_s(bits: float, alone_s: Callable[[float], FloatArray]) -> FloatArray:
    """Return the times that bits take beyond those of an empty message, shape (K,); 0 for links of no use."""
    whole_s, empty_s = alone_s(bits), alone_s(0.0)
    sending_s = np.subtract(whole_s, empty_s, out=np.zeros(whole_s.shape), where=whole_s < np.inf)
    return np.maximum(sending_s, 0.0)
