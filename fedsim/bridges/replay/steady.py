"""The graph of a scenario as another simulator needs it: capacities, and the route of each client."""

from dataclasses import dataclass

import numpy as np

from fedsim.errors import ScenarioError
from fedsim.network.contracts import PLACEMENT
from fedsim.network.graph.graph import Graph
from fedsim.network.graph.links import GraphLinks
from fedsim.network.topology.attachment import NEAREST_SERVER, AttachedTopology
from fedsim.network.topology.flow_state import Route
from fedsim.network.transport.transport import NoTransport
from fedsim.run_setup import RunSetup
from fedsim.scenario import Scenario
from fedsim.streams import Streams


@dataclass(frozen=True)
class Capacity:
    """What transfers share: one direction of an edge, or the radio of a node."""

    name: str
    capacity_bps: float
    delay_s: float


@dataclass(frozen=True)
class Way:
    source: str
    target: str
    capacities: tuple[int, ...]
    delay_s: float


@dataclass(frozen=True)
class SteadyGraph:
    nodes: tuple[str, ...]
    capacities: tuple[Capacity, ...]
    down: tuple[Way, ...]
    up: tuple[Way, ...]


def steady_graph(scenario: Scenario) -> SteadyGraph:
    """Return the graph of a scenario with the routes of its clients."""
    network = scenario.network
    if not isinstance(network, Graph):
        raise ScenarioError(f"network: a {type(network).__name__} has no links to replay; allowed: kind = 'graph'")
    changing = _changing(network, scenario)
    if changing:
        raise ScenarioError(f"network: a replay needs capacities and routes that stay as they are; {changing}")
    streams = Streams(scenario.seed)
    clients = scenario.crowd.clients
    positions_m = PLACEMENT.checked(scenario.crowd.placement).positions(clients, streams)
    links = network.build(RunSetup.at(positions_m, streams))
    if not isinstance(links, GraphLinks):
        raise ScenarioError(f"network: {type(links).__name__} are no links of a graph; allowed: kind = 'graph'")
    attached = links.attach()
    if links.access is not None and links.access.channels(attached.access) is not None:
        raise ScenarioError(
            "network.access.cell: links that fade have no constant capacity; allowed for a replay: "
            "fading_in_shares = 'mean' in both directions, or fading = 'none'"
        )
    return _described(attached)


def _changing(network: Graph, scenario: Scenario) -> str | None:
    """Return what of a scenario changes capacities or routes, or adds other transfers; None for nothing."""
    rounds = scenario.rounds
    found = {
        "network.mobility": network.mobility is not None,
        "network.trouble": bool(network.trouble),
        "network.transport": not isinstance(network.transport, NoTransport),
        "network.access.spectrum = 'shared'": network.access is not None and network.access.shares_airtime,
        "rounds.faults.link_outage": rounds.faults is not None and rounds.faults.link_outage is not None,
        "rounds.edges": rounds.edges is not None,
        "rounds.secure_aggregation": rounds.secure_aggregation is not None,
    }
    named = [name for name, there in found.items() if there]
    return f"leave out {', '.join(named)}" if named else None


def _described(attached: AttachedTopology) -> SteadyGraph:
    topology = attached.topology
    names = topology.names
    capacities = [
        Capacity(f"{names[link.tail]} -> {names[link.head]}", link.capacity_bps, link.delay_s)
        for link in topology.links
    ]
    # A radio without a limit holds no transfer back, so that it is left out.
    number: dict[int, int] = {link: link for link in range(len(capacities))}
    for node, settings in enumerate(topology.nodes):
        if settings.radio_bps is not None:
            number[len(topology.links) + node] = len(capacities)
            capacities.append(Capacity(f"radio of {names[node]}", settings.radio_bps, 0.0))

    def way(ends: tuple[int, int]) -> Way:
        (source, target), route = attached.way(ends)
        return Way(names[source], names[target], _along(route, number), 0.0 if route is None else route.delay_s)

    clients = topology.client_node
    return SteadyGraph(
        tuple(names),
        tuple(capacities),
        tuple(way((NEAREST_SERVER, client)) for client in clients),
        tuple(way((client, NEAREST_SERVER)) for client in clients),
    )


def _along(route: Route | None, number: dict[int, int]) -> tuple[int, ...]:
    if route is None:  # refused where the links of a graph are built
        return ()
    times = np.rint(route.weights).astype(int).tolist()
    return tuple(number[link] for link, often in zip(route.links, times, strict=True) for _ in range(often))
