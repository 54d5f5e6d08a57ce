"""The links of a cell: alone by fading blocks, shared on a medium."""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import replace

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Environment
from fedsim.errors import ScenarioError, SelectorError
from fedsim.network.cell.access import AccessDelays
from fedsim.network.contracts import Connection, Directions, LinkFacts, Links
from fedsim.network.medium.cell import CellMedium, FadingInShares, Sharing
from fedsim.network.radio.channel import Channel
from fedsim.network.transfers import SharedMedium
from fedsim.per_client import Values, at
from fedsim.units import db_to_linear


class CellLinks(Links):
    serving: IntArray

    def __init__(
        self,
        downlink: Channel,
        uplink: Channel,
        delay_s: FloatArray,
        serving: IntArray,
        sharing: tuple[Sharing, Sharing],
        access: AccessDelays,
        positions_m: FloatArray,
        distance_m: FloatArray,
        fading: tuple[FadingInShares, FadingInShares],
        uplink_power_dbm: Values,
    ) -> None:
        self._uplink_power_dbm = uplink_power_dbm
        self._uplink_transfers: Channel | AllocatedChannel = uplink
        self._positions_m, self._distance_m = positions_m, distance_m
        self.downlink, self.uplink, self.delay_s, self.serving = downlink, uplink, delay_s, serving
        self.sharing, self.fading, self.access = sharing, fading, access
        # Seconds besides those on the air.
        self._down_s = delay_s + self.access.before_downlink_s
        self._up_s = delay_s + (self.access.before_uplink_s + self.access.after_uplink_s)
        self.shared = Directions(*(rule != "dedicated" for rule in sharing))
        self.broadcast = sharing[0] in ("multicast", "multicast-rateless")
        self.allocates = not self.shared.up
        if self.access.setup_s > 0 and self.access.inactivity_s < math.inf:
            self.connection = Connection(self.access.inactivity_s, self.access.setup_s, not self.broadcast)

    def describe(self) -> LinkFacts:
        return LinkFacts(
            positions_m=self._positions_m,
            distance_m=self._distance_m,
            snr=np.stack([self.downlink.snr, self.uplink.snr]),
            rate_bps=np.stack([self.downlink.ergodic_rate_bps, self.uplink.ergodic_rate_bps]),
        )

    def uplink_snr_hz(self, client: IntArray, time_s: float) -> FloatArray:
        widths_hz = self.uplink.widths_hz
        return np.asarray(
            self.uplink.snr[client] * (self.uplink.bandwidth_hz if widths_hz is None else widths_hz[client])
        )

    def uplink_gain(self, client: IntArray, time_s: float) -> FloatArray:
        """Return the gain of the present fading block; of a band faded in parts, its rate over the mean."""
        return self.uplink.gain_at(client, time_s)

    def uplink_power_dbm(self, client: IntArray) -> FloatArray:
        return np.broadcast_to(at(self._uplink_power_dbm, client), client.shape)

    def allocated(
        self, client: IntArray, bandwidth_hz: FloatArray | None, transmit_power_dbm: FloatArray | None
    ) -> "CellLinks":
        if self.shared.up:
            raise ScenarioError(
                "network.uplink: a selector cannot allocate bands and powers where "
                f"sharing = {self.sharing[1]!r} does; allowed: dedicated"
            )
        change_db = None
        if transmit_power_dbm is not None:
            own_dbm = self.uplink_power_dbm(client)
            change_db = transmit_power_dbm - own_dbm
            if np.any(change_db > 0):
                i = int(np.argmax(change_db))
                raise SelectorError(
                    f"transmit_power_dbm = {transmit_power_dbm[i].item()} of an allocation is more than the power of "
                    "the client's transmitter",
                    f"allowed: at most {own_dbm[i].item()} dBm",
                    client=int(client[i]),
                )
        links = copy(self)
        links._uplink_transfers = AllocatedChannel(self.uplink, client, bandwidth_hz, change_db)
        return links

    def open(self, env: Environment) -> SharedMedium:
        access, channels = self.access, (self.downlink, self.uplink)
        arrive_s = self.delay_s, self.delay_s + access.after_uplink_s
        before_s = access.before_downlink_s, access.before_uplink_s
        return CellMedium(env, channels, self.sharing, self.serving, arrive_s, self.fading, before_s)

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        before_s = self.access.before_downlink_s
        on_air_s = self.downlink.transfer_s(client, start_s + before_s if before_s else start_s, bits)
        return on_air_s + self._down_s[client]

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        before_s = self.access.before_uplink_s
        on_air_s = self._uplink_transfers.transfer_s(client, start_s + before_s if before_s else start_s, bits)
        return on_air_s + self._up_s[client]

    def carried_bits(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return bits as they are sent: the propagation of the last of them carries nothing more."""
        before_s = self.access.before_uplink_s if up else self.access.before_downlink_s
        air_s = np.maximum(elapsed_s - before_s, 0.0)
        channel = self._uplink_transfers if up else self.downlink
        return np.minimum(channel.carried_bits(client, start_s + before_s, air_s), bits)

    def on_air_s(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the seconds in which bits are sent: access, propagation and backhaul are waits."""
        before_s = self.access.before_uplink_s if up else self.access.before_downlink_s
        channel = self._uplink_transfers if up else self.downlink
        takes_s = channel.transfer_s(client, start_s + before_s, bits)
        return np.minimum(np.maximum(elapsed_s - before_s, 0.0), takes_s)

    def expected_on_air_s(self, bits: float, *, up: bool) -> FloatArray:
        return (self.uplink if up else self.downlink).expected_s(bits)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        return self.downlink.expected_s(bits) + self._down_s

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return self.uplink.expected_s(bits) + self._up_s


class AllocatedChannel:
    """One direction of the links of some clients, each with a band and a power of its own.

    A client with the power p in a band of b Hz has the SNR of the channel times ``p / p0 * b0 / b``, where p0 and b0
    are its power and its band without an allocation. Noise and interference grow with the band. Where a band is faded
    in parts, a share has the coherence bandwidths of the nearest power of two Hz.
    """

    def __init__(
        self,
        channel: Channel,
        client: IntArray,
        bandwidth_hz: FloatArray | None = None,
        power_change_db: FloatArray | None = None,
    ) -> None:
        order = np.argsort(client)
        ids = client[order]
        before_hz = np.full(ids.size, channel.bandwidth_hz) if channel.widths_hz is None else channel.widths_hz[ids]
        width_hz = before_hz if bandwidth_hz is None else bandwidth_hz[order]
        snr = channel.snr[ids] * (before_hz / width_hz)
        if power_change_db is not None:
            snr = snr * db_to_linear(power_change_db[order])
        octave = np.rint(np.log2(width_hz)).astype(np.int64) if channel.delay_spread_s else np.zeros(ids.size, np.int64)
        self._parts = []
        for one in np.unique(octave).tolist():
            part = np.flatnonzero(octave == one)
            rates = channel.octave_band(one) if channel.delay_spread_s else None
            self._parts.append(
                replace(channel, snr=snr[part], ids=ids[part], widths_hz=width_hz[part], band_rates=rates, densest=None)
            )

    def transfer_s(self, client: IntArray, start_s: FloatArray, bits: float) -> FloatArray:
        took_s = np.empty(client.size)
        for part, here, place in self._places(client):
            took_s[here] = part.transfer_s(place, start_s[here], bits)
        return took_s

    def carried_bits(self, client: IntArray, start_s: FloatArray, elapsed_s: FloatArray) -> FloatArray:
        carried = np.empty(client.size)
        for part, here, place in self._places(client):
            carried[here] = part.carried_bits(place, start_s[here], elapsed_s[here])
        return carried

    def _places(self, client: IntArray) -> Iterator[tuple[Channel, IntArray, IntArray]]:
        for part in self._parts:
            if part.ids is not None:
                here = np.flatnonzero(np.isin(client, part.ids))
                yield part, here, np.searchsorted(part.ids, client[here])
