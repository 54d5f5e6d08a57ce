"""fedsim.network.graph.links."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import networkx as nx
import numpy as np
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.network.graph.access import Access
from fedsim.network.medium.graph import GraphMedium
from fedsim.network.topology.attachment import NEAREST_SERVER, AttachedTopology, InitialAccess
from fedsim.network.topology.coverage import Coverage
from fedsim.network.topology.mobility import Walk
from fedsim.streams import Streams

if TYPE_CHECKING:
    from fedsim.network.graph.graph import Graph


def _first_links(access: Access, coverage: Coverage, places_m: FloatArray) -> InitialAccess:
    """Return the links of clients to their strongest stations."""
    view = coverage.view(np.arange(len(places_m)), places_m)
    station = np.argmax(view.signal_db, axis=1)
    down_bps, up_bps = view.rates_bps(station).T
    return InitialAccess(station, down_bps, up_bps, access.delay_s, access.shares_airtime)


@dataclass(frozen=True)
class GraphLinks:
    """The links of a `Graph`; what a run changes lives in the `GraphMedium` that `open` returns.

    Attributes
    ----------
    clients : how many there are
    coverage, first : what base stations offer, and to which clients are attached at time 0; None if the graph says so
    walk_of : gives the way of a client by its id
    """

    shared_downlink: ClassVar[bool] = True
    shared_uplink: ClassVar[bool] = True

    settings: "Graph"
    graph: "nx.Graph[Any]"
    clients: int
    coverage: Coverage | None
    first: InitialAccess | None
    walk_of: Callable[[int], Walk]
    streams: Streams

    def attach(self) -> AttachedTopology:
        """Return the topology as it is at time 0, fresh."""
        return AttachedTopology(self.graph, self.settings.server, self.clients, self.first)

    def roams(self, stations: int) -> bool:
        """Return whether clients' access may change among so many base stations."""
        moves, rule = self.settings.mobility is not None, self.settings.handover
        alone = stations == 1 and (self.coverage is None or np.isinf(self.coverage.step_m))
        return not alone and (moves or (stations > 1 and rule.reselect_after_s is not None))

    def open(self, env: Environment) -> GraphMedium:
        """Return the shared links on the clock of one run, with its trouble and movement under way."""
        return GraphMedium(env, self)

    def downlink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return how long a client alone in the sound network takes; on the clock, use `open`."""
        return self.expected_downlink_s(bits)[client]

    def uplink_s(self, client: IntArray, round_: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return how long a client alone in the sound network takes; on the clock, use `open`."""
        return self.expected_uplink_s(bits)[client]

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return ``bits / narrowest link + delay`` of each client: alone, without trouble, where it stands first.

        `inf` where its access carries nothing; for a client that moves, which may find a signal, the greatest float.
        """
        return self._alone_s(bits, lambda client: (NEAREST_SERVER, client))

    def expected_uplink_s(self, bits: float) -> FloatArray:
        """Return ``bits / narrowest link + delay`` of each client; as `expected_downlink_s`."""
        return self._alone_s(bits, lambda client: (client, NEAREST_SERVER))

    @cached_property
    def serving(self) -> IntArray:
        """Which of the servers each client's transfers end at, in the sound network, where it stands first."""
        attached = self.attach()
        place = {server: at for at, server in enumerate(attached.servers)}
        ends = (attached.way((node, NEAREST_SERVER))[0] for node in attached.topology.client_node)
        return np.array([place[server] for _, server in ends], dtype=np.int64)

    def to_cloud(self) -> tuple[list[str], str]:
        """Return the names of the edge servers that serve clients, in their order, and the name of the cloud.

        Raises
        ------
        ScenarioError
            If there is not exactly one cloud, or no way between it and one of them.
        """
        attached = self.attach()
        names, topology = attached.topology.names, attached.topology
        clouds = [i for i, node in enumerate(topology.nodes) if node.kind == "cloud"]
        if len(clouds) != 1:
            raise ScenarioError(f"network: there are {len(clouds)} nodes of kind cloud; edge servers need exactly one")
        servers = [attached.servers[at] for at in np.unique(self.serving).tolist()]
        for server in servers:
            if topology.route(server, clouds[0]) is None or topology.route(clouds[0], server) is None:
                raise ScenarioError(f"network: edge server {names[server]!r} has no way to and from the cloud")
        return [names[server] for server in servers], names[clouds[0]]

    def check(self) -> None:
        """Refuse a network in which a client and the server cannot reach each other."""
        attached, ways = self.attach(), ((True, "to"), (False, "from"))
        for client, node in enumerate(attached.topology.client_node):
            for inward, word in ways:
                if attached.way((node, NEAREST_SERVER) if inward else (NEAREST_SERVER, node))[1] is None:
                    name = attached.topology.names[node]
                    raise ScenarioError(f"network: client {client} (node {name!r}) has no way {word} the server")

    def _alone_s(self, bits: float, ends: Callable[[int], tuple[int, int]]) -> FloatArray:
        attached = self.attach()
        capacity_bps = attached.topology.resources_bps()
        alone_s = np.zeros(len(attached.topology.client_node))
        for client, node in enumerate(attached.topology.client_node):
            route = attached.way(ends(node))[1]
            if route is not None:
                rate_bps = np.min(capacity_bps[list(route.links)] / route.weights)
                sent_s = bits / rate_bps if rate_bps > 0 else (np.inf if bits > 0 else 0.0)
                alone_s[client] = sent_s + route.delay_s
        return alone_s if self.settings.mobility is None else np.minimum(alone_s, np.finfo(np.float64).max)
