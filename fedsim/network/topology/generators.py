"""Generators of a network's graph: a networkx object, a file, or a topology with options.

A graph names every client (nodes of kind ``client`` with the attribute ``client``), or it names none and has
base stations with positions, to which the network attaches clients.
"""

import json
import math
from pathlib import Path
from typing import Annotated, Any, Final

import networkx as nx
import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray
from fedsim.errors import ScenarioError
from fedsim.inputs.files import read_text, shortened
from fedsim.inputs.paths import InputPath
from fedsim.network.topology.topology import SOURCE, Edge
from fedsim.registry import Component, Registry
from fedsim.units import BitsPerSecond, Bound, Metres, Positive

LAYOUTS = Registry(
    "topology",
    "fedsim.topologies",
    ("graph",),
    {
        "file": "fedsim.network.topology.generators:File",
        "given": "fedsim.network.topology.generators:Given",
        "mesh": "fedsim.network.topology.generators:Mesh",
        "star": "fedsim.network.topology.generators:Star",
        "two-tier": "fedsim.network.topology.generators:TwoTier",
    },
)

CLOUD: Final = "cloud"
MOST_EDGES: Final = 10**7
Row = dict[str, str | bool | int | float]


class Star(Component):
    """One base station at the origin, joined to the cloud by one wired link; clients are attached to it.

    Attributes
    ----------
    backhaul : the wired link
    radio_bps : greatest rate of the base station's radio, both directions together; no limit by default
    """

    backhaul: Edge
    radio_bps: Positive[BitsPerSecond] | None = None

    def graph(self, positions_m: FloatArray) -> "nx.Graph[str]":
        graph: nx.Graph[str] = nx.Graph()
        graph.add_node(CLOUD, kind="cloud")
        _add_station(graph, 0, (0.0, 0.0), self.radio_bps)
        _join(graph, "bs-0", CLOUD, self.backhaul)
        return graph


class TwoTier(Component):
    """Several cells, each with a base station and an edge server of its own, below one cloud.

    The base stations stand on a hexagonal grid, from the origin outwards in rings.

    Attributes
    ----------
    cells : number of cells
    site_distance_m : between neighbouring base stations
    fronthaul : the wired link between a base station and its edge server
    backhaul : the wired link between an edge server and the cloud
    radio_bps : greatest rate of each base station's radio, both directions together; no limit by default
    """

    cells: Annotated[int, Field(ge=1), Bound(0, 10**4)]
    site_distance_m: Positive[Metres]
    fronthaul: Edge
    backhaul: Edge
    radio_bps: Positive[BitsPerSecond] | None = None

    def graph(self, positions_m: FloatArray) -> "nx.Graph[str]":
        graph: nx.Graph[str] = nx.Graph()
        graph.add_node(CLOUD, kind="cloud")
        for i, place in enumerate(hexagonal_sites(self.cells, self.site_distance_m).tolist()):
            _add_station(graph, i, (place[0], place[1]), self.radio_bps)
            graph.add_node(f"edge-{i}", kind="edge-server")
            _join(graph, f"bs-{i}", f"edge-{i}", self.fronthaul)
            _join(graph, f"edge-{i}", CLOUD, self.backhaul)
        return graph


class Mesh(Component):
    """Clients that relay each other's traffic over wireless hops, to a base station at the origin.

    Any two nodes within range are joined. A radio takes part in every hop at its node, sending or receiving, so that
    relayed traffic takes the capacity of a relay's radio twice.

    Attributes
    ----------
    range_m : range of a radio
    hop : capacity and delay of one wireless hop
    radio_bps : greatest rate of each radio, both directions together; no limit by default
    backhaul : the wired link between the base station and the cloud
    """

    range_m: Annotated[Positive[Metres], Bound(1e-3, 1e9)]
    hop: Edge
    backhaul: Edge
    radio_bps: Positive[BitsPerSecond] | None = None

    def graph(self, positions_m: FloatArray) -> "nx.Graph[str]":
        from scipy.spatial import cKDTree

        graph = Star(backhaul=self.backhaul, radio_bps=self.radio_bps).graph(positions_m)
        radio = {} if self.radio_bps is None else {"radio_bps": self.radio_bps}
        names = ["bs-0"]
        for i, (x_m, y_m) in enumerate(positions_m.tolist()):
            names.append(f"client-{i}")
            graph.add_node(names[-1], kind="client", client=i, relays=True, x_m=x_m, y_m=y_m, **radio)
        radios = cKDTree(np.concatenate([np.zeros((1, 2)), positions_m]))
        # Counted first, as room for all pairs of a large crowd may not be there.
        pairs = int(radios.count_neighbors(radios, self.range_m) - radios.n) // 2
        if pairs > MOST_EDGES:
            raise ScenarioError(
                f"network.topology.range_m: with {self.range_m} m there are {pairs} wireless hops; allowed: at most "
                f"{MOST_EDGES}, by a shorter range or fewer clients"
            )
        for one, other in sorted(radios.query_pairs(self.range_m)):
            _join(graph, names[one], names[other], self.hop.model_copy(update={"wireless": True}))
        return graph


class File(Component):
    """A graph in a file: GraphML (``.graphml``), or networkx's node-link JSON (``.json``).

    Attributes
    ----------
    path : of the file
    """

    path: InputPath

    def graph(self, positions_m: FloatArray) -> "nx.Graph[Any]":
        path = Path(self.path)
        text = read_text(path, ScenarioError, f"topology: {shortened(self.path)}")
        readers = {".graphml": graph_of_graphml, ".json": graph_of_json}
        if path.suffix not in readers:
            raise ScenarioError(f"topology: {path} is not allowed; a file ends in {' or '.join(readers)}")
        graph = readers[path.suffix](text, str(path))
        graph.graph[SOURCE] = str(path)
        return graph


class Given(Component):
    """A graph in the scenario itself, in networkx's node-link form.

    Attributes
    ----------
    nodes : one table per node with its ``id`` and attributes
    edges : one table per edge with ``source``, ``target`` and attributes
    directed : whether the two directions of an edge are given separately
    """

    nodes: Annotated[tuple[Row, ...], Field(min_length=1, strict=False)]
    edges: Annotated[tuple[Row, ...], Field(strict=False)]
    directed: bool = False

    @classmethod
    def of(cls, graph: "nx.Graph[Any]") -> "Given":
        if graph.is_multigraph():
            raise ValueError("a multigraph is not allowed; there must be at most one edge between two nodes")
        return cls(
            nodes=tuple({"id": str(node), **_plain(rest)} for node, rest in graph.nodes(data=True)),
            edges=tuple(
                {"source": str(one), "target": str(other), **_plain(rest)}
                for one, other, rest in graph.edges(data=True)
            ),
            directed=graph.is_directed(),
        )

    def graph(self, positions_m: FloatArray) -> "nx.Graph[str]":
        return _assembled(list(self.nodes), list(self.edges), self.directed, "topology")


def hexagonal_sites(number: int, distance_m: float) -> FloatArray:
    """Return sites on a hexagonal grid in metres, the origin and then ring by ring, shape (number, 2)."""
    corners = [(math.cos(math.pi / 3 * k), math.sin(math.pi / 3 * k)) for k in range(6)]
    sites = [(0.0, 0.0)]
    ring = 1
    while len(sites) < number:
        for k, (x, y) in enumerate(corners):
            step_x, step_y = corners[(k + 2) % 6]
            sites += [(ring * x + i * step_x, ring * y + i * step_y) for i in range(ring)]
        ring += 1
    return distance_m * np.array(sites[:number])


def graph_of_graphml(text: str, source: str) -> "nx.Graph[Any]":
    """Return the graph of GraphML text.

    A document type is refused, because its entities may grow without bound when expanded, or name other files.
    """
    from xml.etree.ElementTree import ParseError

    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ScenarioError(f"topology: {source}: a document type is not allowed in GraphML")
    try:
        graph: nx.Graph[Any] = nx.parse_graphml(text)
    except (ParseError, nx.NetworkXException, KeyError, ValueError, TypeError) as error:
        raise ScenarioError(f"topology: {source} is not valid GraphML: {error}") from None
    for _, _, attributes in graph.edges(data=True):
        attributes.pop("id", None)  # GraphML's own, without meaning here
    return graph


def graph_of_json(text: str, source: str) -> "nx.Graph[str]":
    """Return the graph of node-link JSON text; its list of edges is ``edges`` or, in older files, ``links``."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"topology: {source} is not valid JSON: {error}") from None
    edges = found.get("edges", found.get("links")) if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("nodes"), list) or not isinstance(edges, list):
        raise ScenarioError(f"topology: {source}: is not a node-link graph; it needs the lists nodes and edges")
    if found.get("multigraph", False):
        raise ScenarioError(f"topology: {source}: a multigraph is not allowed; at most one edge joins two nodes")
    return _assembled(found["nodes"], edges, bool(found.get("directed", False)), f"topology: {source}")


def _assembled(nodes: list[Any], edges: list[Any], directed: bool, source: str) -> "nx.Graph[str]":
    graph: nx.Graph[str] = nx.DiGraph() if directed else nx.Graph()
    for i, row in enumerate(nodes):
        name = _taken(row, "id", f"{source}: node number {i}")
        if name in graph:
            raise ScenarioError(f"{source}: node {name!r} occurs twice")
        graph.add_node(name, **{key: value for key, value in row.items() if key != "id"})
    for i, row in enumerate(edges):
        ends = [_taken(row, key, f"{source}: edge number {i}") for key in ("source", "target")]
        for end in ends:
            if end not in graph:
                raise ScenarioError(f"{source}: edge {ends[0]!r} - {ends[1]!r}: there is no node {end!r}")
        if graph.has_edge(*ends):
            raise ScenarioError(f"{source}: edge {ends[0]!r} - {ends[1]!r} occurs twice")
        graph.add_edge(*ends, **{key: value for key, value in row.items() if key not in ("source", "target")})
    return graph


def _taken(row: Any, key: str, where: str) -> str:
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ScenarioError(f"{where}: {key} = {value!r} is not allowed; it must be a name or a whole number")
    return str(value)


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in attributes.items()}


def _add_station(graph: "nx.Graph[str]", i: int, place_m: tuple[float, float], radio_bps: float | None) -> None:
    radio = {} if radio_bps is None else {"radio_bps": radio_bps}
    graph.add_node(f"bs-{i}", kind="base-station", x_m=place_m[0], y_m=place_m[1], **radio)


def _join(graph: "nx.Graph[str]", one: str, other: str, edge: Edge) -> None:
    graph.add_edge(one, other, **edge.model_dump())
