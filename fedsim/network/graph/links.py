"""The links of a graph: alone by the narrowest link, shared on a medium with its association and failures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import networkx as nx
import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import Environment
from fedsim.errors import ScenarioError
from fedsim.network.contracts import Directions, LinkFacts, Links
from fedsim.network.medium.association import Association
from fedsim.network.medium.failures import FAILURE, Failure
from fedsim.network.medium.graph import GraphMedium
from fedsim.network.radio.channel import seconds_of
from fedsim.network.topology.attachment import NEAREST_SERVER, AttachedTopology, InitialAccess
from fedsim.network.topology.coverage import AccessChannels, Coverage, FadedCoverage, FadedView
from fedsim.network.topology.handover import HandoverRule
from fedsim.network.topology.mobility import Walk
from fedsim.streams import Streams


@dataclass(frozen=True)
class StationAccess:
    coverage: Coverage
    first: InitialAccess
    walk_of: Callable[[int], Walk]
    moves: bool
    handover: HandoverRule
    interruption_s: float
    facts: LinkFacts

    def channels(self, links: Sequence[tuple[int, int]]) -> AccessChannels | None:
        """Return the fading of the links, (downlink, uplink) of each client; None where none fades."""
        if not isinstance(self.coverage, FadedCoverage) or self.first.snr is None:
            return None
        return self.coverage.channels(links, np.stack([self.first.downlink_bps, self.first.uplink_bps]), self.first.snr)

    def uplink_snr_hz(self, client: IntArray, place_m: FloatArray | None) -> FloatArray | None:
        if not isinstance(self.coverage, FadedCoverage) or self.first.snr is None:
            return None
        if place_m is None:
            return np.asarray(self.first.snr[1, client] * self.coverage.uplink_hz)
        view = self.coverage.view(client, place_m)
        if not isinstance(view, FadedView):
            return None
        return np.asarray(view.snrs(np.argmax(view.signal_db, axis=1))[:, 1] * self.coverage.uplink_hz)

    def changes_stations(self, stations: int) -> bool:
        alone = stations == 1 and np.isinf(self.coverage.step_m)
        return not alone and (self.moves or (stations > 1 and self.handover.reselect_after_s is not None))


class GraphLinks(Links):
    """The links of a `Graph`; what a run changes lives in the `GraphMedium` that `open` returns."""

    serving: IntArray

    def __init__(
        self,
        graph: "nx.Graph[Any]",
        server: Literal["cloud", "edge-server"],
        clients: int,
        access: StationAccess | None,
        failures: Sequence[Failure],
        streams: Streams,
    ) -> None:
        self._graph, self._server, self._clients, self.access = graph, server, clients, access
        self._failures, self._streams = failures, streams
        self.shared = Directions(down=True, up=True)
        self.serving = self._serving()
        self._walks: dict[int, tuple[Walk, float]] = {}

    def attach(self) -> AttachedTopology:
        first = None if self.access is None else self.access.first
        return AttachedTopology(self._graph, self._server, self._clients, first)

    def open(self, env: Environment) -> GraphMedium:
        attached, access = self.attach(), self.access
        channels = None if access is None else access.channels(attached.access)
        medium = GraphMedium(env, attached, self._streams, self.edge_routes, channels)
        if access is not None and access.changes_stations(len(attached.stations)):
            medium.association = Association(
                medium,
                attached,
                access.coverage,
                access.handover,
                access.interruption_s,
                access.first.station,
                access.walk_of,
            )
        for number, failure in enumerate(self._failures):
            FAILURE.checked(failure).start(medium, number)
        return medium

    def describe(self) -> LinkFacts:
        known = LinkFacts() if self.access is None else self.access.facts
        return replace(known, rate_bps=np.stack([self._alone(ends)[0] for ends in (_down, _up)]))

    def uplink_snr_hz(self, client: IntArray, time_s: float) -> FloatArray | None:
        """Return what the strongest stations measure: those with which a transfer would start at this instant."""
        access = self.access
        if access is None or access.first.snr is None:
            return None
        if not access.moves or time_s == 0:
            return access.uplink_snr_hz(client, None)
        places = np.concatenate(
            [self._place_m(access.walk_of, number, time_s) for number in client.tolist()] or [np.zeros((0, 2))]
        )
        return access.uplink_snr_hz(client, places)

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        """Return the durations of clients alone in a network without failures; on the clock use `open`."""
        return self.expected_downlink_s(bits)[client]

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self.expected_uplink_s(bits)[client]

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return ``bits / narrowest link + delay`` of clients alone, without failures, at their first places."""
        return self._alone_s(bits, _down)

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return self._alone_s(bits, _up)

    def expected_on_air_s(self, bits: float, *, up: bool) -> FloatArray:
        """Return the time of a client's own link, however narrow those behind it are."""
        _, _, own_bps = self._alone(_up if up else _down)
        return seconds_of(bits, own_bps)

    def edge_routes(self) -> tuple[list[str], str]:
        attached = self.attach()
        names, topology = attached.topology.names, attached.topology
        clouds = [i for i, node in enumerate(topology.nodes) if node.kind == "cloud"]
        if len(clouds) != 1:
            raise ScenarioError(
                f"{topology.where}: there are {len(clouds)} nodes of kind cloud; edge servers need exactly one"
            )
        servers = [attached.servers[at] for at in np.unique(self.serving).tolist()]
        for server in servers:
            if topology.route(server, clouds[0]) is None or topology.route(clouds[0], server) is None:
                raise ScenarioError(
                    f"{topology.where}: edge server {names[server]!r} has no route to and from the cloud"
                )
        return [names[server] for server in servers], names[clouds[0]]

    def _place_m(self, walk_of: Callable[[int], Walk], client: int, time_s: float) -> FloatArray:
        known = self._walks.get(client)
        if known is None or known[1] > time_s:
            known = walk_of(client), time_s
        self._walks[client] = known[0], time_s
        return known[0].at(np.array([time_s]), time_s)

    def _serving(self) -> IntArray:
        """Return the index of the server of each client at time 0, refusing a client without a route each way."""
        attached = self.attach()
        index = {server: at for at, server in enumerate(attached.servers)}
        serving = []
        for client, node in enumerate(attached.topology.client_node):
            (_, server), up = attached.way((node, NEAREST_SERVER))
            down = attached.way((NEAREST_SERVER, node))[1]
            if up is None or down is None:
                name, word = attached.topology.names[node], "to" if up is None else "from"
                raise ScenarioError(
                    f"{attached.topology.where}: client {client} (node {name!r}) has no route {word} the server"
                )
            serving.append(index[server])
        return np.array(serving, dtype=np.int64)

    def _alone_s(self, bits: float, ends: Callable[[int], tuple[int, int]]) -> FloatArray:
        rate_bps, delay_s, _ = self._alone(ends)
        alone_s = seconds_of(bits, rate_bps) + delay_s
        moves = self.access is not None and self.access.moves
        return alone_s if not moves else np.minimum(alone_s, np.finfo(np.float64).max)

    def _alone(self, ends: Callable[[int], tuple[int, int]]) -> tuple[FloatArray, FloatArray, FloatArray]:
        attached = self.attach()
        capacity_bps = attached.topology.resources_bps()
        nodes = attached.topology.client_node
        rate_bps, delay_s, own_bps = np.full(len(nodes), np.inf), np.zeros(len(nodes)), np.full(len(nodes), np.inf)
        for client, node in enumerate(nodes):
            route = attached.way(ends(node))[1]
            if route is not None:
                rate_bps[client] = np.min(capacity_bps[list(route.links)] / route.weights)
                delay_s[client] = route.delay_s
                own_bps[client] = capacity_bps[route.ends[0 if ends is _up else 1]]
        return rate_bps, delay_s, own_bps


def _down(client: int) -> tuple[int, int]:
    return NEAREST_SERVER, client


def _up(client: int) -> tuple[int, int]:
    return client, NEAREST_SERVER
