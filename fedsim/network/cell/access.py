"""How long a message waits around its transfer over the air: for a grant, after idle, and on the way to the server."""

import math
from typing import Final, NamedTuple, Protocol

from fedsim.answers import Contract, InstanceOf
from fedsim.registry import Component, Registry
from fedsim.units import NonNegative, Positive, Seconds

ACCESS_LATENCIES: Final = Registry(
    "cell access",
    "fedsim.access_latencies",
    ("delays",),
    {
        "grant": "fedsim.network.cell.access:GrantAccess",
        "none": "fedsim.network.cell.access:NoAccessLatency",
    },
    default="grant",
)


class AccessDelays(NamedTuple):
    """The waits of the messages of one cell, in seconds."""

    before_downlink_s: float = 0.0
    before_uplink_s: float = 0.0
    after_uplink_s: float = 0.0
    setup_s: float = 0.0
    inactivity_s: float = math.inf


class AccessLatency(Protocol):
    """The waits of messages around their transfers over the air."""

    def delays(self) -> AccessDelays:
        """Return the waits of the messages of one cell."""
        ...


ACCESS_LATENCY: Final = Contract("cell access", AccessLatency, {"delays": InstanceOf(AccessDelays)})


class GrantAccess(Component):
    """Access by scheduling request and grant, as in LTE and NR.

    The defaults are those of LTE, by the budget of 3GPP TR 36.881, table 5.2.1-1, for a period of 10 ms, one of those
    of TS 36.213, table 10.1.5-1. It has 5 ms until the next scheduling request, 1 ms to send it, 3 ms until it is
    decoded, 1 ms for the grant, and 3 ms to prepare the data. A downlink takes 4 ms with its processing: TR 36.912,
    annex B.2. From idle to active 100 ms: the requirement of TR 25.913, section 6.2.1. Assumptions of ours are the
    period of 10 ms, the release after 10 s, and the 10 ms to the server, 2,000 km of fibre at the 5 us per km of ITU-T
    G.114. A network chooses the release among the values of TS 36.331's data inactivity timer.

    Attributes
    ----------
    downlink_s : processing and alignment of a downlink in the base station
    scheduling_request_s : mean wait for the next opportunity of a request, and the request
    grant_s : decoding of the request, the grant, and preparation of the data
    random_access_s : random access and connection set-up after idle
    inactivity_s : time without a message after which a client is idle
    backhaul_s : one way between the base station and the server
    """

    downlink_s: NonNegative[Seconds] = 0.004
    scheduling_request_s: NonNegative[Seconds] = 0.006
    grant_s: NonNegative[Seconds] = 0.007
    random_access_s: NonNegative[Seconds] = 0.1
    inactivity_s: Positive[Seconds] = 10.0
    backhaul_s: NonNegative[Seconds] = 0.01

    def delays(self) -> AccessDelays:
        return AccessDelays(
            self.backhaul_s + self.downlink_s,
            self.scheduling_request_s + self.grant_s,
            self.backhaul_s,
            self.random_access_s,
            self.inactivity_s,
        )


class NoAccessLatency(Component):
    """No waits: a message is on the air at once, and its last bit at the server when it has been received."""

    def delays(self) -> AccessDelays:
        return AccessDelays()
