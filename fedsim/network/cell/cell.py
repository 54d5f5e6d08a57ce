"""A wireless cell: one base station, and in each direction dedicated shares of spectrum or one that clients share.

Streams: ``fading-downlink`` and ``fading-uplink`` by (client, block), separate because the two directions use
different carriers (frequency-division duplex). Path loss and shadowing are common to both.
"""

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray
from fedsim.capabilities import MODEL_BITS, SITES
from fedsim.network.cell.access import ACCESS_LATENCIES, ACCESS_LATENCY, AccessLatency, GrantAccess
from fedsim.network.cell.links import CellLinks
from fedsim.network.contracts import Links
from fedsim.network.medium.cell import SHARINGS, FadingInShares, Sharing, SharingSlot
from fedsim.network.radio.channel import Channel
from fedsim.network.radio.contracts import Fading, PathLoss
from fedsim.network.radio.fading import FADINGS, Rayleigh
from fedsim.network.radio.link_budget import BandwidthHz, CellLink, ClientLink, LinkBudget, NoiseFigureDb, PowerDbm
from fedsim.network.radio.path_loss import PATH_LOSSES, LogDistance
from fedsim.network.radio.shadowing import SHADOWINGS, IndependentShadowing, Shadowing
from fedsim.network.radio.sites import Sites
from fedsim.network.radio.spectral_efficiency import RATES, RateLaw, Shannon
from fedsim.network.transport.transport import TRANSPORT, TRANSPORTS, NoTransport, Transport
from fedsim.per_client import one_number
from fedsim.registry import Component, Slot
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import SPEED_OF_LIGHT_M_PER_S, Bound, Decibels, NonNegative, Seconds


class Downlink(CellLink):
    """Base station to client; besides the rules of `CellLink` two send one message to all clients at once.

    ``"multicast"`` has in each fading block the rate of the receiver that has the lowest rate in that block;
    ``"multicast-rateless"`` always that of the client with the least mean efficiency, as with a rateless code.

    The defaults give a client a tenth of a 10 MHz carrier on which a macro base station radiates 46 dBm, so
    36 dBm, and a phone's noise figure of 9 dB: the usual assumptions of 3GPP's macro cell studies (TR 36.942;
    TR 36.814, annex A.2), with isotropic antennas.

    Attributes
    ----------
    fading_in_shares : ``"drawn"``, the bits of a share are integrated over the client's fading blocks, or ``"mean"``,
        its mean efficiency counts (`fedsim.network.medium.cell`); in the uplink too, and on the radio access of graphs
    """

    sharing: Annotated[Sharing, SharingSlot(SHARINGS, words=("dedicated", "multicast", "multicast-rateless"))] = (
        "dedicated"
    )
    fading_in_shares: FadingInShares = "drawn"
    bandwidth_hz: BandwidthHz = 1e6
    transmit_power_dbm: PowerDbm = 36.0
    noise_figure_db: NoiseFigureDb = 9.0


class Uplink(ClientLink):
    """Client to base station.

    The defaults give a client 1 MHz with all 23 dBm of a phone, and a base station's noise figure of 5 dB (same
    studies). So an uplink has 9 dB less SNR than a downlink.

    Attributes
    ----------
    power_control : ``"full"``, ``"fractional"`` or ``"spread"``: power of a client in its share of a band that clients
        share; fractional also where its band is its own (`fedsim.network.radio.shares.power_control`)
    fading_in_shares : as in the downlink
    """

    sharing: Annotated[Sharing, SharingSlot(SHARINGS)] = "dedicated"
    fading_in_shares: FadingInShares = "drawn"
    bandwidth_hz: BandwidthHz = 1e6
    transmit_power_dbm: PowerDbm = 23.0
    noise_figure_db: NoiseFigureDb = 5.0


class Cell(Component):
    """A cell with dedicated or shared bandwidth, alone or among others.

    The rate of a link in a fading block is ``bandwidth * efficiency(snr * gain)``, where snr follows from power,
    path loss, shadowing, thermal noise and the interference of other sites. A transfer takes the time of its bits
    through the blocks, distance / c, and the waits of its access.

    Attributes
    ----------
    downlink, uplink : tables of the two directions
    path_loss : law of the loss over distance
    shadowing_sigma_db : float or None
        Standard deviation of the log-normal shadowing. None takes that of the path loss (TR 38.901 has one for each
        client), or 8 dB where it has none, the usual assumption for macro cells (3GPP TR 36.814, annex A.2).
    shadowing : joint law of the shadowing of clients and sites
    fading : law of the gain in each coherence time
    delay_spread_s : float
        Root mean square delay spread. With it gains differ over a band, and the rate is the mean over its frequencies
        (`fedsim.network.radio.selectivity`); 0 for flat fading, the same gain at all frequencies. TR 38.901, table
        7.7.3-2, has 363 ns for UMa up to 6 GHz and 39 ns for indoor offices at 2 GHz.
    rate : law of the spectral efficiency
    sites : the sites on the same frequencies; None for the one at the origin alone
    access : waits for a grant, after idle, and on the way to the server; ``none`` for no waits
    transport : what a wide-area path adds to each message; ``none`` for nothing
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})
    provides: ClassVar[frozenset[str]] = frozenset({SITES})

    downlink: Downlink = Downlink()
    uplink: Uplink = Uplink()
    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = LogDistance()
    shadowing_sigma_db: Annotated[Decibels, Field(ge=0, le=50)] | None = None
    shadowing: Annotated[Shadowing, Slot(SHADOWINGS)] = IndependentShadowing()
    fading: Annotated[Fading, Slot(FADINGS)] = Rayleigh()
    delay_spread_s: Annotated[NonNegative[Seconds], Bound(1e-12, 1e-3)] = 0.0
    rate: Annotated[RateLaw, Slot(RATES)] = Shannon()
    sites: Sites | None = None
    access: Annotated[AccessLatency, Slot(ACCESS_LATENCIES)] = GrantAccess()
    transport: Annotated[Transport, Slot(TRANSPORTS)] = NoTransport()

    @model_validator(mode="after")
    def _bandwidths_are_dedicated(self) -> Self:
        for name, link in (("downlink", self.downlink), ("uplink", self.uplink)):
            if not one_number(link.bandwidth_hz) and (link.sharing != "dedicated" or self.delay_spread_s):
                raise ValueError(
                    f"{name}.bandwidth_hz: a value for each client is not allowed where spectrum is shared or with a "
                    "delay_spread_s; allowed: one number for all"
                )
        return self

    def build(self, run: RunSetup) -> Links:
        sites_m = np.zeros((1, 2)) if self.sites is None else self.sites.positions_m()
        radio = LinkBudget(self, sites_m, run.streams, run.clients)
        distance_m, loss_db = radio.losses(run.positions_m)
        serving = np.argmin(loss_db[:, : 1 if self.sites is None else self.sites.serving], axis=1)
        down, up = radio.snrs(loss_db, serving)
        distance_m = distance_m[np.arange(serving.size), serving]
        densest = np.maximum(radio.densest(loss_db, serving), 1.0)
        ways = ("downlink", down, radio.downlink, None), ("uplink", up, radio.uplink, densest)
        downlink, uplink = (
            Channel(
                snr,
                float(np.mean(values.bandwidth_hz)),
                radio.fading,
                f"fading-{name}",
                run.streams,
                radio.rate,
                density,
                delay_spread_s=self.delay_spread_s,
                widths_hz=None if isinstance(values.bandwidth_hz, float) else values.bandwidth_hz,
            )
            for name, snr, values, density in ways
        )
        links = CellLinks(
            downlink,
            uplink,
            distance_m / SPEED_OF_LIGHT_M_PER_S,
            serving,
            (self.downlink.sharing, self.uplink.sharing),
            ACCESS_LATENCY.checked(self.access).delays(),
            run.positions_m,
            distance_m,
            (self.downlink.fading_in_shares, self.uplink.fading_in_shares),
            radio.uplink.power_dbm,
        )
        return TRANSPORT.checked(self.transport).over(links, run.streams)

    def losses(self, positions_m: FloatArray, sites_m: FloatArray, streams: Streams) -> tuple[FloatArray, FloatArray]:
        """Return distances in metres, and path losses with shadowing in dB, of clients and sites: shapes (K, S)."""
        return LinkBudget(self, sites_m, streams, len(positions_m)).losses(positions_m)
