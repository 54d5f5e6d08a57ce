"""Link budgets: losses between clients and sites, and the SNR of every link with interference."""

from functools import cached_property
from typing import Annotated, Final, Protocol

import numpy as np
from pydantic import Field, PositiveFloat

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import PartError, ScenarioError
from fedsim.inputs.bounds import check_pairs
from fedsim.network.radio.channel import mean_snr
from fedsim.network.radio.contracts import FADING, PATH_LOSS, Fading, PathLoss, RandomPathLoss
from fedsim.network.radio.interference import CommonInterference, EffectiveSnr, interference_states
from fedsim.network.radio.shadowing import SHADOWING, Shadowing
from fedsim.network.radio.sites import Sites
from fedsim.network.radio.spectral_efficiency import RATE_LAW, RateLaw
from fedsim.registry import Settings
from fedsim.streams import Streams
from fedsim.units import db_to_linear, thermal_noise_dbm

_USUAL_SIGMA_DB: Final = 8.0


PowerDbm = Annotated[float, Field(ge=-100, le=100)]
NoiseFigureDb = Annotated[float, Field(ge=0, le=50)]


class CellLink(Settings):
    """One direction of a cell.

    Attributes
    ----------
    sharing : rule by which clients share the bandwidth; `fedsim.network.medium.cell` describes each
        ``"dedicated"``: a bandwidth of its own for each client, however many there are. Otherwise the bandwidth is the
        whole cell's in this direction, shared by the transfers in progress: ``"equal"``, ``"proportional-fair"``,
        ``"first-come"``, ``"minimum-makespan"`` or a discipline of your own
    bandwidth_hz : each client's dedicated share, or the whole cell's where it is shared
    power_dbm : power radiated within that bandwidth, antenna gains of both ends included
    noise_figure_db : of the receiver
    """

    bandwidth_hz: PositiveFloat
    power_dbm: PowerDbm
    noise_figure_db: NoiseFigureDb


class RadioSettings(Protocol):
    """The options of a cell's radio; `fedsim.network.cell.cell.Cell` describes each."""

    @property
    def downlink(self) -> CellLink:
        """Base station to client."""
        ...

    @property
    def uplink(self) -> CellLink:
        """Client to base station."""
        ...

    @property
    def path_loss(self) -> PathLoss:
        """Law of the loss over distance."""
        ...

    @property
    def shadowing_sigma_db(self) -> float | None:
        """Standard deviation of the shadowing; None for that of the path loss."""
        ...

    @property
    def shadowing(self) -> Shadowing:
        """Law of the shadowing of clients and sites."""
        ...

    @property
    def fading(self) -> Fading:
        """Law of the gain in each coherence time."""
        ...

    @property
    def rate(self) -> RateLaw:
        """Spectral efficiency at an SNR."""
        ...

    @property
    def sites(self) -> Sites | None:
        """The sites on the same frequencies; None where there is one site."""
        ...


class LinkBudget:
    """The radio of a cell among sites at given places.

    Parameters
    ----------
    cell : powers, bandwidths and laws; of its `sites` the load and the options of the neighbours' uplinks
    sites_m : positions of the sites in metres, shape (S, 2)
    streams : random streams of the run

    Attributes
    ----------
    fading, rate : laws of the cell; a user's own is checked
    """

    def __init__(self, cell: RadioSettings, sites_m: FloatArray, streams: Streams) -> None:
        self.cell, self.sites_m, self._streams = cell, sites_m, streams
        self.fading, self.rate = FADING.checked(cell.fading), RATE_LAW.checked(cell.rate)
        self._shadowing, self._path_loss = SHADOWING.checked(cell.shadowing), PATH_LOSS.checked(cell.path_loss)
        self._random_path_loss = self._path_loss if isinstance(self._path_loss, RandomPathLoss) else None

    def losses(self, positions_m: FloatArray, client: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the distance in metres and the path loss with shadowing in dB of clients and sites, (n, S).

        Parameters
        ----------
        positions_m : of the clients in metres, shape (n, 2)
        client : ids of the clients at these positions, shape (n,); 0..n-1 if not given

        Raises
        ------
        ScenarioError
            If a path loss is no finite number, or there are too many clients and sites.
        """
        check_pairs(len(positions_m), len(self.sites_m), ScenarioError)
        apart = positions_m[:, None, :] - self.sites_m
        distance = np.hypot(apart[..., 0], apart[..., 1])
        loss, sigma = self._all_towards(distance) if client is None else self._named_towards(distance, client)
        if not np.all(np.isfinite(loss)):
            worst = distance[~np.isfinite(loss)][0]
            raise ScenarioError(f"path_loss: no finite loss at a distance of {worst} m; it must be a number")
        named = () if client is None else (client,)
        standard = self._shadowing.standard(positions_m, len(self.sites_m), self._streams, *named)
        return distance, loss + sigma * standard

    def snrs(self, loss_db: FloatArray, serving: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the linear SNR of clients' downlinks and uplinks, interference included (`EffectiveSnr`).

        Parameters
        ----------
        loss_db : path loss and shadowing towards every site in dB, shape (n, S)
        serving : the site that serves each client, shape (n,)
        """
        own = np.arange(serving.size), serving
        received, up = _snr(self.cell.downlink, loss_db), _snr(self.cell.uplink, loss_db[own])
        down = received[own]
        sites = self.cell.sites
        if sites is None or not sites.load:
            return down, up
        if len(self.sites_m) > 1:
            received[own] = 0.0
            down = self.effective.of_each(down, received, self._states)
        return down, up if self._uplink is None else self._uplink.snr(up)

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
            return self._towards(distance_m, site, Streams(0))

        received_mw = sites.uplink_states_mw(link.power_dbm, towards, self.fading)
        return CommonInterference(self.effective, received_mw / _noise_mw(link))

    def _all_towards(self, distance_m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return path loss and deviation of the shadowing in dB of the clients 0..n-1 towards every site, (n, S)."""
        try:
            towards = [self._towards(distance_m[:, site], site, self._streams) for site in range(len(self.sites_m))]
        except PartError as error:
            error.name_clients(range(len(distance_m)))
            raise
        losses, sigmas = zip(*towards, strict=True)
        return np.column_stack(losses), np.column_stack(sigmas)

    def _named_towards(self, distance_m: FloatArray, client: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for clients by their ids, all sites in one call: clients are few, and calls many."""
        sites = np.tile(np.arange(len(self.sites_m)), client.size)
        ids = np.repeat(client, len(self.sites_m))
        loss, sigma = self._towards(distance_m.ravel(), sites, self._streams, ids)
        return loss.reshape(distance_m.shape), sigma.reshape(distance_m.shape)

    def _towards(
        self, distance_m: FloatArray, site: int | IntArray, streams: Streams, *named: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        sigma = self.cell.shadowing_sigma_db
        if self._random_path_loss is not None:
            drawn = self._random_path_loss.draw(distance_m, site, streams, *named)
            loss, sigma_db = drawn.loss_db, drawn.sigma_db
        else:
            loss, sigma_db = self._path_loss.loss_db(distance_m), np.full_like(distance_m, _USUAL_SIGMA_DB)
        return loss, sigma_db if sigma is None else np.full_like(distance_m, sigma)


def _noise_mw(link: CellLink) -> float:
    return float(db_to_linear(thermal_noise_dbm(link.bandwidth_hz, link.noise_figure_db)))


def _snr(link: CellLink, loss_db: FloatArray) -> FloatArray:
    return mean_snr(link.power_dbm, loss_db, link.bandwidth_hz, link.noise_figure_db)
