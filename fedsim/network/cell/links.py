"""The links of a cell: alone by fading blocks, shared on a medium."""

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Environment
from fedsim.network.contracts import Directions, Links
from fedsim.network.medium.cell import CellMedium, FadingInShares, Sharing
from fedsim.network.radio.channel import Channel


class CellLinks(Links):
    """The links of a `Cell`.

    Parameters
    ----------
    downlink, uplink : rates and transfers of the two directions, for clients that have the bandwidth to themselves
    delay_s : propagation delay of each client in seconds, shape (K,)
    serving : index of the site that serves each client, shape (K,)
    sharing : sharing rules of the downlink and of the uplink
    fading : how shares of the downlink and of the uplink read fading
    """

    serving: IntArray

    def __init__(
        self,
        downlink: Channel,
        uplink: Channel,
        delay_s: FloatArray,
        serving: IntArray,
        sharing: tuple[Sharing, Sharing] = ("dedicated", "dedicated"),
        fading: tuple[FadingInShares, FadingInShares] = ("drawn", "drawn"),
    ) -> None:
        self.downlink, self.uplink, self.delay_s, self.serving = downlink, uplink, delay_s, serving
        self.sharing, self.fading = sharing, fading
        self.shared = Directions(*(rule != "dedicated" for rule in sharing))

    def open(self, env: Environment) -> CellMedium:
        """Return the spectrum of the cell's sites on the clock of one run."""
        channels = self.downlink, self.uplink
        return CellMedium(env, channels, self.sharing, self.serving, self.delay_s, self.fading)

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
