"""What goes wrong in a network, each a timed process: bursts of outage, and nodes or links that are lost for a while.

Stream: ``outage-bursts`` by (number of the trouble, name of the edge), so that a further edge changes no other.
"""

from collections.abc import Generator
from typing import Annotated, Any, Protocol, Self

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from simpy import Event

from fedsim.clock import wait_until
from fedsim.network.medium.graph import GraphMedium
from fedsim.registry import Component, Registry

FAILURES = Registry(
    "trouble",
    "fedsim.troubles",
    ("start",),
    {
        "loss": "fedsim.network.medium.failures:Outage",
        "outage-bursts": "fedsim.network.medium.failures:OutageBursts",
    },
)

Ends = Annotated[tuple[str, str], Field(strict=False)]
Process = Generator[Event, Any, None]


class Failure(Protocol):
    """Something that goes wrong: settings that start their processes on the air of one run."""

    def start(self, medium: GraphMedium, number: int) -> None:
        """Start the processes; the number counts the troubles of the network from 0."""
        ...


class OutageBursts(Component):
    """Links that are now good, now bad, for exponential times: the model of Gilbert and Elliott in continuous time.

    Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39, 1960; Elliott, same journal
    42, 1963. Edges are independent; both ways of an edge are bad together. At time 0 an edge is bad with the
    stationary probability ``mean_bad_s / (mean_good_s + mean_bad_s)``.

    Attributes
    ----------
    mean_good_s, mean_bad_s : mean sojourns
    bad_factor : what is left of the capacity in the bad state, from 0 (nothing) to below 1
    edges : pairs of node names; all wireless edges, those of attached clients included, if left out
    """

    mean_good_s: PositiveFloat
    mean_bad_s: PositiveFloat
    bad_factor: Annotated[float, Field(ge=0, lt=1)] = 0.0
    edges: Annotated[tuple[Ends, ...], Field(min_length=1, strict=False)] | None = None

    def start(self, medium: GraphMedium, number: int) -> None:
        """Start one process per edge."""
        for name, links in medium.edges(self.edges):
            rng = medium.streams.generator("outage-bursts", number, name)
            medium.env.process(self._burst(medium, number, links, rng))

    def _burst(self, medium: GraphMedium, number: int, links: list[int], rng: np.random.Generator) -> Process:
        bad = rng.random() < self.mean_bad_s / (self.mean_good_s + self.mean_bad_s)
        until_s = medium.env.now + rng.exponential(self.mean_bad_s if bad else self.mean_good_s)
        while True:
            medium.scale(links, number, self.bad_factor if bad else 1.0)
            yield medium.env.timeout(max(0.0, until_s - medium.env.now))
            # Nobody sees an idle edge: it sleeps, and catches up on its sojourns when something is to flow there.
            yield medium.fluid.in_use(links)
            while until_s <= medium.env.now:
                bad = not bad
                until_s += rng.exponential(self.mean_bad_s if bad else self.mean_good_s)


class Outage(Component):
    """A node or an edge that is lost for a while; a cell is lost with its base station.

    What flows there goes another way if there is one, and else waits until there is; bits that have been sent need
    not be sent again.

    Attributes
    ----------
    node : name of the node; either this or the edge is given
    edge : names of the ends of the edge
    from_s : when it is lost
    duration_s : for how long
    """

    node: str | None = None
    edge: Ends | None = None
    from_s: NonNegativeFloat
    duration_s: PositiveFloat

    @model_validator(mode="after")
    def _loses_one(self) -> Self:
        if (self.node is None) == (self.edge is None):
            raise ValueError("a loss needs either a node or an edge")
        return self

    def start(self, medium: GraphMedium, number: int) -> None:
        """Start the process."""
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
