"""The links of a graph on the clock of one run: transfers that share them, and links that change meanwhile."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from simpy import Environment

from fedsim.errors import ScenarioError
from fedsim.network.medium.association import Association, Handover
from fedsim.network.medium.fluid import Fluid, FluidTransfer
from fedsim.network.topology.attachment import NEAREST_SERVER, AttachedTopology
from fedsim.network.topology.coverage import AccessChannels, Offer
from fedsim.network.transfers import RoutedMedium
from fedsim.streams import Streams

EdgeRoutes = Callable[[], tuple[list[str], str]]


class GraphMedium(RoutedMedium):
    def __init__(
        self,
        env: Environment,
        attached: AttachedTopology,
        streams: Streams,
        edge_routes: EdgeRoutes,
        channels: AccessChannels | None = None,
    ) -> None:
        self.env, self.streams, self._attached, self._edge_routes = env, streams, attached, edge_routes
        self.topology = attached.topology
        self._capacity_bps = self.topology.resources_bps()
        self._channels = channels
        self.fluid = Fluid(env, self._capacity_bps, channels)
        self._factors: dict[int, dict[int, float]] = {}
        self.association: Association | None = None

    @property
    def handovers(self) -> list[Handover]:
        return [] if self.association is None else self.association.handovers

    def downlink(self, client: int, bits: float) -> FluidTransfer:
        return self._begin((NEAREST_SERVER, self.topology.client_node[client]), bits, up=False)

    def uplink(self, client: int, bits: float) -> FluidTransfer:
        return self._begin((self.topology.client_node[client], NEAREST_SERVER), bits)

    def transfer(self, source: str, target: str, bits: float) -> FluidTransfer:
        """Start a transfer between two nodes now, such as an edge server's aggregate to the cloud."""
        ends = self.topology.node(source), self.topology.node(target)
        if ends[0] == ends[1]:
            raise ScenarioError(f"{self.topology.where}: a transfer from {source!r} to itself is not allowed")
        return self._begin(ends, bits)

    def count_air(self) -> None:
        self.fluid.count_air()

    def edge_routes(self) -> tuple[list[str], str]:
        return self._edge_routes()

    def edges(self, chosen: Sequence[tuple[str, str]] | None = None) -> list[tuple[str, list[int]]]:
        """Return (name, links) of the edges between given nodes, or of all wireless ones."""
        if chosen is not None:
            return [self._edge(*names) for names in chosen]
        own = {number for pair in self._attached.access for number in pair}
        found: dict[str, list[int]] = {}
        for link in self.topology.links:
            if link.wireless and link.number not in own:
                ends = sorted((self.topology.names[link.tail], self.topology.names[link.head]))
                found.setdefault(" - ".join(ends), []).append(link.number)
        found.update((f"access of client {client}", list(pair)) for client, pair in enumerate(self._attached.access))
        return list(found.items())

    def scale(self, links: Sequence[int], cause: int, factor: float) -> None:
        """Multiply the capacity of links by a factor; the factors of several causes multiply."""
        for link in links:
            factors = self._factors.setdefault(link, {})
            if factors.get(cause, 1.0) != factor:
                factors[cause] = factor
                self._apply(link)
                if self.topology.shares_airtime(link):  # the routes over it have other weights now
                    self.find_routes(transfer for transfer in self.fluid.transfers.values() if transfer.uses(link))

    def join(self, client: int, station: int, offer: Offer) -> bool:
        own, (down, up) = self.topology.client_node[client], self._attached.access[client]
        changed = self.topology.links[up].head != station
        if changed:
            self.topology.turn(down, station, own)
            self.topology.turn(up, own, station)
        if self._channels is not None and self._channels.join(client, offer):
            for link in (down, up):
                self.fluid.fading_changed(link)
        for link, rate_bps in zip((down, up), offer.rates_bps, strict=True):
            if self._capacity_bps[link] != rate_bps:
                changed = True
                self._capacity_bps[link] = rate_bps
                self._apply(link)
        return changed

    def lose(self, node: int | None, links: Sequence[int], lost: bool) -> None:
        """Start or end a failure of a node and links, and find new routes for all transfers."""
        if node is not None:
            self.topology.lose_node(node, lost)
        for link in links:
            self.topology.lose_link(link, lost)
        if node is not None and self.association is not None:
            self.association.stations_changed()
        self.find_routes(self.fluid.transfers.values())

    def find_routes(self, transfers: Iterable[FluidTransfer]) -> None:
        for transfer in list(transfers):
            transfer.ends, route = self._attached.way(transfer.ends)
            self.fluid.move(transfer, route)

    def _edge(self, one: str, other: str) -> tuple[str, list[int]]:
        links = self.topology.between(self.topology.node(one), self.topology.node(other))
        if not links:
            raise ScenarioError(f"{self.topology.where}: there is no edge {one!r} - {other!r}")
        return " - ".join(sorted((one, other))), links

    def _begin(self, ends: tuple[int, int], bits: float, *, up: bool = True) -> FluidTransfer:
        if self.association is None:
            return self._start(ends, bits, up=up)
        clients = self.association.clients_at(ends)
        for client in clients:
            self.association.connect(client)
        transfer = self._start(ends, bits, up=up)
        for client in clients:
            self.association.begun(client, transfer)
        return transfer

    def _start(self, ends: tuple[int, int], bits: float, *, up: bool) -> FluidTransfer:
        ends, route = self._attached.way(ends)
        return self.fluid.begin(bits, route, ends, up=up)

    def _apply(self, link: int) -> None:
        left_bps = float(self._capacity_bps[link] * np.prod(list(self._factors.get(link, {}).values())))
        self.topology.tune(link, left_bps)
        self.fluid.set_capacity(link, left_bps)
