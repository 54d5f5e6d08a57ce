"""Settings of a hierarchical federation, and its edge servers in one run.

Hierarchical federated learning: Liu, Zhang, Song and Letaief, "Client-Edge-Cloud Hierarchical Federated Learning", ICC
2020 (HierFAVG).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from fedsim.arrays import FloatArray, IntArray, Whole
from fedsim.errors import ScenarioError
from fedsim.learning import SERVER_OPTIMIZERS, FedAvg, ServerOptimizer
from fedsim.network import Links
from fedsim.registry import Settings, Slot
from fedsim.rounds.hierarchy.backhaul import BACKHAULS, Backhaul
from fedsim.rounds.hierarchy.cloud_rules import CLOUD_RULES, CloudRule, Synchronous
from fedsim.rounds.hierarchy.grouping import GROUPING, GROUPINGS, Grouping
from fedsim.selectors import SelectorPort
from fedsim.units import Bound


class Edges(Settings):
    """Edge servers between clients and cloud.

    An edge server runs rounds with its own clients: with a selector of its own, built from the scenario's recipe, under
    the scenario's policy and late rule. Then it sends its model to the cloud. An edge server whose rounds made no new
    model sends nothing, and the cloud continues without it. One without an available client waits for one (see also
    `Synchronous.absent`); one without any client that will ever be available is left out.

    A network of kind ``graph`` allows two arrangements. With ``server = "edge-server"`` transfers end at edge servers;
    the grouping is ``site``, and models travel over wired links (``link``) or over the graph (``network``), which must
    have one cloud then. Clients may not move; during an outage a client's transfers end at the nearest edge server that
    it can reach, and the client stays in its group. With ``server = "cloud"`` transfers end at the cloud;
    any other grouping is allowed, such as tiers, and the backhaul is ``none``.

    Attributes
    ----------
    grouping : edge server of each client
    rounds : edge rounds between two aggregations of the cloud, HierFAVG's kappa_2
    merging : rule of the cloud, and whether it waits for all edge servers
    server : server optimiser of the cloud, which steps from its model to the mean that ``merging`` gives; edge servers
        follow ``learning.server``
    backhaul : between edge servers and cloud; there is no default, so that no transfer is free by omission
    """

    grouping: Annotated[Grouping, Slot(GROUPINGS)]
    rounds: Annotated[Whole, Bound(0, 10**4)] = 1
    merging: Annotated[CloudRule, Slot(CLOUD_RULES)] = Synchronous()
    server: Annotated[ServerOptimizer, Slot(SERVER_OPTIMIZERS)] = FedAvg()
    backhaul: Annotated[Backhaul, Slot(BACKHAULS)]


@dataclass(frozen=True)
class Hierarchy:
    """The edge servers of one run; ``members`` are the ids of each one's clients, ascending."""

    edges: Edges
    members: list[IntArray]
    selectors: list[SelectorPort]

    @classmethod
    def of(
        cls,
        edges: Edges,
        links: Links,
        expected_s: FloatArray,
        selector: Callable[[], object],
        minimum_updates: int = 1,
    ) -> Self:
        edge = np.asarray(GROUPING.checked(edges.grouping).edges_of(links, expected_s))
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
