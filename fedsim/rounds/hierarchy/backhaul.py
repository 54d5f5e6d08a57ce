"""Backhauls: transfers of models between edge servers and the cloud."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from simpy import Environment, Event

from fedsim.answers import AnswerError, Contract, Given, PartOf, asked, in_words
from fedsim.capabilities import MODEL_BITS, ROUTES
from fedsim.errors import PartError, ScenarioError
from fedsim.network import Links
from fedsim.network.transfers import TRANSFER, SharedMedium, Transfer
from fedsim.registry import Component, Registry
from fedsim.units import BitsPerSecond, NonNegative, Positive, Seconds

Carry = Callable[[int, bool], Transfer]
"""Starts the transfer of a model between an edge server (number) and the cloud; True: up to the cloud."""

BACKHAULS: Final = Registry(
    "backhaul",
    "fedsim.backhauls",
    ("open",),
    {
        "link": "fedsim.rounds.hierarchy.backhaul:Wire",
        "network": "fedsim.rounds.hierarchy.backhaul:ThroughNetwork",
        "none": "fedsim.rounds.hierarchy.backhaul:NoBackhaul",
    },
)


class Backhaul(Component, ABC):
    """The links between edge servers and the cloud.

    One for which the size of a model matters requires ``"model-bits"``; one over the clients' network also requires
    ``"routes"``.
    """

    requires: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def open(self, env: Environment, links: Links, medium: SharedMedium | None, bits: float) -> Carry | None:
        """Return what starts the transfers of models in one run; None if nothing is sent.

        Parameters
        ----------
        env : clock of the run
        links, medium : of the clients' network, over which models may travel; medium is None without a shared one
        bits : size of a model
        """


@dataclass(frozen=True)
class _Carrying:
    """What starts transfers between edge servers and the cloud, or None."""

    def __call__(self, answer: object, given: Given) -> Carry | None:
        if answer is None:
            return None
        if not callable(answer):
            raise AnswerError(in_words(answer), "a function of an edge server and a direction, or None")
        starts, transfer = answer, PartOf(Transfer, TRANSFER)

        def carry(edge: int, up: bool) -> Transfer:
            try:
                started: Transfer = transfer(asked("backhaul", "open", starts, edge, up), {})
            except AnswerError as lie:
                raise PartError(f"backhaul: a transfer started as {lie.found}", f"allowed: {lie.allowed}") from None
            return started

        return carry


BACKHAUL: Final = Contract("backhaul", Backhaul, {"open": _Carrying()})


class NoBackhaul(Backhaul):
    """No transfers: edge servers and cloud are one place, as with tiers of clients."""

    def open(self, env: Environment, links: Links, medium: SharedMedium | None, bits: float) -> Carry | None:
        return None


class Wire(Backhaul):
    """A wired full-duplex link for each edge server.

    Attributes
    ----------
    rate_bps : capacity in each direction
    delay_s : delay of propagation and forwarding
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})

    rate_bps: Positive[BitsPerSecond]
    delay_s: NonNegative[Seconds]

    def open(self, env: Environment, links: Links, medium: SharedMedium | None, bits: float) -> Carry | None:
        def carry(_edge: int, _up: bool) -> Transfer:
            return WireTransfer(env, bits, self.rate_bps, self.delay_s)

        return carry


class ThroughNetwork(Backhaul):
    """Transfers over the links of a graph network, shared with the clients' messages.

    The clients' transfers must end at edge servers, and clients be grouped by them. Failures of links and nodes delay
    models as they delay messages.
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS, ROUTES})

    def open(self, env: Environment, links: Links, medium: SharedMedium | None, bits: float) -> Carry | None:
        """Return what starts a transfer on the route between an edge server's node and that of the cloud."""
        routed = None if medium is None else medium.routed()
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


class WireTransfer(Transfer):
    """The transfer of one model over a wired link."""

    def __init__(self, env: Environment, bits: float, rate_bps: float, delay_s: float) -> None:
        self._env, self._bits, self._rate_bps, self._start_s = env, bits, rate_bps, env.now
        self._cancelled_s = math.inf
        self.done: Event = env.timeout(delay_s + bits / rate_bps)

    def cancel(self) -> None:
        """Send no further bits; a transfer that has ended stays as it is."""
        if not self.done.processed:
            self._cancelled_s = min(self._cancelled_s, self._env.now)

    def sent_bits(self) -> float:
        if self._cancelled_s == math.inf and self.done.processed:
            return self._bits
        return min(self._bits, (min(self._cancelled_s, self._env.now) - self._start_s) * self._rate_bps)
