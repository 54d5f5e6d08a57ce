"""The access links between clients and the base stations of a graph: constant, or by radio."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, Self

import numpy as np
from pydantic import model_validator

from fedsim.answers import Contract, Flag, Given, Number, PartOf
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.network.cell.cell import Cell
from fedsim.network.graph.fading import AccessFading, FadingLaw, WayFading
from fedsim.network.radio.fading import NoFading
from fedsim.network.radio.link_budget import LinkBudget
from fedsim.network.topology.coverage import COVERAGE, Coverage
from fedsim.per_client import ClientValues, PerClient, Values, at, values_of
from fedsim.registry import Component, Registry, Slot
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import (
    BITS_PER_SECOND,
    Bound,
    Decibels,
    Exponent,
    Metres,
    NonNegative,
    Positive,
    Seconds,
    db_to_linear,
)

ACCESSES = Registry(
    "access",
    "fedsim.accesses",
    ("build",),
    {
        "constant": "fedsim.network.graph.access:ConstantAccess",
        "radio": "fedsim.network.graph.access:RadioAccess",
    },
    default="constant",
    attributes=("delay_s", "shares_airtime"),
)

CELLS = Registry(
    "cell",
    "fedsim.cells",
    ("build", "losses"),
    {
        "cell": "fedsim.network.cell.cell:Cell",
        "urban-macro": "fedsim.network.cell.presets:UrbanMacroCell",
        "indoor-office": "fedsim.network.cell.presets:IndoorOfficeCell",
        "wifi": "fedsim.network.cell.presets:WifiCell",
        "nb-iot": "fedsim.network.cell.presets:NarrowbandCell",
        "5g-midband": "fedsim.network.cell.presets:MidbandCell",
    },
    default="cell",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class AccessRun(RunSetup):
    """What an access may read of its run.

    Attributes
    ----------
    sites_m : positions of the stations in metres, shape (b, 2)
    moves : whether clients move; ``positions_m`` are those at time 0
    """

    sites_m: FloatArray
    moves: bool


class Access(Protocol):
    """A scenario's access to base stations: settings that build the coverage of one run.

    Attributes
    ----------
    delay_s : propagation delay between a client and its station
    shares_airtime : whether the clients of a station share its time in each direction, each at its own rate
    """

    @property
    def delay_s(self) -> float:
        """Propagation delay in seconds."""
        ...

    @property
    def shares_airtime(self) -> bool:
        """Whether the clients of a station share its time."""
        ...

    def build(self, run: AccessRun) -> Coverage:
        """Return the coverage of one run.

        Parameters
        ----------
        run : what a part may read of its run
        """
        ...


def _coverage(answer: object, given: Given) -> Any:
    return PartOf(object, COVERAGE)(answer, {"sites_m": given["run"].sites_m})


ACCESS: Final = Contract(
    "access",
    Access,
    {"delay_s": Number(least=0), "shares_airtime": Flag(), "build": _coverage},
)


class ConstantAccess(Component):
    """Links of a capacity that does not depend on the place; the nearest station is the strongest.

    Attributes
    ----------
    downlink_bps, uplink_bps : capacities of the two directions; one for all, or a value for each client
    delay_s : propagation delay
    exponent : signals fall by ``10 * exponent`` dB per decade of distance, which is what the hysteresis of handovers
        refers to; 3.76 is that of urban macro cells (`LogDistance`)
    reach_m : greatest distance of a station for a client whose own is lost; any distance if left out
    """

    shares_airtime: ClassVar[bool] = False

    downlink_bps: Annotated[ClientValues, PerClient(gt=0), BITS_PER_SECOND]
    uplink_bps: Annotated[ClientValues, PerClient(gt=0), BITS_PER_SECOND]
    delay_s: NonNegative[Seconds]
    exponent: Positive[Exponent] = 3.76
    reach_m: Positive[Metres] | None = None

    def build(self, run: AccessRun) -> "ConstantCoverage":
        down_bps, up_bps = (
            values_of(self, name, run.clients, run.streams, "network.access") for name in ("downlink_bps", "uplink_bps")
        )
        return ConstantCoverage(self, run.sites_m, down_bps, up_bps)


@dataclass(frozen=True)
class ConstantCoverage:
    step_m: ClassVar[float] = math.inf

    settings: ConstantAccess
    sites_m: FloatArray
    downlink_bps: Values
    uplink_bps: Values

    def view(self, client: IntArray, places_m: FloatArray) -> "ConstantView":
        apart = places_m[:, None, :] - self.sites_m
        rates_bps = np.empty((client.size, 2))
        rates_bps[:, 0], rates_bps[:, 1] = at(self.downlink_bps, client), at(self.uplink_bps, client)
        return ConstantView(self.settings, np.asarray(np.hypot(apart[..., 0], apart[..., 1])), rates_bps)


@dataclass(frozen=True)
class ConstantView:
    """Signals of shape (n, b) by distance, and rates in bit/s of shape (n, 2)."""

    settings: ConstantAccess
    distance_m: FloatArray
    constant_bps: FloatArray

    @property
    def signal_db(self) -> FloatArray:
        return -10 * self.settings.exponent * np.log10(np.maximum(self.distance_m, 1e-3))

    def in_reach(self) -> BoolArray:
        reach_m = self.settings.reach_m
        return np.asarray(self.distance_m <= (math.inf if reach_m is None else reach_m))

    def rates_bps(self, station: IntArray) -> FloatArray:
        return self.constant_bps


class RadioAccess(Component):
    """Links with a cell's radio, between clients and base stations at their positions.

    The strongest station is the one with the least path loss and shadowing. A link's capacity follows the fading of its
    client block by block (`fedsim.network.graph.fading`), or is its mean over fading in a direction of the cell that
    has ``fading_in_shares = "mean"``. The draws of a client that moves stay the same towards each station: it has a
    line of sight where the probability at its distance is above a number of its own, independent shadowing stays, and
    correlated shadowing follows the place.

    Attributes
    ----------
    cell : table like that of the networks ``cell``, ``urban-macro`` and so on
        The base stations of the graph take the place of its sites: of `sites` count the load, with which other
        stations disturb a downlink, and the grid of neighbours and the back-off in the uplink.
    spectrum : ``"dedicated"``, each client with the bandwidth of the cell to itself, or ``"shared"``
        Shared, the clients of a station share its time in each direction: a transfer of mean rate r over a link of mean
        capacity C takes ``r / C`` of it, the mean rates are max-min fair, and time that is left is divided in the same
        proportion. Within a fading block a transfer has its part of the time at the rate of the block.
    delay_s : propagation delay, processing included
    step_m : distance that a client moves before the rates of its links are updated
    least_snr_db : least SNR of the downlink of another station for a client whose own is lost; -6 dB
        is about where a phone counts a cell as in sync (TS 38.133, clause 8.1)
    """

    cell: Annotated[Cell, Slot(CELLS)] = Cell()
    spectrum: Literal["dedicated", "shared"] = "dedicated"
    delay_s: NonNegative[Seconds]
    step_m: Annotated[Positive[Metres], Bound(1e-2, 1e9)] = 5.0
    least_snr_db: Decibels = -6.0

    @property
    def shares_airtime(self) -> bool:
        return self.spectrum == "shared"

    @model_validator(mode="after")
    def _sharing_is_the_graphs(self) -> Self:
        for name, link in (("downlink", self.cell.downlink), ("uplink", self.cell.uplink)):
            if link.sharing != "dedicated":
                raise ValueError(
                    f"cell.{name}.sharing = {link.sharing!r} is not allowed in a graph, whose flows share max-min "
                    "fairly; it must be 'dedicated', with spectrum = 'shared' for spectrum that clients share"
                )
            if not link.alike:
                raise ValueError(
                    f"cell.{name}: a value of transmit_power_dbm or bandwidth_hz for each client is not allowed in a "
                    "graph; allowed: one number for all"
                )
        return self

    def build(self, run: AccessRun) -> "RadioCoverage":
        places_m = None if run.moves else run.positions_m
        return RadioCoverage(self, LinkBudget(self.cell, run.sites_m, run.streams), places_m, run.streams)


class RadioCoverage:
    def __init__(self, settings: RadioAccess, radio: LinkBudget, places_m: FloatArray | None, streams: Streams) -> None:
        self.step_m = settings.step_m
        self._settings, self._streams = settings, streams
        self._least_snr, self._radio = float(db_to_linear(settings.least_snr_db)), radio
        self._standing_db = None if places_m is None else radio.losses(places_m)[1]

    @property
    def uplink_hz(self) -> float:
        return float(np.mean(self._radio.uplink.bandwidth_hz))

    def view(self, client: IntArray, places_m: FloatArray) -> "RadioView":
        standing_db = self._standing_db
        loss_db = self._radio.losses(places_m, client)[1] if standing_db is None else standing_db[client]
        return RadioView(self._radio, loss_db, self._least_snr)

    def channels(
        self, access: Sequence[tuple[int, int]], rates_bps: FloatArray, snr: FloatArray
    ) -> AccessFading | None:
        """Return the fading of access links from mean rates and SNRs of shape (2, K); None where means count."""
        cell, radio = self._settings.cell, self._radio
        if isinstance(radio.fading, NoFading):
            return None
        ways = (
            ("fading-downlink", cell.downlink.fading_in_shares, radio.downlink),
            ("fading-uplink", cell.uplink.fading_in_shares, radio.uplink),
        )
        law = FadingLaw(radio.rate, radio.fading, cell.delay_spread_s, self._streams)
        drawn = [
            WayFading(law, stream, float(np.mean(values.bandwidth_hz)), rates_bps[way], snr[way])
            if read == "drawn"
            else None
            for way, (stream, read, values) in enumerate(ways)
        ]
        return AccessFading(law, access, (drawn[0], drawn[1])) if any(drawn) else None


@dataclass(frozen=True)
class RadioView:
    """The signals and rates of `RadioCoverage` at losses in dB, shadowing included, of shape (n, b)."""

    radio: LinkBudget
    loss_db: FloatArray
    least_snr: float

    @property
    def signal_db(self) -> FloatArray:
        return -self.loss_db

    def in_reach(self) -> BoolArray:
        places, stations = self.loss_db.shape
        every = np.tile(np.arange(stations), places)
        down, _ = self.radio.snrs(np.repeat(self.loss_db, stations, axis=0), every)
        return np.asarray(down.reshape(places, stations) >= self.least_snr)

    def snrs(self, station: IntArray) -> FloatArray:
        return np.column_stack(self.radio.snrs(self.loss_db, station))

    def rates_bps(self, station: IntArray) -> FloatArray:
        efficiency = self.radio.effective.efficiency
        down, up = self.snrs(station).T
        return np.column_stack(
            [self.radio.downlink.bandwidth_hz * efficiency(down), self.radio.uplink.bandwidth_hz * efficiency(up)]
        )
