"""The links of a cell: alone by fading blocks, shared on a medium."""

import math

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Environment
from fedsim.network.cell.access import AccessDelays
from fedsim.network.contracts import Connection, Directions, Links, SharedMedium
from fedsim.network.medium.cell import CellMedium, Sharing
from fedsim.network.medium.delayed import DelayedMedium
from fedsim.network.radio.channel import Channel


class CellLinks(Links):
    """The links of a `Cell`.

    Parameters
    ----------
    downlink, uplink : rates and transfers of the two directions, for clients that have the bandwidth to themselves
    delay_s : propagation delay of each client in seconds, shape (K,)
    serving : index of the site that serves each client, shape (K,)
    sharing : sharing rules of the downlink and of the uplink
    access : waits around transfers over the air; by default none
    """

    serving: IntArray

    def __init__(
        self,
        downlink: Channel,
        uplink: Channel,
        delay_s: FloatArray,
        serving: IntArray,
        sharing: tuple[Sharing, Sharing] = ("dedicated", "dedicated"),
        access: AccessDelays | None = None,
    ) -> None:
        self.downlink, self.uplink, self.delay_s, self.serving = downlink, uplink, delay_s, serving
        self.sharing = sharing
        self.access = AccessDelays() if access is None else access
        self.shared = Directions(*(rule != "dedicated" for rule in sharing))
        if self.access.setup_s > 0 and self.access.inactivity_s < math.inf:
            self.connection = Connection(self.access.inactivity_s, self.access.setup_s, sharing[0] != "multicast")

    def open(self, env: Environment) -> SharedMedium:
        """Return the spectrum of the cell's sites on the clock of one run."""
        access, channels = self.access, (self.downlink, self.uplink)
        arrive_s = self.delay_s, self.delay_s + access.after_uplink_s
        medium = CellMedium(env, channels, self.sharing, self.serving, arrive_s)
        before_s = access.before_downlink_s, access.before_uplink_s
        if not any(before_s):
            return medium
        return DelayedMedium(env, medium, before_s, announces=self.sharing[0] == "multicast")

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return access, time through the fading blocks and propagation, shape (n,); the draw has no effect."""
        before_s = self.access.before_downlink_s
        return self.downlink.transfer_s(client, start_s + before_s, bits) + (self.delay_s[client] + before_s)

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return access, time through the fading blocks and propagation, shape (n,); the draw has no effect."""
        before_s, after_s = self.access.before_uplink_s, self.access.after_uplink_s
        return self.uplink.transfer_s(client, start_s + before_s, bits) + (self.delay_s[client] + (before_s + after_s))

    def carried_bits(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the bits that the fading blocks have carried since the end of access, shape (n,).

        They are counted as they are sent: the propagation of the last of them carries nothing more.
        """
        before_s = self.access.before_uplink_s if up else self.access.before_downlink_s
        air_s = np.maximum(elapsed_s - before_s, 0.0)
        channel = self.uplink if up else self.downlink
        return np.minimum(channel.carried_bits(client, start_s + before_s, air_s), bits)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return access and the fluid value ``bits / ergodic rate + delay``: see `Channel.expected_s`."""
        return self.downlink.expected_s(bits) + (self.delay_s + self.access.before_downlink_s)

    def expected_uplink_s(self, bits: float) -> FloatArray:
        """Return access and the fluid value ``bits / ergodic rate + delay``: see `Channel.expected_s`."""
        access_s = self.access.before_uplink_s + self.access.after_uplink_s
        return self.uplink.expected_s(bits) + (self.delay_s + access_s)
