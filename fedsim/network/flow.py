"""What the clock asks of a medium that transfers share: how long one takes depends on who else is there.

Links with a medium of their own say in advance how long a transfer takes (`fedsim.network.base.Links`). Links that
share one say by ``shared_downlink`` and ``shared_uplink`` in which directions they do, and are opened on the clock of
one run; a transfer is then a `Flow`, whose end nobody knows before it comes.
"""

from typing import Protocol, runtime_checkable

from simpy import Environment, Event

from fedsim.network.base import Links


class Flow(Protocol):
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


class Air(Protocol):
    """Shared links, opened on the clock of one run. A transfer starts when it is asked for."""

    def downlink(self, client: int, bits: float) -> Flow:
        """Start to send the server's message to a client."""
        ...

    def uplink(self, client: int, bits: float) -> Flow:
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

    def open(self, env: Environment) -> Air:
        """Return the medium on the clock of one run; it is asked for flows in the shared directions only."""
        ...


def queued_s(flow: Flow) -> float:
    """Return how long a flow has waited for its medium to be free; 0 for those that never wait."""
    waited = getattr(flow, "queued_s", None)
    return 0.0 if waited is None else float(waited())
