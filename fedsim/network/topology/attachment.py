"""The base station of each client at time 0, and the server at which its transfers end."""

from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import networkx as nx
import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.network.topology.coverage import Coverage, FadedView
from fedsim.network.topology.flow_state import Route
from fedsim.network.topology.topology import Node, Topology, read_graph

# Stands for the server that is nearest when a transfer starts.
NEAREST_SERVER: Final = -1


@dataclass(frozen=True)
class InitialAccess:
    """The base stations of the clients at time 0, and their links; SNRs of shape (2, K), None without radio."""

    station: IntArray
    downlink_bps: FloatArray
    uplink_bps: FloatArray
    delay_s: float
    shares_airtime: bool
    snr: FloatArray | None = None

    @classmethod
    def strongest(cls, coverage: Coverage, places_m: FloatArray, delay_s: float, shares_airtime: bool) -> Self:
        view = coverage.view(np.arange(len(places_m)), places_m)
        station = np.argmax(view.signal_db, axis=1)
        down_bps, up_bps = view.rates_bps(station).T
        snr = np.ascontiguousarray(view.snrs(station).T) if isinstance(view, FadedView) else None
        return cls(station, down_bps, up_bps, delay_s, shares_airtime, snr)


def station_sites_m(graph: "nx.Graph[Any]") -> FloatArray:
    """Return the positions of the base stations of a graph without clients, in its order, shape (b, 2)."""
    topology = Topology()
    read_graph(graph, topology)
    sites = []
    for name, node in zip(topology.names, topology.nodes, strict=True):
        where = f"{topology.where}: node {name!r}"
        if node.kind == "client" or name.startswith("client-"):
            raise ScenarioError(f"{where} is not allowed; with the table access the graph names no clients")
        if node.kind == "base-station":
            if node.x_m is None or node.y_m is None:
                raise ScenarioError(f"{where}: x_m or y_m is missing; clients are attached to base stations in reach")
            sites.append((node.x_m, node.y_m))
    if not sites:
        raise ScenarioError(f"{topology.where}: there is no base station; the table access attaches clients to one")
    return np.array(sites)


class AttachedTopology:
    """A topology with its clients attached, and the servers at which transfers end."""

    def __init__(
        self,
        graph: "nx.Graph[Any]",
        server: Literal["cloud", "edge-server"],
        clients: int,
        first: InitialAccess | None,
    ) -> None:
        self.topology = Topology()
        read_graph(graph, self.topology)
        nodes = self.topology.nodes
        self.stations = [i for i, node in enumerate(nodes) if node.kind == "base-station"]
        self.access: list[tuple[int, int]] = []
        self.servers = [i for i, node in enumerate(nodes) if node.kind == server]
        if not self.servers or (server == "cloud" and len(self.servers) > 1):
            wanted = "exactly one cloud" if server == "cloud" else "at least one edge server"
            raise ScenarioError(
                f"{self.topology.where}: there are {len(self.servers)} nodes of that kind; there must be {wanted}"
            )
        if first is None:
            self._find_clients(clients)
        else:
            self._attach_clients(first)

    def way(self, ends: tuple[int, int]) -> tuple[tuple[int, int], Route | None]:
        """Return the ends, with the nearest server in the place of `NEAREST_SERVER`, and the route or None."""
        if NEAREST_SERVER not in ends:
            return ends, self.topology.route(*ends)
        ways = []
        for server in self.servers:
            chosen = (server, ends[1]) if ends[0] == NEAREST_SERVER else (ends[0], server)
            route = self.topology.route(*chosen)
            if route is not None:
                ways.append((route.delay_s, len(route.links), server, chosen, route))
        if not ways:
            return ends, None
        return min(ways, key=lambda way: way[:3])[3:]

    def _find_clients(self, clients: int) -> None:
        numbers = {node.client: i for i, node in enumerate(self.topology.nodes) if node.client is not None}
        named = sum(node.kind == "client" for node in self.topology.nodes)
        missing = [client for client in range(clients) if client not in numbers]
        if missing or named != clients:
            problem = f"client {missing[0]} has no node" if missing else f"there are {named} nodes of kind client"
            raise ScenarioError(
                f"{self.topology.where}: {problem}; the graph must have one node for each of the {clients} clients, "
                "or none and the table access"
            )
        self.topology.client_node = [numbers[client] for client in range(clients)]

    def _attach_clients(self, first: InitialAccess) -> None:
        topology = self.topology
        client_node = Node(kind="client")
        links = zip(first.station.tolist(), first.downlink_bps.tolist(), first.uplink_bps.tolist(), strict=True)
        for client, (number, down_bps, up_bps) in enumerate(links):
            own, station = topology.add_node(f"client-{client}", client_node), self.stations[number]
            down = topology.add_link(station, own, down_bps, first.delay_s, True)
            up = topology.add_link(own, station, up_bps, first.delay_s, True)
            topology.client_node.append(own)
            self.access.append((down, up))
        for station in self.stations if first.shares_airtime else ():
            topology.share_airtime(station)
