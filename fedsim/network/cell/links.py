"""The links of a cell: alone by fading blocks, shared on a medium."""

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Environment
from fedsim.network.contracts import Directions, LinkFacts, Links
from fedsim.network.medium.cell import CellMedium, Sharing
from fedsim.network.radio.channel import Channel


class CellLinks(Links):
    """The links of a `Cell`.

    Parameters
    ----------
    downlink, uplink : rates and transfers of the two directions, for clients that have the bandwidth to themselves
    delay_s : propagation delay of each client in seconds, shape (K,)
    serving : index of the site that serves each client, shape (K,)
    sharing : sharing rules of the downlink and of the uplink
    positions_m : place of each client, shape (K, 2); None if unknown
    distance_m : distance of each client to its site, shape (K,); None if unknown
    """

    serving: IntArray

    def __init__(
        self,
        downlink: Channel,
        uplink: Channel,
        delay_s: FloatArray,
        serving: IntArray,
        sharing: tuple[Sharing, Sharing] = ("dedicated", "dedicated"),
        positions_m: FloatArray | None = None,
        distance_m: FloatArray | None = None,
    ) -> None:
        self._positions_m, self._distance_m = positions_m, distance_m
        self.downlink, self.uplink, self.delay_s, self.serving = downlink, uplink, delay_s, serving
        self.sharing = sharing
        self.shared = Directions(*(rule != "dedicated" for rule in sharing))

    def describe(self) -> LinkFacts:
        """Return places, distances, mean SNRs and ergodic rates."""
        return LinkFacts(
            positions_m=self._positions_m,
            distance_m=self._distance_m,
            snr=np.stack([self.downlink.snr, self.uplink.snr]),
            rate_bps=np.stack([self.downlink.ergodic_rate_bps, self.uplink.ergodic_rate_bps]),
        )

    def open(self, env: Environment) -> CellMedium:
        """Return the spectrum of the cell's sites on the clock of one run."""
        channels = self.downlink, self.uplink
        return CellMedium(env, channels, self.sharing, self.serving, self.delay_s)

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the time through the fading blocks plus the propagation delay, shape (n,); the draw has no effect."""
        return self.downlink.transfer_s(client, start_s, bits) + self.delay_s[client]

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the time through the fading blocks plus the propagation delay, shape (n,); the draw has no effect."""
        return self.uplink.transfer_s(client, start_s, bits) + self.delay_s[client]

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return the fluid value ``bits / ergodic rate + delay``: see `Channel.expected_s`."""
        return self.downlink.expected_s(bits) + self.delay_s

    def expected_uplink_s(self, bits: float) -> FloatArray:
        """Return the fluid value ``bits / ergodic rate + delay``: see `Channel.expected_s`."""
        return self.uplink.expected_s(bits) + self.delay_s
