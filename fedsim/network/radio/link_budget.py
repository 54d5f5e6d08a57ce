"""Link budgets: losses between clients and sites, and the SNR of every link with interference."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Final, Protocol, Self

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import PartError, ScenarioError
from fedsim.inputs.bounds import check_pairs
from fedsim.network.radio.channel import mean_snr
from fedsim.network.radio.contracts import FADING, PATH_LOSS, Fading, LargeScale, PathLoss, RandomPathLoss
from fedsim.network.radio.interference import CommonInterference, EffectiveSnr, interference_states
from fedsim.network.radio.shadowing import SHADOWING, BuildingShadowing, Shadowing
from fedsim.network.radio.shares.power_control import POWER_CONTROL, POWER_CONTROLS, FullPower, PowerControl
from fedsim.network.radio.sites import Sites
from fedsim.network.radio.spectral_efficiency import RATE_LAW, RateLaw
from fedsim.per_client import ClientValues, PerClient, Values, one_number, values_of
from fedsim.registry import Settings, Slot
from fedsim.streams import Streams
from fedsim.units import DECIBELS, HERTZ, Decibels, db_to_linear, thermal_noise_dbm

_USUAL_SIGMA_DB: Final = 8.0


PowerDbm = Annotated[ClientValues, PerClient(ge=-100, le=100), DECIBELS]
BandwidthHz = Annotated[ClientValues, PerClient(gt=0), HERTZ]
AntennaGainDbi = Annotated[Decibels, Field(ge=-50, le=100)]
NoiseFigureDb = Annotated[Decibels, Field(ge=0, le=50)]


class CellLink(Settings):
    """One direction of a cell.

    Attributes
    ----------
    sharing : rule by which clients share the bandwidth; `fedsim.network.medium.cell` describes each
        ``"dedicated"``: a bandwidth of its own for each client, however many there are. Otherwise the bandwidth is the
        whole cell's in this direction, shared by the transfers in progress: ``"equal"``, ``"proportional-fair"``,
        ``"max-relative-snr"``, ``"first-come"``, ``"minimum-makespan"`` or a discipline of your own
    bandwidth_hz : each client's dedicated share, or the whole cell's where it is shared
        A share may have a value for each client (`fedsim.per_client`).
    transmit_power_dbm : power that the sender feeds into its antenna within that bandwidth; or a value for each client
    transmit_gain_dbi, receive_gain_dbi : gains of the two antennas towards each other; 0 for isotropic ones
    noise_figure_db : of the receiver

    Examples
    --------
    >>> from fedsim.network import Cell
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> plain, horn = (Cell(uplink={"transmit_gain_dbi": gain_dbi}) for gain_dbi in (0.0, 10.0))
    >>> place_m = np.array([[200.0, 0.0]])
    >>> snr = [cell.build(RunSetup.at(place_m, Streams(0))).describe().snr[1, 0] for cell in (plain, horn)]
    >>> round(float(snr[1] / snr[0]), 6)
    10.0
    """

    bandwidth_hz: BandwidthHz
    transmit_power_dbm: PowerDbm
    transmit_gain_dbi: AntennaGainDbi = 0.0
    receive_gain_dbi: AntennaGainDbi = 0.0
    noise_figure_db: NoiseFigureDb

    @property
    def gains_dbi(self) -> float:
        return self.transmit_gain_dbi + self.receive_gain_dbi

    @property
    def alike(self) -> bool:
        """Whether all clients have the same power and bandwidth."""
        return one_number(self.transmit_power_dbm) and one_number(self.bandwidth_hz)


class ClientLink(CellLink):
    """A direction in which clients send.

    Attributes
    ----------
    power_control : power of a client in its share of the band
    """

    power_control: Annotated[PowerControl, Slot(POWER_CONTROLS)] = FullPower()


class RadioSettings(Protocol):
    """The options of a cell's radio; `fedsim.network.cell.cell.Cell` describes each."""

    @property
    def downlink(self) -> CellLink: ...

    @property
    def uplink(self) -> ClientLink: ...

    @property
    def path_loss(self) -> PathLoss: ...

    @property
    def shadowing_sigma_db(self) -> float | None: ...

    @property
    def shadowing(self) -> Shadowing: ...

    @property
    def fading(self) -> Fading: ...

    @property
    def rate(self) -> RateLaw: ...

    @property
    def sites(self) -> Sites | None: ...


@dataclass(frozen=True)
class LinkValues:
    """Power and bandwidth of one direction in a run: a number for all clients, or one for each, shape (K,)."""

    power_dbm: Values
    bandwidth_hz: Values

    @classmethod
    def of(cls, link: CellLink, name: str, clients: int, streams: Streams) -> Self:
        path = f"network.{name}"
        power_dbm = values_of(link, "transmit_power_dbm", clients, streams, path)
        return cls(power_dbm, values_of(link, "bandwidth_hz", clients, streams, path))


class LinkBudget:
    """The radio of a cell among sites at given places."""

    def __init__(self, cell: RadioSettings, sites_m: FloatArray, streams: Streams, clients: int = 0) -> None:
        self.downlink = LinkValues.of(cell.downlink, "downlink", clients, streams)
        self.uplink = LinkValues.of(cell.uplink, "uplink", clients, streams)
        self.cell, self.sites_m, self._streams = cell, sites_m, streams
        self.fading, self.rate = FADING.checked(cell.fading), RATE_LAW.checked(cell.rate)
        self._shadowing, self._path_loss = SHADOWING.checked(cell.shadowing), PATH_LOSS.checked(cell.path_loss)
        self._power_control = POWER_CONTROL.checked(cell.uplink.power_control)
        self._random_path_loss = self._path_loss if isinstance(self._path_loss, RandomPathLoss) else None
        self._building_shadowing = self._shadowing if isinstance(self._shadowing, BuildingShadowing) else None

    def losses(self, positions_m: FloatArray, client: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return distances in metres, and path losses with shadowing in dB, of clients and sites: shapes (n, S)."""
        check_pairs(len(positions_m), len(self.sites_m), ScenarioError)
        apart = positions_m[:, None, :] - self.sites_m
        distance = np.hypot(apart[..., 0], apart[..., 1])
        drawn = self._all_towards(distance) if client is None else self._named_towards(distance, client)
        loss = drawn.loss_db
        if not np.all(np.isfinite(loss)):
            worst = distance[~np.isfinite(loss)][0]
            raise ScenarioError(f"path_loss: no finite loss at a distance of {worst} m; it must be a number")
        named = () if client is None else (client,)
        place = positions_m, len(self.sites_m), self._streams
        if self._building_shadowing is not None and drawn.indoor is not None:
            # Whether a client is in a building is the same towards every site.
            standard = self._building_shadowing.standard_in_buildings(*place, drawn.indoor[:, 0], *named)
        else:
            standard = self._shadowing.standard(*place, *named)
        return distance, loss + drawn.sigma_db * standard

    def snrs(self, loss_db: FloatArray, serving: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the linear SNR of clients' downlinks and uplinks, interference included (`EffectiveSnr`)."""
        own = np.arange(serving.size), serving
        received = _snr(self.cell.downlink, self.downlink, loss_db)
        up = _snr(self.cell.uplink, self.uplink, loss_db[own])
        up *= np.minimum(self.densest(loss_db, serving), 1.0)
        down = received[own]
        sites = self.cell.sites
        if sites is None or not sites.load:
            return down, up
        if len(self.sites_m) > 1:
            received[own] = 0.0
            down = self.effective.of_each(down, received, self._states)
        return down, up if self._uplink is None else self._uplink.snr(up)

    def densest(self, loss_db: FloatArray, serving: IntArray) -> FloatArray:
        link, own_db = self.cell.uplink, loss_db[np.arange(serving.size), serving]
        coupling_db = own_db - link.transmit_gain_dbi - link.receive_gain_dbi
        return self._power_control.densest(coupling_db, self.uplink.power_dbm, self.uplink.bandwidth_hz)

    @cached_property
    def effective(self) -> EffectiveSnr:
        """Effective SNRs under the cell's rate law, and the mean efficiency at an SNR."""
        return EffectiveSnr(self.rate, self.fading)

    @cached_property
    def _states(self) -> FloatArray:
        load = 0.0 if self.cell.sites is None else self.cell.sites.load
        return interference_states(len(self.sites_m), load, self.fading)

    @cached_property
    def _uplink(self) -> CommonInterference | None:
        """Interference of clients of other cells, equal for all uplinks; None without other cells."""
        sites, link = self.cell.sites, self.cell.uplink
        if sites is None or not sites.rings:
            return None

        def towards(distance_m: FloatArray, site: int) -> tuple[FloatArray, FloatArray]:
            # Clients of other cells are part of the model, so that no random stream of the run draws them.
            drawn = self._towards(distance_m, site, Streams(0))
            return drawn.loss_db, drawn.sigma_db

        power_dbm, hertz = (float(np.mean(values)) for values in (self.uplink.power_dbm, self.uplink.bandwidth_hz))
        received_mw = sites.uplink_states_mw(power_dbm + link.gains_dbi, towards, self.fading)
        noise_mw = float(db_to_linear(thermal_noise_dbm(hertz, link.noise_figure_db)))
        return CommonInterference(self.effective, received_mw / noise_mw)

    def _all_towards(self, distance_m: FloatArray) -> LargeScale:
        try:
            towards = [self._towards(distance_m[:, site], site, self._streams) for site in range(len(self.sites_m))]
        except PartError as error:
            error.name_clients(range(len(distance_m)))
            raise
        indoor = [each.indoor for each in towards if each.indoor is not None]
        return LargeScale(
            np.column_stack([each.loss_db for each in towards]),
            np.column_stack([each.sigma_db for each in towards]),
            np.column_stack([each.los for each in towards]),
            np.column_stack(indoor) if len(indoor) == len(towards) else None,
        )

    def _named_towards(self, distance_m: FloatArray, client: IntArray) -> LargeScale:
        """Return the same for clients by their ids, with all sites in one call: clients are few, and calls many."""
        sites = np.tile(np.arange(len(self.sites_m)), client.size)
        ids = np.repeat(client, len(self.sites_m))
        drawn, shape = self._towards(distance_m.ravel(), sites, self._streams, ids), distance_m.shape
        return LargeScale(
            drawn.loss_db.reshape(shape),
            drawn.sigma_db.reshape(shape),
            drawn.los.reshape(shape),
            None if drawn.indoor is None else drawn.indoor.reshape(shape),
        )

    def _towards(self, distance_m: FloatArray, site: int | IntArray, streams: Streams, *named: IntArray) -> LargeScale:
        if self._random_path_loss is not None:
            drawn = self._random_path_loss.draw(distance_m, site, streams, *named)
        else:
            sigma_db = np.full_like(distance_m, _USUAL_SIGMA_DB)
            sight = np.zeros(distance_m.shape, dtype=np.bool_)
            drawn = LargeScale(self._path_loss.loss_db(distance_m), sigma_db, sight)
        sigma = self.cell.shadowing_sigma_db
        return drawn if sigma is None else replace(drawn, sigma_db=np.full_like(distance_m, sigma))


def _snr(link: CellLink, values: LinkValues, loss_db: FloatArray) -> FloatArray:
    power_dbm, hertz = (
        value if isinstance(value, float) or loss_db.ndim == 1 else value[:, None]
        for value in (values.power_dbm, values.bandwidth_hz)
    )
    return mean_snr(power_dbm + link.gains_dbi, loss_db, hertz, link.noise_figure_db)
