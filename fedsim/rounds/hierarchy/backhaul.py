"""What lies between edge servers and the cloud, on the clock."""

from collections.abc import Callable
from typing import ClassVar, Final, Protocol

import numpy as np
from pydantic import NonNegativeFloat, PositiveFloat
from simpy import Environment, Event

from fedsim.capabilities import MODEL_BITS, ROUTES, Capable
from fedsim.errors import ScenarioError
from fedsim.network import Links
from fedsim.network.contracts import SharedMedium, Transfer
from fedsim.registry import Component, Registry

Carry = Callable[[int, bool], Transfer]
"""Starts to send a model between an edge server, by its number, and the cloud; up to the cloud if True."""

BACKHAULS: Final = Registry(
    "backhaul",
    "fedsim.backhauls",
    ("open",),
    {
        "link": "fedsim.rounds.hierarchy.backhaul:Wire",
        "network": "fedsim.rounds.hierarchy.backhaul:ThroughNetwork",
        "none": "fedsim.rounds.hierarchy.backhaul:NoBackhaul",
    },
    attributes=("requires",),
)


class Backhaul(Capable, Protocol):
    """What lies between edge servers and the cloud.

    Attributes
    ----------
    requires : ``"model-bits"`` if the size of a model matters; ``"routes"`` if it travels over the clients' network
    """

    def open(self, env: Environment, links: Links, air: SharedMedium | None, bits: float) -> Carry | None:
        """Return how to send models of so many bits in one run; None if nothing lies between.

        Parameters
        ----------
        env : clock of the run
        links, air : of the run, where models may travel with the clients' messages
        bits : size of a model
        """
        ...


class NoBackhaul(Component):
    """Edge servers and cloud are one place, as tiers of clients are: nothing is sent between them."""

    requires: ClassVar[frozenset[str]] = frozenset()

    def open(self, env: Environment, links: Links, air: SharedMedium | None, bits: float) -> Carry | None:
        """Return None."""
        return None


class Wire(Component):
    """A wired link of its own for each edge server; both directions at the same time do not disturb each other.

    Attributes
    ----------
    rate_bps : capacity in each direction
    delay_s : propagation and forwarding
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})

    rate_bps: PositiveFloat
    delay_s: NonNegativeFloat

    def open(self, env: Environment, links: Links, air: SharedMedium | None, bits: float) -> Carry | None:
        """Return how to send a model over an edge's wire."""

        def carry(_edge: int, _up: bool) -> Transfer:
            return OnWire(env, bits, self.rate_bps, self.delay_s)

        return carry


class ThroughNetwork(Component):
    """Models travel over the links of a graph network, which they share with the messages of clients.

    The graph's transfers must end at edge servers, and clients be grouped by them. Outages and losses of links hold up
    models as they do messages.
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS, ROUTES})

    def open(self, env: Environment, links: Links, air: SharedMedium | None, bits: float) -> Carry | None:
        """Return how to send a model over the routes between an edge server's node and the cloud's.

        Raises
        ------
        ScenarioError
            If the network has no such nodes or no way between them.
        """
        routed = None if air is None else air.routed()
        if routed is None:
            raise ScenarioError(
                "rounds.edges.backhaul: 'network' is not allowed with a network in which only clients send; "
                "allowed: 'link', 'none', or a network of kind 'graph'"
            )
        names, cloud = routed.edge_routes()

        def carry(edge: int, up: bool) -> Transfer:
            ends = (names[edge], cloud) if up else (cloud, names[edge])
            return routed.transfer(*ends, bits)

        return carry


class OnWire(Transfer):
    """The transfer of one model over a wired link.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived
    """

    def __init__(self, env: Environment, bits: float, rate_bps: float, delay_s: float) -> None:
        self._env, self._bits, self._rate_bps, self._began_s = env, bits, rate_bps, env.now
        self._until_s = np.inf
        self.done: Event = env.timeout(delay_s + bits / rate_bps)

    def cancel(self) -> None:
        """Send no further bits."""
        if not self.done.processed:
            self._until_s = min(self._until_s, self._env.now)

    def sent_bits(self) -> float:
        """Return how many bits have been put on the wire so far."""
        if self._until_s == np.inf and self.done.processed:
            return self._bits
        return min(self._bits, (min(self._until_s, self._env.now) - self._began_s) * self._rate_bps)
