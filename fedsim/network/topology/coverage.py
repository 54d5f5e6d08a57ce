"""The contract of coverage: the signals and rates that base stations offer at a place."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from fedsim.answers import Contract, Mask, Number, Numbers, PartOf, shaped
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.network.topology.faded_links import LinkFading


class View(Protocol):
    """The offers of the b stations of one run to clients at n places: a function of clients and places alone.

    Attributes
    ----------
    signal_db : strength of each station, on any scale in dB, shape (n, b)
    """

    @property
    def signal_db(self) -> FloatArray:
        """Strength of each station in dB, shape (n, b)."""
        ...

    def in_reach(self) -> BoolArray:
        """Return whether a client whose station is lost can change to each of them, shape (n, b)."""
        ...

    def rates_bps(self, station: IntArray) -> FloatArray:
        """Return the capacities of the downlink and the uplink at each place in bit/s, shape (n, 2).

        Parameters
        ----------
        station : number of the station of each place, shape (n,)
        """
        ...


class Coverage(Protocol):
    """The stations of one run.

    Attributes
    ----------
    step_m : distance that a client moves before its rates are updated; `inf` where they depend on no place
    """

    @property
    def step_m(self) -> float:
        """Distance that a client moves at the same rates, in metres."""
        ...

    def view(self, client: IntArray, places_m: FloatArray) -> View:
        """Return the offers of the stations to clients at places.

        Parameters
        ----------
        client : ids, shape (n,)
        places_m : of the clients in metres, shape (n, 2)
        """
        ...


@runtime_checkable
class FadedView(View, Protocol):
    def snrs(self, station: IntArray) -> FloatArray:
        """Return the linear mean SNRs of the downlink and the uplink at each place, shape (n, 2)."""
        ...


class Offer(NamedTuple):
    """What a station offers to a client at a place."""

    rates_bps: tuple[float, float]
    snr: tuple[float, float] | None = None


def offers(view: View, station: IntArray, rows: Sequence[int] | None = None) -> list[Offer]:
    chosen = slice(None) if rows is None else rows
    rates_bps: list[tuple[float, float]] = view.rates_bps(station)[chosen].tolist()
    if not isinstance(view, FadedView):
        return [Offer(rates) for rates in rates_bps]
    return [Offer(*both) for both in zip(rates_bps, view.snrs(station)[chosen].tolist(), strict=True)]


class AccessChannels(LinkFading, Protocol):
    """Fading access links of clients that may change their station."""

    def join(self, client: int, offer: Offer) -> bool:
        """Let a client's links be what a station offers; return whether their fading changes."""
        ...


@runtime_checkable
class FadedCoverage(Coverage, Protocol):
    @property
    def uplink_hz(self) -> float: ...

    def channels(
        self, access: Sequence[tuple[int, int]], rates_bps: FloatArray, snr: FloatArray
    ) -> AccessChannels | None:
        """Return the fading of the clients' access links in one run; None where mean rates count."""
        ...


VIEW: Final = Contract(
    "view of stations",
    View,
    {
        "signal_db": Numbers(shaped("client", "sites_m")),
        "in_reach": Mask(shaped("client", "sites_m")),
        "rates_bps": Numbers(shaped("client", 2), least=0, infinite=True),
    },
)
COVERAGE: Final = Contract(
    "coverage", Coverage, {"step_m": Number(least=0, above=True, infinite=True), "view": PartOf(object, VIEW)}
)
