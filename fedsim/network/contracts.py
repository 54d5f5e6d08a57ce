"""What the rest of fedsim asks of a network, and what a network asks of its parts."""

from typing import Protocol, runtime_checkable

from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import Capable
from fedsim.streams import Streams


class Links(Protocol):
    """The links between the server and all K clients of one run.

    Every answer is a function of the client, the round or the instant, and the run's seed alone: it never
    depends on who else is asked about or on what was asked before.
    """

    def downlink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return how long the server's message takes to each client.

        Parameters
        ----------
        client : ids in 0..K-1, shape (n,)
        round_ : int, from 1
        start_s : simulated time at which each client's transfer starts, shape (n,)
        bits : size of the message, the same for all

        Returns
        -------
        array of shape (n,), seconds >= 0; `inf` where a link carries nothing
        """
        ...

    def uplink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return how long each client's message takes to the server; as `downlink_s`."""
        ...

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return the expected duration of a downlink for every client, shape (K,)."""
        ...

    def expected_uplink_s(self, bits: float) -> FloatArray:
        """Return the expected duration of an uplink for every client, shape (K,)."""
        ...


class Network(Capable, Protocol):
    """A scenario's network: settings that build the links of one run.

    Attributes
    ----------
    requires : ``{"model-bits"}`` if the size of messages matters; without it bits are ignored and may be 0
    provides : ``"sites"`` if transfers end at one of several sites
    """

    def build(self, positions_m: FloatArray, streams: Streams) -> Links:
        """Return the links of one run for clients at positions of shape (K, 2), base station at the origin."""
        ...


class Placement(Protocol):
    """Where clients stand."""

    def positions(self, clients: int, streams: Streams) -> FloatArray:
        """Return the positions of all clients in metres, shape (clients, 2), base station at the origin."""
        ...


class Transfer(Protocol):
    """One transfer on its way over something shared.

    One that may have to wait until the medium is free says so by a method ``queued_s()``, the seconds it has waited.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived; never if the links carry nothing
    """

    done: Event

    def cancel(self) -> None:
        """Give up and free at this instant what is held; `done` never triggers then. Again, or late: nothing."""
        ...

    def sent_bits(self) -> float:
        """Return how many bits have been carried so far."""
        ...


class SharedMedium(Protocol):
    """Shared links, opened on the clock of one run. A transfer starts when it is asked for."""

    def downlink(self, client: int, bits: float) -> Transfer:
        """Start to send the server's message to a client."""
        ...

    def uplink(self, client: int, bits: float) -> Transfer:
        """Start to send a client's message to the server."""
        ...


@runtime_checkable
class SharedLinks(Links, Protocol):
    """Links of which at least one direction is shared.

    What `Links` promises holds as if each client were alone: ``expected_*_s``, and ``*link_s`` in the direction
    that is not shared.

    Attributes
    ----------
    shared_downlink, shared_uplink : whether transfers in this direction are flows
    """

    shared_downlink: bool
    shared_uplink: bool

    def open(self, env: Environment) -> SharedMedium:
        """Return the medium on the clock of one run; it is asked for flows in the shared directions only."""
        ...


def queued_s(flow: Transfer) -> float:
    """Return how long a flow has waited for its medium to be free; 0 for those that never wait."""
    waited = getattr(flow, "queued_s", None)
    return 0.0 if waited is None else float(waited())
