"""A network's graph: nodes, links with capacities and delays, and shortest routes."""

import heapq
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeVar

import networkx as nx
import numpy as np
from pydantic import Field, ValidationError

from fedsim.arrays import FloatArray
from fedsim.errors import ScenarioError
from fedsim.network.topology.flow_state import Route
from fedsim.registry import Settings
from fedsim.units import BitsPerSecond, Coordinate, NonNegative, Positive, Seconds

T = TypeVar("T", bound=Settings)
SOURCE: Final = "fedsim.source"
"""Attribute of a networkx graph: the file that it was read from, for messages."""
Kind = Literal["client", "base-station", "edge-server", "cloud", "router"]


class Node(Settings):
    """A node, as graphs of networkx and files describe it.

    `client` is the number of a client. Base stations need a position where clients choose the strongest. `radio_bps`
    limits all wireless links of the node together, and `relays`, by default true for all but clients, says whether
    routes of others may pass.
    """

    kind: Kind
    client: Annotated[int, Field(ge=0)] | None = None
    x_m: Coordinate | None = None
    y_m: Coordinate | None = None
    radio_bps: Positive[BitsPerSecond] | None = None
    relays: bool | None = None


class Edge(Settings):
    """An edge between two nodes.

    Attributes
    ----------
    capacity_bps : in each direction
    delay_s : propagation delay
    wireless : whether it uses the radios at its ends
    """

    capacity_bps: Positive[BitsPerSecond]
    delay_s: NonNegative[Seconds]
    wireless: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of an edge; `number` counts links from 0."""

    number: int
    tail: int
    head: int
    capacity_bps: float
    delay_s: float
    wireless: bool


class Topology:
    """Nodes, links and routes of one run, of which nodes and links may fail for a while."""

    def __init__(self) -> None:
        self.where = "network"
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.links: list[Link] = []
        self.client_node: list[int] = []
        self._number: dict[str, int] = {}
        self._out: list[dict[int, int]] = []
        self._into: list[dict[int, int]] = []
        self._node_losses: dict[int, int] = {}
        self._link_losses: dict[int, int] = {}
        self._trees: dict[tuple[int, bool], dict[int, tuple[float, int, int]]] = {}
        self._airtime: dict[int, int] = {}

    def add_node(self, name: str, node: Node) -> int:
        number = len(self.names)
        self.names.append(name)
        self.nodes.append(node)
        self._number[name] = number
        self._out.append({})
        self._into.append({})
        return number

    def add_link(self, tail: int, head: int, capacity_bps: float, delay_s: float, wireless: bool) -> int:
        link = Link(len(self.links), tail, head, capacity_bps, delay_s, wireless)
        self.links.append(link)
        self._out[tail][head] = self._into[head][tail] = link.number
        return link.number

    def node(self, name: str) -> int:
        if name not in self._number:
            some = ", ".join(self.names[:8]) + (" ..." if len(self.names) > 8 else "")
            raise ScenarioError(f"{self.where}: there is no node {name!r}; allowed: {some}")
        return self._number[name]

    def has(self, name: str) -> bool:
        return name in self._number

    def between(self, one: int, other: int) -> list[int]:
        return [out[head] for out, head in ((self._out[one], other), (self._out[other], one)) if head in out]

    def share_airtime(self, node: int) -> None:
        """Let the wireless links that leave a node share its time, and those that end there: 1 s/s each way."""
        self._airtime[node] = 2 * len(self._airtime)

    def shares_airtime(self, number: int) -> bool:
        link = self.links[number]
        return link.wireless and (link.tail in self._airtime or link.head in self._airtime)

    def resources_bps(self) -> FloatArray:
        """Return the capacity of each link, of each node's radio after these, and then the airtimes; bit/s and s/s."""
        radios = [np.inf if node.radio_bps is None else node.radio_bps for node in self.nodes]
        return np.array([link.capacity_bps for link in self.links] + radios + [1.0, 1.0] * len(self._airtime))

    def tune(self, number: int, capacity_bps: float) -> None:
        """Set the capacity of a link; routes over it may have other weights then."""
        self.links[number] = replace(self.links[number], capacity_bps=capacity_bps)

    def relays(self, node: int) -> bool:
        relays = self.nodes[node].relays
        return self.nodes[node].kind != "client" if relays is None else relays

    def turn(self, number: int, tail: int, head: int) -> None:
        """Let a link join two other nodes; its number and capacity stay."""
        old = self.links[number]
        del self._out[old.tail][old.head], self._into[old.head][old.tail]
        self.links[number] = replace(old, tail=tail, head=head)
        self._out[tail][head] = self._into[head][tail] = number
        if self.relays(old.tail) and self.relays(old.head):
            self._trees.clear()

    def lose_node(self, node: int, lost: bool) -> None:
        """Count a failure of a node, or its end; the node works when all its failures have ended."""
        self._node_losses[node] = self._node_losses.get(node, 0) + (1 if lost else -1)
        self._trees.clear()

    def lose_link(self, number: int, lost: bool) -> None:
        self._link_losses[number] = self._link_losses.get(number, 0) + (1 if lost else -1)
        link = self.links[number]
        if self.relays(link.tail) and self.relays(link.head):
            self._trees.clear()

    def works(self, node: int) -> bool:
        return self._node_losses.get(node, 0) == 0

    def usable(self, number: int) -> bool:
        link = self.links[number]
        ends = self._node_losses.get(link.tail, 0) + self._node_losses.get(link.head, 0)
        return ends + self._link_losses.get(number, 0) == 0

    def route(self, source: int, target: int) -> Route | None:
        """Return the route with the least delay, None if there is none.

        Of equal delays that with fewer links, then that whose next node towards the root has the
        lower number. The root is the source if the target is a client, else the target.
        """
        inward = self.nodes[target].kind != "client"
        root, leaf = (target, source) if inward else (source, target)
        tree = self._tree(root, inward)
        path, at = [], leaf
        if leaf not in tree:
            number = self._joint(leaf, tree, inward)
            if number is None:
                return None
            path.append(self.links[number])
            at = path[0].head if inward else path[0].tail
        while at != root:
            link = self.links[tree[at][2]]
            path.append(link)
            at = link.head if inward else link.tail
        return self._as_route(path if inward else path[::-1])

    def _joint(self, leaf: int, tree: dict[int, tuple[float, int, int]], inward: bool) -> int | None:
        """Return the link by which a node that does not relay is joined to a tree, None if there is none."""
        if self.relays(leaf):
            return None
        around = self._out[leaf] if inward else self._into[leaf]
        ways = [
            (tree[other][0] + self.links[number].delay_s, tree[other][1] + 1, other, number)
            for other, number in around.items()
            if other in tree and self.usable(number)
        ]
        return min(ways)[3] if ways else None

    def _tree(self, root: int, inward: bool) -> dict[int, tuple[float, int, int]]:
        """Return (delay, hops, first link towards the root) of the root and every relay (Dijkstra, 1959)."""
        if (root, inward) in self._trees:
            return self._trees[root, inward]
        tree: dict[int, tuple[float, int, int]] = {}
        # (delay, hops, neighbour nearer to the root, node, link)
        heap: list[tuple[float, int, int, int, int]] = [(0.0, 0, -1, root, -1)]
        while heap:
            delay_s, hops, _, node, number = heapq.heappop(heap)
            if node in tree:
                continue
            tree[node] = (delay_s, hops, number)
            around = self._into[node] if inward else self._out[node]
            for other, way in around.items():
                if other not in tree and self.relays(other) and self.usable(way):
                    heapq.heappush(heap, (delay_s + self.links[way].delay_s, hops + 1, node, other, way))
        self._trees[root, inward] = tree
        return tree

    def _as_route(self, path: list[Link]) -> Route:
        weights: dict[int, float] = {link.number: 1.0 for link in path}
        airtimes = []
        for link in path:
            shared = [-1, -1]
            for end, node in enumerate((link.tail, link.head) if link.wireless else ()):
                if self.nodes[node].radio_bps is not None:
                    radio = len(self.links) + node
                    weights[radio] = weights.get(radio, 0.0) + 1.0
                if node in self._airtime and link.capacity_bps > 0:
                    airtime = len(self.links) + len(self.nodes) + self._airtime[node] + end
                    weights[airtime] = weights.get(airtime, 0.0) + 1.0 / link.capacity_bps
                    shared[end] = airtime
            airtimes.append((shared[0], shared[1]))
        delay_s = sum(link.delay_s for link in path)
        ends = (path[0].number, path[-1].number) if path else (-1, -1)
        return Route(tuple(weights), tuple(weights.values()), delay_s, tuple(airtimes) if self._airtime else (), ends)


def read_graph(graph: "nx.Graph[Any]", topology: Topology) -> None:
    """Add a graph's nodes and edges to a topology, refusing missing and wrong attributes."""
    topology.where = f"network: {graph.graph[SOURCE]}" if SOURCE in graph.graph else "network"
    if graph.is_multigraph():
        raise ScenarioError(
            f"{topology.where}: a multigraph is not allowed; there must be at most one edge between two nodes"
        )
    for name, attributes in graph.nodes(data=True):
        where = f"{topology.where}: node {str(name)!r}"
        if topology.has(str(name)):
            raise ScenarioError(f"{where} occurs twice; names must differ as text")
        node = _checked(Node, attributes, where)
        if (node.kind == "client") != (node.client is not None):
            raise ScenarioError(f"{where}: client is the number of a client; only nodes of that kind have it")
        topology.add_node(str(name), node)
    for one, other, attributes in graph.edges(data=True):
        where = f"{topology.where}: edge {str(one)!r} - {str(other)!r}"
        if one == other:
            raise ScenarioError(f"{where} is not allowed; an edge joins two different nodes")
        edge = _checked(Edge, attributes, where)
        ends = topology.node(str(one)), topology.node(str(other))
        for tail, head in (ends,) if graph.is_directed() else (ends, ends[::-1]):
            topology.add_link(tail, head, edge.capacity_bps, edge.delay_s, edge.wireless)


def _checked(model: type[T], attributes: dict[str, Any], where: str) -> T:
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in attributes.items()}
    try:
        return model.model_validate(plain)
    except ValidationError as error:
        lines = []
        for detail in error.errors(include_url=False):
            name = ".".join(str(step) for step in detail["loc"])
            if detail["type"] == "missing":
                lines.append(f"{where}: {name} is missing; a value is required here")
            else:
                lines.append(f"{where}: {name} = {detail['input']!r} is not allowed; {detail['msg']}")
        raise ScenarioError("\n".join(lines)) from None
