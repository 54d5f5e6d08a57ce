"""Settings of the transport between clients and the server, which any network may have."""

from typing import Annotated, Final, Protocol, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from fedsim.answers import Contract, InstanceOf
from fedsim.errors import ScenarioError
from fedsim.network.contracts import Links
from fedsim.network.medium.server_link import ServerCapacity
from fedsim.network.transport.links import Path, TransportLinks
from fedsim.network.transport.tcp import TcpPath
from fedsim.registry import Component, Registry, Settings
from fedsim.streams import Streams
from fedsim.units import BitsPerSecond, Positive, Seconds

TRANSPORTS: Final = Registry(
    "transport",
    "fedsim.transports",
    ("over",),
    {
        "tcp": "fedsim.network.transport.transport:Tcp",
        "none": "fedsim.network.transport.transport:NoTransport",
    },
    default="tcp",
)
_BITS_PER_BYTE: Final = 8


class Transport(Protocol):
    """What lies between the links of a network and the messages of clients and server."""

    def over(self, links: Links, streams: Streams) -> Links:
        """Return links whose messages take this transport over other links.

        Parameters
        ----------
        links : of the network
        streams : random streams of the run
        """
        ...


TRANSPORT: Final = Contract("transport", Transport, {"over": InstanceOf(Links)})


class Background(Settings):
    """Traffic of others on the server's link: a share of its capacity, drawn anew in each interval.

    Attributes
    ----------
    least, most : range of the share, uniform; equal for a constant share
    interval_s : time for which a share holds
    """

    least: Annotated[float, Field(ge=0, le=0.99)] = 0.0
    most: Annotated[float, Field(ge=0, le=0.99)] = 0.5
    interval_s: Annotated[Seconds, Field(ge=1e-3)] = 1.0

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is not allowed; it must be at most most = {self.most}")
        return self


class ServerLink(Settings):
    """The server's own link, which all transfers of a direction share max-min fairly.

    Attributes
    ----------
    ingress_bps : capacity towards the server, for uplinks; None for no limit
    egress_bps : capacity from the server, for downlinks; None for no limit
    background : traffic of others on it; None for none
    """

    ingress_bps: Positive[BitsPerSecond] | None = None
    egress_bps: Positive[BitsPerSecond] | None = None
    background: Background | None = None

    def capacity(self, capacity_bps: float | None, name: str, streams: Streams) -> ServerCapacity | None:
        if capacity_bps is None:
            return None
        other = self.background
        if other is None or other.most == 0:
            return ServerCapacity(lambda _interval: capacity_bps, capacity_bps, None)
        least, spread = other.least, other.most - other.least

        def left_bps(interval: int) -> float:
            share = least + spread * float(streams.uniform(f"server-background-{name}", interval)) if spread else least
            return capacity_bps * (1.0 - share)

        return ServerCapacity(left_bps, capacity_bps * (1.0 - least - spread / 2), other.interval_s if spread else None)


class Tcp(Component):
    """TCP over a path with a constant round-trip time, with TLS.

    A message of d segments takes the time that Cardwell, Savage and Anderson expect over a path whose largest window
    is what the client's link carries in a round trip, or `window_bytes` if that is less. What this is longer than the
    transfer over the link alone comes before the transfer and takes no share of spectrum. Handshakes belong to the
    downlink, with which a participation begins; the uplink goes over the same connection, whose window has been reset
    (RFC 5681, section 4.1).

    Attributes
    ----------
    rtt_s : round-trip time without queues
    loss : probability that a segment is lost; see `TcpPath`
    handshakes : round trips before the first byte: 1 of TCP (RFC 9293) and 1 of TLS 1.3 (RFC 8446)
    segment_bytes : payload of a segment: 1,500 bytes less 20 of IP, 20 of TCP and 12 of timestamps
    first_window : segments in the first round trip (RFC 6928)
    per_ack : segments that are acknowledged together (RFC 1122, section 4.2.3.2)
    window_bytes : receive window
    timeout_s : first retransmission timeout (RFC 6298)
    overhead : bits of headers in each bit of payload: 78 bytes of Ethernet, IP and TCP for each segment, and TLS
        records of 22 bytes for each 16 KiB
    header_bytes : of each message, such as those of HTTP
    server : the server's own link
    """

    rtt_s: Annotated[Seconds, Field(ge=1e-6, le=60)] = 0.05
    loss: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    handshakes: NonNegativeInt = 2
    segment_bytes: PositiveInt = 1448
    first_window: Annotated[int, Field(ge=1, le=10**6)] = 10
    per_ack: Annotated[int, Field(ge=1, le=16)] = 2
    window_bytes: Annotated[int, Field(ge=1448)] = 6_291_456
    timeout_s: Positive[Seconds] = 1.0
    overhead: Annotated[float, Field(ge=0, le=10)] = 0.055
    header_bytes: NonNegativeFloat = 500.0
    server: ServerLink = ServerLink()

    @property
    def known_deviation(self) -> str:
        return "" if self.loss == 0 else "with losses messages take 2 to 6 times as long as over TCP of today"

    def over(self, links: Links, streams: Streams) -> Links:
        limits = self.server.egress_bps, self.server.ingress_bps
        for name, limit, shared in zip(("egress_bps", "ingress_bps"), limits, links.shared, strict=True):
            if limit is not None and shared:
                raise ScenarioError(
                    f"network.transport.server.{name} = {limit} is not allowed where clients share the links of this "
                    "direction; it must be left out, or the bandwidth be dedicated (a graph has the server's links)"
                )
        capacities = (
            self.server.capacity(self.server.egress_bps, "egress", streams),
            self.server.capacity(self.server.ingress_bps, "ingress", streams),
        )
        return TransportLinks(links, self.path(), capacities)

    def path(self) -> Path:
        tcp = TcpPath(self.loss, float(self.first_window), self.per_ack, self.timeout_s)
        segment_bits = float(self.segment_bytes * _BITS_PER_BYTE)
        window = self.window_bytes / self.segment_bytes
        header_bits = self.header_bytes * _BITS_PER_BYTE
        return Path(tcp, self.rtt_s, self.handshakes, segment_bits, window, self.overhead, header_bits)


class NoTransport(Component):
    """No transport: a message is what the network carries, and takes no longer."""

    def over(self, links: Links, streams: Streams) -> Links:
        return links
