"""Networks that are latency laws: one draw for each client and participation, without physics and sizes.

Streams: ``latency-downlink`` and ``latency-uplink`` by (client, draw); ``latency-spread`` by client.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import model_validator

from fedsim.arrays import FloatArray, IntArray, normal_quantile
from fedsim.capabilities import MODEL_BITS
from fedsim.network.contracts import Links
from fedsim.network.distributions import LATENCY_LAW, LATENCY_LAWS, LatencyLaw, Sigma, floored_normal_mean
from fedsim.network.transport.transport import TRANSPORT, TRANSPORTS, NoTransport, Transport
from fedsim.per_client import ClientValues, PerClient, values_of
from fedsim.registry import Component, Slot
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import NonNegative, Seconds

Factor = Annotated[ClientValues, PerClient(ge=0, le=1e6)]


class LatencyNetwork(Component):
    """One latency law for the downlink and one for the uplink.

    Attributes
    ----------
    downlink, uplink : latency laws
        Drawn independently for each client, draw and direction.
    spread_sigma : float
        Heterogeneity of the clients: each has a log-normal factor with mean 1 on both directions, drawn once;
        this is the standard deviation of its logarithm. At 0 all clients are alike.
    downlink_factor, uplink_factor : factor on the latencies of each client, besides
        One for all, or a value for each (`fedsim.per_client`): with the law ``constant`` of 1 s, times of clients that
        are known one by one.
    transport : transport
        What TCP adds to each message; ``none``, the default, for nothing. With one, sizes matter.
    """

    downlink: Annotated[LatencyLaw, Slot(LATENCY_LAWS)]
    uplink: Annotated[LatencyLaw, Slot(LATENCY_LAWS)]
    spread_sigma: Sigma = 0.0
    downlink_factor: Factor = 1.0
    uplink_factor: Factor = 1.0
    transport: Annotated[Transport, Slot(TRANSPORTS)] = NoTransport()

    @property
    def requires(self) -> frozenset[str]:
        return frozenset() if isinstance(self.transport, NoTransport) else frozenset({MODEL_BITS})

    def build(self, run: RunSetup) -> Links:
        clients = run.clients
        factor = np.ones(clients)
        if self.spread_sigma:
            z = normal_quantile(run.streams.uniform("latency-spread", np.arange(factor.size)))
            factor = np.exp(self.spread_sigma * z - self.spread_sigma**2 / 2)
        down, up = (
            factor * values_of(self, name, clients, run.streams, "network")
            for name in ("downlink_factor", "uplink_factor")
        )
        laws = LATENCY_LAW.checked(self.downlink), LATENCY_LAW.checked(self.uplink)
        links = LatencyLinks(*laws, down, up, run.streams, alike=bool((down == 1.0).all() and (up == 1.0).all()))
        return TRANSPORT.checked(self.transport).over(links, run.streams)


@dataclass(frozen=True)
class LatencyLinks(Links):
    downlink: LatencyLaw
    uplink: LatencyLaw
    down_factor: FloatArray
    up_factor: FloatArray
    streams: Streams
    alike: bool

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        drawn = self.downlink.quantile(self.streams.uniform("latency-downlink", client, draw))
        return drawn if self.alike else self.down_factor[client] * drawn

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        drawn = self.uplink.quantile(self.streams.uniform("latency-uplink", client, draw))
        return drawn if self.alike else self.up_factor[client] * drawn

    def expected_downlink_s(self, bits: float) -> FloatArray:
        return self.down_factor * self.downlink.mean_s()

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return self.up_factor * self.uplink.mean_s()


class TwoSpeed(Component):
    """The population of PAUSE: half the clients fast, half slow, normal latencies with a floor.

    Paper: "PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated Learning", section II-A3
    (tau is the *total* latency of a participation, and at least tau_min) and section IV (a normal law, two
    equal groups). The numbers are the defaults of the authors' code, which the paper does not print. As tau is the
    total, the whole of it lies on the uplink here and the downlink is zero by definition; with devices that take no
    time this is the paper's clock.

    With ``h`` fast and ``K - h`` slow clients, client ``i < h`` has the centre
    ``fast_from_s + (fast_to_s - fast_from_s) (i + 1) / h`` and client ``h + j`` the centre
    ``slow_from_s + (slow_to_s - slow_from_s) (j + 1) / (K - h)``. Here ``h`` is K/2 rounded down: with an odd
    K (which the paper never uses) the slow half has one client more. A population is spread over its ids, so
    another K changes the centres of all clients; the draws of a client stay the same.

    Attributes
    ----------
    fast_from_s, fast_to_s, slow_from_s, slow_to_s : ends of the two ranges of centres; the first is not reached
    std_s : standard deviation of the normal noise of all clients
    floor_s : tau_min; draws below it become it (a point mass, not a redraw)
    """

    requires: ClassVar[frozenset[str]] = frozenset()

    fast_from_s: NonNegative[Seconds] = 0.05
    fast_to_s: NonNegative[Seconds] = 0.20
    slow_from_s: NonNegative[Seconds] = 0.70
    slow_to_s: NonNegative[Seconds] = 0.90
    std_s: NonNegative[Seconds] = 0.05
    floor_s: NonNegative[Seconds] = 0.05

    @model_validator(mode="after")
    def _ranges_rise(self) -> Self:
        for low, high in (("fast_from_s", "fast_to_s"), ("slow_from_s", "slow_to_s")):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(
                    f"{low} = {getattr(self, low)} is not allowed; it must be at most {high} = {getattr(self, high)}"
                )
        return self

    def build(self, run: RunSetup) -> "TwoSpeedLinks":
        clients = run.clients
        fast, slow = clients // 2, clients - clients // 2
        centre = np.concatenate(
            [
                _climb(self.fast_from_s, self.fast_to_s, fast),
                _climb(self.slow_from_s, self.slow_to_s, slow),
            ]
        )
        return TwoSpeedLinks(centre, self.std_s, self.floor_s, run.streams)


def _climb(low: float, high: float, number: int) -> FloatArray:
    return low + (high - low) * np.arange(1, number + 1) / max(number, 1)


@dataclass(frozen=True)
class TwoSpeedLinks(Links):
    centre_s: FloatArray
    std_s: float
    floor_s: float
    streams: Streams

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return zeros: the whole latency of a participation lies on the uplink."""
        return np.zeros(np.shape(client))

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        z = normal_quantile(self.streams.uniform("latency-uplink", client, draw))
        return np.maximum(self.floor_s, self.centre_s[client] + self.std_s * z)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        return np.zeros(self.centre_s.shape)

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return floored_normal_mean(self.centre_s, self.std_s, self.floor_s)
