"""What a step of a client may know."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Availability, Batteries, ComputeTimes, Dropout
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.network import Links
from fedsim.per_client import Values, by_value, is_one
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.assignment import Workload
from fedsim.rounds.clients.connections import Connections
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class ClientContext:
    """What the participations of one run depend on."""

    streams: Streams
    links: Links
    compute: ComputeTimes
    availability: Availability
    dropout: Dropout
    workload: Workload
    accountant: PrivacyAccountant | None = None
    batteries: Batteries | None = None
    may_leave: bool = True
    devices_up: OnOffProcess | None = None
    links_up: OnOffProcess | None = None

    @cached_property
    def connections(self) -> Connections | None:
        """Connections of the clients, which store their last messages; None where clients never pay for one."""
        connection = self.links.connection
        return None if connection is None else Connections(connection, self.workload.samples.size)

    @property
    def steady(self) -> bool:
        """Whether dedicated transfers carry their bits in proportion to time: nothing is carried during a set-up."""
        return self.links.steady and self.connections is None

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: Values) -> FloatArray:
        """Return the durations of dedicated downlinks, the set-up of connections included."""
        if self.connections is None and is_one(bits):
            return self.links.downlink_s(client, draw, start_s, bits)
        if self.connections is not None:
            setup_s = self.connections.before_downlink_s(client, start_s)
            late_s = start_s + setup_s
            return setup_s + by_value(bits, lambda at, size: self.links.downlink_s(client[at], draw, late_s[at], size))
        return by_value(bits, lambda at, size: self.links.downlink_s(client[at], draw, start_s[at], size))

    def uplink_s(
        self,
        client: IntArray,
        draw: int,
        start_s: FloatArray,
        bits: Values,
        silent_s: FloatArray,
        links: Links | None = None,
    ) -> FloatArray:
        """Return the durations of dedicated uplinks, set-up included; silence begins at the end of the downlink."""
        own = links or self.links
        if self.connections is None and is_one(bits):
            return own.uplink_s(client, draw, start_s, bits)
        if self.connections is not None:
            setup_s = self.connections.before_uplink_s(silent_s)
            late_s = start_s + setup_s
            return setup_s + by_value(bits, lambda at, size: own.uplink_s(client[at], draw, late_s[at], size))
        return by_value(bits, lambda at, size: own.uplink_s(client[at], draw, start_s[at], size))

    def carried_bits(
        self,
        client: IntArray,
        draw: int,
        start_s: FloatArray,
        elapsed_s: FloatArray,
        bits: Values,
        silent_s: FloatArray | None = None,
        links: Links | None = None,
    ) -> FloatArray:
        """Return the bits that dedicated transfers have carried, none while a connection is set up."""
        up, own = silent_s is not None, links or self.links
        if self.connections is None:
            return by_value(
                bits, lambda at, size: own.carried_bits(client[at], draw, start_s[at], elapsed_s[at], size, up=up)
            )
        if silent_s is None:
            setup_s = self.connections.before_downlink_s(client, start_s)
        else:
            setup_s = self.connections.before_uplink_s(silent_s)
        begin_s, left_s = start_s + setup_s, elapsed_s - setup_s
        sent_s = np.maximum(left_s, 0.0)
        carried = by_value(
            bits, lambda at, size: own.carried_bits(client[at], draw, begin_s[at], sent_s[at], size, up=up)
        )
        return np.where(left_s > 0, carried, 0.0)
