"""The contracts of a network: its settings, and the links of one run."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from fedsim.answers import (
    AnswerError,
    Contract,
    Flag,
    Free,
    Given,
    InstanceOf,
    Kind,
    Numbers,
    OptionalOf,
    PartOf,
    in_words,
    same_shape,
    shaped,
)
from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import Capable
from fedsim.clock import Environment
from fedsim.errors import PartError, ScenarioError
from fedsim.network.transfers import SHARED_MEDIUM, SharedMedium
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams


class Directions(NamedTuple):
    """Whether something holds for the downlink and for the uplink."""

    down: bool = False
    up: bool = False


class Connection(NamedTuple):
    """Inactivity after which a client is released, and the seconds of its next set-up."""

    inactivity_s: float
    setup_s: float
    by_downlink: bool = True


@dataclass(frozen=True, kw_only=True)
class LinkFacts:
    """What is known of the clients' links before a run begins; None for what a network does not have."""

    positions_m: FloatArray | None = None
    distance_m: FloatArray | None = None
    snr: FloatArray | None = None
    rate_bps: FloatArray | None = None


class Links(ABC):
    """The links between the server and all K clients of one run.

    Every returned value is a function of the client, the draw or the instant, and the run's seed alone: it depends
    neither on the other clients of the call nor on earlier calls. In a shared direction the values hold for a client
    that has the medium to itself; the transfers themselves run on the medium that `open` returns. All of them hold for
    a client that is connected.

    Attributes
    ----------
    allocates : whether `allocated` gives bands and powers to a cohort's uplinks
    connection : what a client pays besides after it has been idle; None if it stays connected
    broadcast : whether one message reaches all clients of a downlink that starts at one instant
    shared : directions in which clients share a medium
    serving : index of the site or server at which each client's transfers end, shape (K,); None without sites

    Examples
    --------
    >>> class Cables(Links):
    ...     def downlink_s(self, client, draw, start_s, bits):
    ...         return np.full(client.size, bits / 1e7)
    ...     uplink_s = downlink_s
    ...     def expected_downlink_s(self, bits):
    ...         return np.full(3, bits / 1e7)
    ...     expected_uplink_s = expected_downlink_s
    >>> Cables().carried_bits(np.array([2]), 1, np.zeros(1), elapsed_s=np.array([0.25]), bits=5e6, up=True).tolist()
    [2500000.0]
    """

    shared: Directions = Directions()
    serving: IntArray | None = None
    connection: Connection | None = None
    allocates: bool = False
    broadcast: bool = False

    @abstractmethod
    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the duration of the server's message to each client.

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        draw : int >= 1
            Key of the randomness of these transfers, one for each participation of a client.
        start_s : instant at which each client's transfer starts, in simulated seconds, shape (n,)
        bits : size of the message, the same for all clients

        Returns
        -------
        array of shape (n,), seconds >= 0; `inf` where a link carries nothing
        """

    @abstractmethod
    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the duration of each client's message to the server, shape (n,); parameters as in `downlink_s`.

        Parameters
        ----------
        client : ids, shape (n,)
        draw : key of the participation's draws
        start_s : simulated second at which each transfer starts, shape (n,)
        bits : size of the message
        """

    def carried_bits(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return how many bits of a dedicated transfer have been carried some time after its start.

        By default in proportion to the time, as links of constant rate carry them. Links whose rate changes during a
        transfer have a method of their own. It never falls with time, and is all bits from the end of the transfer on.

        Parameters
        ----------
        client, draw, start_s, bits : as in `downlink_s`
        elapsed_s : seconds since each client's transfer has started, at most its duration, shape (n,)
        up : whether it is the message to the server

        Returns
        -------
        array of shape (n,), in [0, bits]
        """
        duration_s = (self.uplink_s if up else self.downlink_s)(client, draw, start_s, bits)
        part = np.divide(elapsed_s, duration_s, out=np.ones(client.size), where=duration_s > elapsed_s)
        return np.asarray(bits * part)

    def on_air_s(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the seconds for which a dedicated transfer has been on the air some time after its start; all of them.

        Links whose transfers wait, are silent or propagate for a while have a method of their own. It never falls with
        time.

        Parameters
        ----------
        client, draw, start_s, bits : as in `downlink_s`
        elapsed_s, up : as in `carried_bits`

        Returns
        -------
        array of shape (n,), in [0, elapsed_s]
        """
        return elapsed_s

    def expected_on_air_s(self, bits: float, *, up: bool) -> FloatArray:
        """Return the expected seconds on the air of every client alone, shape (K,); by default the expected duration.

        Parameters
        ----------
        bits : size of the message
        up : whether it is the message to the server
        """
        return self.expected_uplink_s(bits) if up else self.expected_downlink_s(bits)

    @property
    def steady(self) -> bool:
        """Whether dedicated transfers carry bits, and are on the air, in proportion to time; False with own methods."""
        kind = type(self)
        return kind.carried_bits is Links.carried_bits and kind.on_air_s is Links.on_air_s

    @abstractmethod
    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return the expected duration of a downlink for every client, in seconds, shape (K,).

        Parameters
        ----------
        bits : size of the message
        """

    @abstractmethod
    def expected_uplink_s(self, bits: float) -> FloatArray:
        """Return the expected duration of an uplink for every client, in seconds, shape (K,).

        Parameters
        ----------
        bits : size of the message
        """

    def describe(self) -> LinkFacts:
        """Return what is known of the clients' links before the run, for the table of clients."""
        return LinkFacts()

    def uplink_snr_hz(self, client: IntArray, time_s: float) -> FloatArray | None:
        """Return what a base station measures of clients' uplinks at an instant, shape (n,); None without radio.

        It is the mean power received of a client at full power over the density of noise and interference, in Hz: in a
        band of b Hz the client's mean SNR is this number over b.

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        time_s : instant, >= 0
        """
        return None

    def uplink_gain(self, client: IntArray, time_s: float) -> FloatArray | None:
        """Return the power gain of the fading of clients' uplinks at an instant, shape (n,); None without radio.

        Its mean is 1. Parameters as in `uplink_snr_hz`.

        Parameters
        ----------
        client : ids, shape (n,)
        time_s : simulated second
        """
        return None

    def uplink_power_dbm(self, client: IntArray) -> FloatArray | None:
        """Return the full power of clients' transmitters, shape (n,); None where it is not known.

        Links that give powers to a cohort's uplinks state it: an allocated power is at most this one.

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        """
        return None

    def allocated(
        self, client: IntArray, bandwidth_hz: FloatArray | None, transmit_power_dbm: FloatArray | None
    ) -> "Links":
        """Return the links of a cohort whose uplinks have bands and powers of their own.

        Parameters
        ----------
        client : ids of the cohort, distinct, shape (n,)
        bandwidth_hz : band of each client, > 0, shape (n,); None for its own
        transmit_power_dbm : power of each client's transmitter, shape (n,); None for its own

        Raises
        ------
        ScenarioError
            If the network has no uplinks to which bands and powers can be given, as here.
        """
        raise ScenarioError(
            f"network: a {type(self).__name__} gives its clients no bands and powers, so that a selector cannot "
            "allocate them; allowed: a cell whose uplink is dedicated"
        )

    def open(self, env: Environment) -> SharedMedium:
        """Return the medium of the shared directions on the clock of one run."""
        raise NotImplementedError(f"{type(self).__name__} shares no direction, so it has no medium to open")


_DURATIONS: Final = Numbers(same_shape("client"), least=0, infinite=True)
_EXPECTED: Final = Numbers(shaped("clients"), least=0, infinite=True)
_FACTS: Final[Mapping[str, Kind]] = {
    "positions_m": OptionalOf(Numbers(shaped("clients", 2))),
    "distance_m": OptionalOf(Numbers(shaped("clients"), least=0)),
    "snr": OptionalOf(Numbers(shaped(2, "clients"), least=0, infinite=True)),
    "rate_bps": OptionalOf(Numbers(shaped(2, "clients"), least=0, infinite=True)),
}


@dataclass(frozen=True)
class _Facts:
    """Facts about the links of a run, each of the declared shape or None."""

    def __call__(self, answer: object, given: Given) -> LinkFacts:
        if not isinstance(answer, LinkFacts):
            raise AnswerError(in_words(answer), "a fedsim.network.LinkFacts")
        found = {}
        for name, kind in _FACTS.items():
            try:
                found[name] = kind(vars(answer)[name], given)
            except AnswerError as error:
                raise AnswerError(f"{name} = {error.found}", error.allowed) from None
        return LinkFacts(**found)


LINKS: Final = Contract(
    "links",
    Links,
    {
        "downlink_s": _DURATIONS,
        "uplink_s": _DURATIONS,
        "carried_bits": Numbers(same_shape("client"), least=0),
        "on_air_s": Numbers(same_shape("client"), least=0),
        "expected_on_air_s": _EXPECTED,
        "steady": InstanceOf(bool),
        "expected_downlink_s": _EXPECTED,
        "expected_uplink_s": _EXPECTED,
        "uplink_snr_hz": OptionalOf(Numbers(same_shape("client"), least=0, infinite=True)),
        "uplink_gain": OptionalOf(Numbers(same_shape("client"), least=0)),
        "uplink_power_dbm": OptionalOf(Numbers(same_shape("client"))),
        "allocated": InstanceOf(Links),
        "allocates": Flag(),
        "serving": OptionalOf(Numbers(shaped("clients"), least=0, dtype=np.int64)),
        "connection": OptionalOf(InstanceOf(Connection)),
        "broadcast": Flag(),
        "open": PartOf(SharedMedium, SHARED_MEDIUM),
        "describe": _Facts(),
    },
)


class Network(Capable, Protocol):
    """A scenario's network: settings that build the links of one run.

    Attributes
    ----------
    requires : ``{"model-bits"}`` if the size of messages matters; without it bits are ignored and may be 0
    provides : ``"sites"`` if transfers end at one of several sites

    Examples
    --------
    >>> from fedsim.network import TwoSpeed
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> network: Network = TwoSpeed(std_s=0.0)  # a fast and a slow client, without noise
    >>> network.build(RunSetup.at(np.zeros((2, 2)), Streams(0))).expected_uplink_s(bits=1e6).tolist()
    [0.2, 0.9]
    """

    def build(self, run: RunSetup) -> Links:
        """Return the links of one run.

        Parameters
        ----------
        run : what a part may read of its run
        """
        ...


def build_links(network: Network, run: RunSetup) -> Links:
    """Return the links that a network builds for one run."""
    links: object = NETWORK.checked(network).build(run)
    built = f"network: {type(network).__name__}.build returned a {type(links).__name__}"
    if not isinstance(links, Links):
        raise PartError(built, "allowed: links that derive from fedsim.network.Links")
    if any(links.shared) and type(links).open is Links.open:
        raise PartError(f"{built} that shares a direction", "allowed: links that share one with a method open")
    return LINKS.checked(links, clients=run.clients)


NETWORK: Final = Contract("network", Network, {"build": Free()})


class Placement(Protocol):
    """The positions of the clients of a scenario.

    Examples
    --------
    >>> from fedsim.streams import Streams
    >>> class Line:
    ...     def positions(self, clients, streams):
    ...         return np.column_stack([100.0 * np.arange(1, clients + 1), np.zeros(clients)])
    >>> from fedsim.network import LogDistance
    >>> LogDistance().loss_db(np.linalg.norm(Line().positions(2, Streams(0)), axis=1)).round(1).tolist()
    [90.5, 101.8]
    """

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        """Return the positions of all clients in metres, the base station at the origin, shape (clients, 2).

        Parameters
        ----------
        clients : number of clients
        streams : random streams of the run
        """
        ...


PLACEMENT: Final = Contract("placement", Placement, {"positions": Numbers(shaped("clients", 2))})
