"""Transfers over something shared, where how long one takes depends on who else is there.

Links that are shared have ``shared = True`` and ``open(env) -> Air``; the air starts flows on the clock of one run.
"""

from typing import Protocol

from simpy import Event


class Flow(Protocol):
    """One transfer on its way over something shared.

    Attributes
    ----------
    done : event that triggers when the transfer's bits have arrived
    """

    done: Event

    def cancel(self) -> None:
        """Free what the flow holds; a second call does nothing. Afterwards `done` never triggers."""
        ...

    def sent_bits(self) -> float:
        """Return how many bits have been carried so far."""
        ...


class Air(Protocol):
    """Shared links, opened on the clock of one run."""

    def downlink(self, client: int, bits: float) -> Flow:
        """Start a transfer from the server to a client now."""
        ...

    def uplink(self, client: int, bits: float) -> Flow:
        """Start a transfer from a client to the server now."""
        ...
