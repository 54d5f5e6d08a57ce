"""Failures of a network as timed processes: bursts of outage, and nodes or links that fail for a while.

Stream: ``outage-bursts`` by (number of the failure, name of the edge), so that a further edge changes no other.
"""

from collections.abc import Generator
from typing import Annotated, Any, Final, Protocol, Self

import numpy as np
from pydantic import Field, model_validator
from simpy import Event

from fedsim.answers import Contract, Free
from fedsim.clock import wait_until
from fedsim.errors import ScenarioError
from fedsim.network.medium.graph import GraphMedium
from fedsim.registry import Component, Registry
from fedsim.units import LONGEST_S, Bound, NonNegative, Positive, Seconds

FAILURES = Registry(
    "trouble",
    "fedsim.troubles",
    ("start",),
    {
        "loss": "fedsim.network.medium.failures:Outage",
        "outage-bursts": "fedsim.network.medium.failures:OutageBursts",
    },
)

MOST_SOJOURNS: Final = 3_200_000
"""Of an edge between two transfers; they are drawn one after the other, which takes seconds."""
Ends = Annotated[tuple[str, str], Field(strict=False)]
Process = Generator[Event, Any, None]


class Failure(Protocol):
    """A failure: settings that start their processes on the medium of one run."""

    def start(self, medium: GraphMedium, number: int) -> None:
        """Start the processes.

        Parameters
        ----------
        medium : of the run
        number : of the failure in the network's list, from 0
        """
        ...


FAILURE: Final = Contract("trouble", Failure, {"start": Free()})


class OutageBursts(Component):
    """Links that are good and bad by turns, for exponential times: the model of Gilbert and Elliott in continuous time.

    Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39, 1960; Elliott, same journal
    42, 1963. Edges are independent; both directions of an edge are bad together. At time 0 an edge is bad with the
    stationary probability ``mean_bad_s / (mean_good_s + mean_bad_s)``.

    Attributes
    ----------
    mean_good_s, mean_bad_s : mean sojourns
    bad_factor : share of the capacity that is left in the bad state, from 0 to below 1
    edges : pairs of node names; all wireless edges, those of attached clients included, if left out
    """

    mean_good_s: Annotated[Positive[Seconds], Bound(1e-3, LONGEST_S)]
    mean_bad_s: Annotated[Positive[Seconds], Bound(1e-3, LONGEST_S)]
    bad_factor: Annotated[float, Field(ge=0, lt=1)] = 0.0
    edges: Annotated[tuple[Ends, ...], Field(min_length=1, strict=False)] | None = None

    def start(self, medium: GraphMedium, number: int) -> None:
        for name, links in medium.edges(self.edges):
            rng = medium.streams.generator("outage-bursts", number, name)
            medium.env.process(self._burst(medium, number, name, links, rng))

    def _burst(
        self, medium: GraphMedium, number: int, name: str, links: list[int], rng: np.random.Generator
    ) -> Process:
        bad = rng.random() < self.mean_bad_s / (self.mean_good_s + self.mean_bad_s)
        until_s = medium.env.now + rng.exponential(self.mean_bad_s if bad else self.mean_good_s)
        while True:
            medium.scale(links, number, self.bad_factor if bad else 1.0)
            yield medium.env.timeout(max(0.0, until_s - medium.env.now))
            # An idle edge has no effect: it waits for a transfer, and then draws the sojourns that it has missed.
            yield medium.fluid.in_use(links)
            missed = 0
            while until_s <= medium.env.now:
                missed += 1
                if missed > MOST_SOJOURNS:
                    raise ScenarioError(
                        f"network.trouble: edge {name} would be good and bad more than {MOST_SOJOURNS} times "
                        f"before its next transfer at {medium.env.now:.6g} s; allowed: mean_good_s longer than "
                        f"{self.mean_good_s} s and mean_bad_s longer than {self.mean_bad_s} s, or shorter waits"
                    )
                bad = not bad
                until_s += rng.exponential(self.mean_bad_s if bad else self.mean_good_s)


class Outage(Component):
    """A node or an edge that fails for a while; a cell fails with its base station.

    Transfers over it take another route if there is one, and wait otherwise; bits that are sent are not sent again.

    Attributes
    ----------
    node : name of the node; either this or the edge is given
    edge : names of the ends of the edge
    from_s : instant of the failure
    duration_s : its length
    """

    node: str | None = None
    edge: Ends | None = None
    from_s: NonNegative[Seconds]
    duration_s: Positive[Seconds]

    @model_validator(mode="after")
    def _loses_one(self) -> Self:
        if (self.node is None) == (self.edge is None):
            raise ValueError("a loss needs either a node or an edge")
        return self

    def start(self, medium: GraphMedium, number: int) -> None:
        if self.node is not None:
            node = medium.topology.node(self.node)
            medium.env.process(self._lose(medium, node, []))
        elif self.edge is not None:
            ((_, links),) = medium.edges((self.edge,))
            medium.env.process(self._lose(medium, None, links))

    def _lose(self, medium: GraphMedium, node: int | None, links: list[int]) -> Process:
        yield from wait_until(medium.env, self.from_s)
        medium.lose(node, links, True)
        yield from wait_until(medium.env, self.from_s + self.duration_s)
        medium.lose(node, links, False)
