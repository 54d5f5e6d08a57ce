"""Edge servers: whose clients are whose, how often the cloud merges, and what a run is made of then.

Hierarchical federated learning: Liu, Zhang, Song and Letaief, "Client-Edge-Cloud Hierarchical Federated Learning", ICC
2020 (HierFAVG).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray, Whole
from fedsim.errors import ScenarioError
from fedsim.learning import SERVER_OPTIMIZERS, ServerOptimizer
from fedsim.network import Links
from fedsim.registry import Settings, Slot
from fedsim.rounds.hierarchy.backhaul import BACKHAULS, Backhaul
from fedsim.rounds.hierarchy.cloud_rules import CLOUD_RULES, CloudRule, Synchronous
from fedsim.rounds.hierarchy.grouping import GROUPINGS, Grouping
from fedsim.selectors import SelectorPort


class Edges(Settings):
    """Edge servers between clients and cloud.

    Each runs rounds with its own clients as a server of its own does: with a selector of its own from the scenario's
    recipe, under the scenario's policy and late rule. Then it brings its model to the cloud. An edge server whose
    rounds made nothing new sends nothing, and the cloud goes on without it; one at which nobody is there waits for its
    clients (see also `Synchronous.absent`), and one at which nobody will ever be again is left alone.

    With a network of kind ``graph`` there are two ways. With ``server = "edge-server"`` transfers end there; the
    grouping is ``site``, and models travel over wires of their own (``link``) or over the graph (``network``), which
    must have one cloud then. Clients may not move; while outages keep a client from its edge server, its messages end
    at the nearest that it can reach, though it stays a client of its own. With ``server = "cloud"`` transfers end
    at the cloud; any other grouping is allowed, such as tiers, and the backhaul is ``none``.

    Attributes
    ----------
    grouping : whose clients are whose
    rounds : edge rounds between two merges at the cloud, HierFAVG's kappa_2
    merging : how the cloud merges, and whether it waits for all edges
    backhaul : between edges and cloud; there is no default, since nothing is free by omission
    server : the cloud's server optimiser, whose update is what ``merging`` would add to the cloud's model; None for
        federated averaging. ``learning.server`` is the edge servers'
    """

    grouping: Annotated[Grouping, Slot(GROUPINGS)]
    rounds: Whole = 1
    merging: Annotated[CloudRule, Slot(CLOUD_RULES)] = Synchronous()
    backhaul: Annotated[Backhaul, Slot(BACKHAULS)]
    server: Annotated[ServerOptimizer, Slot(SERVER_OPTIMIZERS)] | None = None


@dataclass(frozen=True)
class Hierarchy:
    """The edge servers of one run.

    Attributes
    ----------
    edges : settings
    members : ids of the clients of each edge server, ascending
    selectors : one for each edge server
    """

    edges: Edges
    members: list[IntArray]
    selectors: list[SelectorPort]

    @classmethod
    def of(
        cls,
        edges: Edges,
        links: Links,
        expected_s: NDArray[np.float64],
        selector: Callable[[], object],
        minimum_updates: int = 1,
    ) -> Self:
        """Return the edge servers of a run.

        Parameters
        ----------
        edges : settings
        links : of the run
        expected_s : mean time of a whole participation of every client, shape (K,)
        selector : makes a fresh one
        minimum_updates : with fewer a round ends without a new model

        Raises
        ------
        ScenarioError
            If the grouping leaves a client without an edge or an edge without clients, or an edge has too few.
        """
        edge = np.asarray(edges.grouping.edges_of(links, expected_s))
        name = GROUPINGS.kind_of(edges.grouping)
        if edge.shape != expected_s.shape or not np.issubdtype(edge.dtype, np.integer) or np.any(edge < 0):
            raise ScenarioError(
                f"rounds.edges.grouping: {name!r} gives {edge!r} for {expected_s.size} clients; allowed: one whole "
                "number of at least 0 for each"
            )
        sizes = np.bincount(edge)
        if not sizes.all():
            raise ScenarioError(
                f"rounds.edges.grouping: {name!r} leaves edge server {int(np.argmin(sizes))} without clients; "
                "allowed: numbers from 0 without gaps"
            )
        if sizes.min() < minimum_updates:
            raise ScenarioError(
                f"rounds.minimum_updates: {minimum_updates} is not allowed; edge server {int(np.argmin(sizes))} has "
                f"{sizes.min()} clients, which is never enough; allowed: 1 to {sizes.min()}"
            )
        members = [np.flatnonzero(edge == at) for at in range(sizes.size)]
        return cls(edges, members, [SelectorPort.of(selector()) for _ in members])
