"""The network of a graph: clients, cells, edge servers and a cloud, with routes, fair sharing and failures.

Transfers on a link share it max-min fairly (`fedsim.network.topology.block_shares`), on the clock
(`fedsim.network.medium.fluid`). The access (`fedsim.network.graph.access`) sets the capacity of a client's own link,
and the association (`fedsim.network.medium.association`) its base station.
"""

from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, Self

import networkx as nx
import numpy as np
from pydantic import Field, field_validator, model_validator

from fedsim.answers import Contract, InstanceOf
from fedsim.arrays import FloatArray
from fedsim.capabilities import ENDS_AT_CLOUD, ENDS_AT_EDGES, MOBILITY, MODEL_BITS, ROUTES, SITES
from fedsim.errors import ScenarioError
from fedsim.inputs.bounds import check_pairs
from fedsim.network.contracts import LinkFacts, Links
from fedsim.network.graph.access import ACCESS, ACCESSES, Access, AccessRun
from fedsim.network.graph.links import GraphLinks, StationAccess
from fedsim.network.medium.failures import FAILURES, Failure
from fedsim.network.topology.attachment import InitialAccess, station_sites_m
from fedsim.network.topology.generators import LAYOUTS, Given
from fedsim.network.topology.handover import HandoverRule
from fedsim.network.topology.mobility import MOBILITIES, MOBILITY_MODEL, Mobility, Walk, standing
from fedsim.network.transport.transport import TRANSPORT, TRANSPORTS, NoTransport, Transport
from fedsim.registry import Component, Slot
from fedsim.run_setup import RunSetup
from fedsim.units import NonNegative, Seconds


class Layout(Protocol):
    """The source of a network's graph."""

    def graph(self, positions_m: FloatArray) -> "nx.Graph[Any]":
        """Return the graph for clients at positions in metres of shape (K, 2).

        Parameters
        ----------
        positions_m : of the clients in metres, shape (K, 2)
        """
        ...


LAYOUT: Final = Contract("topology", Layout, {"graph": InstanceOf(nx.Graph)})


class Graph(Component):
    """Links and nodes of every kind, given as a graph and shared by all transfers in progress.

    A transfer takes the route of least delay, shares each of its links and radios max-min fairly with the other
    transfers there, and its last bit arrives after the sum of the delays. When nodes or links fail or work again, the
    remaining bits of every transfer take the route that is the shortest then, or wait while there is none.

    Attributes
    ----------
    topology : table with a kind (file, given, mesh, star, two-tier), or a networkx graph in Python
    access : table or None
        The link of each client to a base station, for graphs that name no clients: ``constant`` (the kind may be left
        out) or ``radio``.
    server : node at which transfers end: the cloud, or the edge server of least delay when a transfer starts
    trouble : list of failures
    mobility : movement of the clients; None if they stand still
    handover : rule by which a client with a transfer changes its base station, also where one has failed
    interruption_s : time for which a client's access carries nothing after each handover
    transport : what TCP adds to the messages of clients; ``none``, the default, for nothing
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})

    topology: Annotated[Layout, Slot(LAYOUTS)]
    access: Annotated[Access, Slot(ACCESSES)] | None = None
    server: Literal["cloud", "edge-server"] = "cloud"
    trouble: Annotated[tuple[Annotated[Failure, Slot(FAILURES)], ...], Field(strict=False)] = ()
    mobility: Annotated[Mobility, Slot(MOBILITIES)] | None = None
    handover: HandoverRule = HandoverRule()
    interruption_s: NonNegative[Seconds] = 0.0
    transport: Annotated[Transport, Slot(TRANSPORTS)] = NoTransport()

    @property
    def provides(self) -> frozenset[str]:
        ends = {ENDS_AT_CLOUD} if self.server == "cloud" else {ENDS_AT_EDGES, SITES, ROUTES}
        return frozenset(ends | ({MOBILITY} if self.mobility is not None else set()))

    @field_validator("topology", mode="before")
    @classmethod
    def _networkx(cls, value: Any) -> Any:
        return Given.of(value) if isinstance(value, nx.Graph) else value

    @model_validator(mode="after")
    def _moves_between_cells(self) -> Self:
        if self.mobility is not None and self.access is None:
            raise ValueError("mobility moves clients between base stations, so it needs the table access")
        return self

    def build(self, run: RunSetup) -> Links:
        graph = LAYOUT.checked(self.topology).graph(run.positions_m)
        movement = standing if self.mobility is None else MOBILITY_MODEL.checked(self.mobility).build(run)

        def walk_of(client: int) -> Walk:
            x_m, y_m = run.positions_m[client].tolist()
            return Walk(movement(client, (x_m, y_m)))

        access = None
        if self.access is not None:
            moves = self.mobility is not None
            places_m = run.positions_m
            if moves:
                start_s = np.zeros(1)
                places_m = np.concatenate([walk_of(client).at(start_s, 0.0) for client in range(run.clients)])
            sites_m = station_sites_m(graph)
            check_pairs(len(places_m), len(sites_m), ScenarioError)
            own = ACCESS.checked(self.access)
            coverage = own.build(AccessRun(run.clients, run.streams, places_m, sites_m=sites_m, moves=moves))
            first = InitialAccess.strongest(coverage, places_m, own.delay_s, own.shares_airtime)
            apart_m = places_m - sites_m[first.station]
            distance_m = np.hypot(apart_m[:, 0], apart_m[:, 1])
            facts = LinkFacts(positions_m=places_m, distance_m=distance_m, snr=first.snr)
            access = StationAccess(coverage, first, walk_of, moves, self.handover, self.interruption_s, facts)
        links = GraphLinks(graph, self.server, run.clients, access, self.trouble, run.streams)
        return TRANSPORT.checked(self.transport).over(links, run.streams)
