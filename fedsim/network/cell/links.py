"""fedsim.network.cell.links."""

from dataclasses import dataclass

from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.medium.cell import CellMedium, Rule
from fedsim.network.radio.channel import Channel


@dataclass(frozen=True)
class CellLinks:
    """The links of a `Cell`.

    Attributes
    ----------
    downlink, uplink : rates and transfers of the two directions
    delay_s : propagation delay of each client, shape (K,)
    serving : index of the site that serves each client, shape (K,)
    """

    downlink: Channel
    uplink: Channel
    delay_s: FloatArray
    serving: IntArray

    def downlink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the time through the fading blocks plus the propagation delay; the round does not matter."""
        return self.downlink.transfer_s(client, start_s, bits) + self.delay_s[client]

    def uplink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the time through the fading blocks plus the propagation delay; the round does not matter."""
        return self.uplink.transfer_s(client, start_s, bits) + self.delay_s[client]

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return the fluid value ``bits / ergodic rate + delay``: see `Channel.expected_s`."""
        return self.downlink.expected_s(bits) + self.delay_s

    def expected_uplink_s(self, bits: float) -> FloatArray:
        """Return the fluid value ``bits / ergodic rate + delay``: see `Channel.expected_s`."""
        return self.uplink.expected_s(bits) + self.delay_s


@dataclass(frozen=True)
class SharedCellLinks:
    """The links of a cell of which at least one direction is shared.

    Attributes
    ----------
    alone : the links of clients that are alone in the cell
    downlink, uplink : rule of either direction
    """

    alone: CellLinks
    downlink: Rule
    uplink: Rule

    @property
    def shared_downlink(self) -> bool:
        """Whether downlinks are flows."""
        return self.downlink != "dedicated"

    @property
    def shared_uplink(self) -> bool:
        """Whether uplinks are flows."""
        return self.uplink != "dedicated"

    @property
    def serving(self) -> IntArray:
        """Index of the site that serves each client, shape (K,)."""
        return self.alone.serving

    def open(self, env: Environment) -> "CellMedium":
        """Return the cell's spectrum on the clock of one run."""
        return CellMedium(env, self)

    def downlink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return what the transfer takes each client that has the bandwidth to itself."""
        return self.alone.downlink_s(client, round_, start_s, bits)

    def uplink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return what the transfer takes each client that has the bandwidth to itself."""
        return self.alone.uplink_s(client, round_, start_s, bits)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return the expected duration for every client if it has the bandwidth to itself, shape (K,)."""
        return self.alone.expected_downlink_s(bits)

    def expected_uplink_s(self, bits: float) -> FloatArray:
        """Return the expected duration for every client if it has the bandwidth to itself, shape (K,)."""
        return self.alone.expected_uplink_s(bits)
