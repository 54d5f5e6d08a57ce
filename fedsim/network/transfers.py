"""The contracts of a shared medium and of one transfer over it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from fedsim.answers import Contract, InstanceOf, Number, PartOf
from fedsim.clock import Event


class Transfer(ABC):
    """One transfer over a shared medium.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived; never if the link carries nothing
    announces_arrival : whether `arrives_s` is finite before `done` triggers
    """

    __slots__ = ()

    announces_arrival: ClassVar[bool] = False

    done: Event

    @abstractmethod
    def cancel(self) -> None:
        """End the transfer now and free its share of the medium; `done` never triggers then.

        After the end of the transfer, or a second time, the call has no effect.
        """

    @abstractmethod
    def sent_bits(self) -> float:
        """Return the number of bits carried so far."""

    def queued_s(self) -> float:
        """Return the seconds for which the transfer has waited for a free medium; 0 on media without a queue."""
        return 0.0

    def on_air_s(self, elapsed_s: float) -> float:
        """Return the seconds so far for which the transfer has been on the air, at most those given; by default all.

        Asked after `SharedMedium.count_air`. Silences, waits, propagation and the shares of other transfers are not on
        the air. A share of a band counts as
        that share of the time.

        Parameters
        ----------
        elapsed_s : seconds since the start of the transfer, `queued_s` left out
        """
        return elapsed_s

    def arrives_s(self) -> float:
        """Return the instant at which the last bit arrives; `inf` while it is unknown."""
        return math.inf


@dataclass(frozen=True)
class SpectrumBook:
    """The work of a medium up to now in Hz s, each entry counted on its own.

    `received`, `lost` and `under_way` are the work for transfers that have ended, were cancelled, or are in progress;
    `most` is what the bandwidth would have allowed, and `rounding` bounds the error of these sums. `presence_s` is the
    integral over time of the number of transfers, and `sojourn_s` the sum of the transfers' times.
    """

    carried: float
    received: float
    lost: float
    under_way: float
    most: float
    presence_s: float
    sojourn_s: float
    rounding: float = 0.0


class Wait(Protocol):
    def hold(self, begin: Callable[[], object]) -> None:
        """Call a function after the wait."""
        ...


class SharedMedium(ABC):
    """Shared links on the clock of one run. A transfer starts when the method is called.

    Only the directions that `Links.shared` names are used.

    Examples
    --------
    >>> import numpy as np
    >>> from fedsim.clock import Clock
    >>> from fedsim.network import Cell
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> uplink = {"sharing": "equal", "bandwidth_hz": 1e6}
    >>> cell = Cell(uplink=uplink, access="none", fading="none", shadowing_sigma_db=0.0)
    >>> clock = Clock()
    >>> medium = cell.build(RunSetup.at(np.array([[20.0, 0.0], [0.0, 20.0]]), Streams(0))).open(clock)
    >>> uploads = [medium.uplink(client, bits=7.4e6) for client in (0, 1)]  # each alone would take 1 s
    >>> clock.run(until=uploads[1].done)
    >>> round(clock.now, 3)
    2.0
    """

    @abstractmethod
    def downlink(self, client: int, bits: float) -> Transfer:
        """Start a transfer from the server to a client.

        Parameters
        ----------
        client : id in 0..K-1
        bits : size of the message, >= 0

        Returns
        -------
        Transfer
        """

    @abstractmethod
    def uplink(self, client: int, bits: float) -> Transfer:
        """Start a transfer from a client to the server; parameters as in `downlink`.

        Parameters
        ----------
        client : id of the client
        bits : size of the message

        Returns
        -------
        Transfer
        """

    def start_after(self, wait: Wait, way: int, client: int, bits: float) -> Transfer | None:
        """Return a transfer that starts after a wait; None where the medium makes a transfer only as it starts.

        Parameters
        ----------
        wait : before the start
        way : 0 for a downlink, 1 for an uplink
        client, bits : as in `downlink`
        """
        return None

    def count_air(self) -> None:
        """Count the seconds on the air of all transfers: a run asks for them where they cost energy.

        Called before the first transfer. A medium that counts them in any case need not do anything, as by default.
        """
        return

    def books(self) -> Mapping[str, SpectrumBook]:
        """Return the work of each part of the medium by its name, for the audit; empty without spectrum."""
        return {}

    def routed(self) -> "RoutedMedium | None":
        """Return the medium as one that joins any two nodes; None where only clients and the server send."""
        return None


class RoutedMedium(SharedMedium):
    """A shared medium that joins any two nodes of a network."""

    @abstractmethod
    def transfer(self, source: str, target: str, bits: float) -> Transfer:
        """Start a transfer between two nodes."""

    @abstractmethod
    def edge_routes(self) -> tuple[list[str], str]:
        """Return the names of the edge servers that serve clients, in the order of their numbers, and of the cloud."""

    def routed(self) -> "RoutedMedium":
        return self


TRANSFER: Final = Contract(
    "transfer",
    Transfer,
    {
        "done": InstanceOf(Event),
        "sent_bits": Number(least=0),
        "queued_s": Number(least=0),
        "on_air_s": Number(least=0),
        "arrives_s": Number(least=0, infinite=True),
    },
)
SHARED_MEDIUM: Final = Contract(
    "shared medium",
    SharedMedium,
    {"downlink": PartOf(Transfer, TRANSFER), "uplink": PartOf(Transfer, TRANSFER)},
)
