"""A wireless cell: one base station, and in each direction dedicated shares of spectrum or one that clients share.

Streams: ``fading-downlink`` and ``fading-uplink`` by (client, block), separate because the two directions use
different carriers (frequency-division duplex); ``shadowing`` by client, common to both.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat

from fedsim.errors import ScenarioError
from fedsim.network.base import Fading, FloatArray, IntArray, Links, PathLoss
from fedsim.network.channel import Channel, mean_snr
from fedsim.network.fading import FADINGS, Rayleigh
from fedsim.network.propagation import PATH_LOSSES, LogDistance, shadowing_db
from fedsim.parts import Part, Settings, Slot
from fedsim.streams import Streams
from fedsim.units import SPEED_OF_LIGHT_M_PER_S

PowerDbm = Annotated[float, Field(ge=-100, le=100)]
NoiseFigureDb = Annotated[float, Field(ge=0, le=50)]
Sharing = Literal["dedicated", "equal", "proportional-fair", "first-come", "minimum-makespan"]


class CellLink(Settings):
    """One direction of a cell.

    Attributes
    ----------
    sharing : whose the bandwidth is; `fedsim.network.shared_cell` says what each rule means
        ``"dedicated"``: each client's own, however many take part. Else it is the whole cell's in this direction,
        shared by those who transfer: ``"equal"``, ``"proportional-fair"``, ``"first-come"``, ``"minimum-makespan"``
    bandwidth_hz : each client's dedicated share, or the whole cell's where it is shared
    power_dbm : power radiated within that bandwidth, antenna gains of both ends included
    noise_figure_db : of the receiver
    """

    bandwidth_hz: PositiveFloat
    power_dbm: PowerDbm
    noise_figure_db: NoiseFigureDb


class Downlink(CellLink):
    """Base station to client; besides the rules of `CellLink` there is ``"multicast"``, one message for all at once.

    The defaults give a client a tenth of a 10 MHz carrier on which a macro base station radiates 46 dBm, so
    36 dBm, and a phone's noise figure of 9 dB: the usual assumptions of 3GPP's macro cell studies (TR 36.942;
    TR 36.814, annex A.2).
    """

    sharing: Sharing | Literal["multicast"] = "dedicated"
    bandwidth_hz: PositiveFloat = 1e6
    power_dbm: PowerDbm = 36.0
    noise_figure_db: NoiseFigureDb = 9.0


class Uplink(CellLink):
    """Client to base station.

    The defaults give a client 1 MHz into which a phone puts all of its 23 dBm, and a base station's noise
    figure of 5 dB (same studies). So an uplink has 9 dB less SNR than a downlink.
    """

    sharing: Sharing = "dedicated"
    bandwidth_hz: PositiveFloat = 1e6
    power_dbm: PowerDbm = 23.0
    noise_figure_db: NoiseFigureDb = 5.0


class Cell(Part):
    """A cell without interference, with dedicated or shared bandwidth.

    The rate of a link in a fading block is ``bandwidth * log2(1 + snr * gain / gap)``, where snr follows from power,
    path loss, shadowing and thermal noise. A transfer takes the time to push its bits through the blocks, and
    distance / c on top.

    Attributes
    ----------
    downlink, uplink : tables of the two directions
    path_loss : law of the loss over distance
    shadowing_sigma_db : float
        Standard deviation of the log-normal shadowing, drawn once per client; 8 dB is the usual assumption
        for macro cells (3GPP TR 36.814, annex A.2).
    fading : law of the gain in each coherence time
    snr_gap_db : float
        Loss of SNR against Shannon's limit; 3 dB is typical of coded transmission with some margin.
    """

    uses_bits: ClassVar[bool] = True
    uses_positions: ClassVar[bool] = True

    downlink: Downlink = Downlink()
    uplink: Uplink = Uplink()
    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = LogDistance()
    shadowing_sigma_db: Annotated[float, Field(ge=0, le=50)] = 8.0
    fading: Annotated[Fading, Slot(FADINGS)] = Rayleigh()
    snr_gap_db: Annotated[NonNegativeFloat, Field(le=50)] = 3.0

    def build(self, positions_m: FloatArray, streams: Streams) -> Links:
        """Return the links of one run: `CellLinks`, or around them `SharedCellLinks` if a direction is shared.

        Raises
        ------
        ScenarioError
            If the path loss at some client's distance is no finite number.
        """
        distance_m = np.hypot(positions_m[:, 0], positions_m[:, 1])
        loss_db = self.path_loss.loss_db(distance_m) + shadowing_db(self.shadowing_sigma_db, distance_m.size, streams)
        if not np.all(np.isfinite(loss_db)):
            worst = distance_m[~np.isfinite(loss_db)][0]
            raise ScenarioError(f"path_loss: no finite loss at a distance of {worst} m; it must be a number")
        links = CellLinks(
            self._channel(self.downlink, "fading-downlink", loss_db, streams),
            self._channel(self.uplink, "fading-uplink", loss_db, streams),
            distance_m / SPEED_OF_LIGHT_M_PER_S,
        )
        if self.downlink.sharing == self.uplink.sharing == "dedicated":
            return links
        from fedsim.network.shared_cell import SharedCellLinks  # it stands on this module

        return SharedCellLinks(links, self.downlink.sharing, self.uplink.sharing)

    def _channel(self, link: CellLink, stream: str, loss_db: FloatArray, streams: Streams) -> Channel:
        snr = mean_snr(link.power_dbm, loss_db, link.bandwidth_hz, link.noise_figure_db, self.snr_gap_db)
        return Channel(snr, link.bandwidth_hz, self.fading, stream, streams)


@dataclass(frozen=True)
class CellLinks:
    """The links of a `Cell`; `delay_s` is the propagation delay of each client, shape (K,)."""

    downlink: Channel
    uplink: Channel
    delay_s: FloatArray

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
