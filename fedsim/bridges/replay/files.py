"""The files of a replay: a platform in SimGrid's XML, and a table of flows.

The platform (https://simgrid.org/doc/latest/Platform_reference.html) has a host for each node at which a transfer
begins or ends, a link for each direction of an edge and for each radio with a limit, and the routes of each client that
takes part, in both directions, as acknowledgements go back. A link that stands twice in a route takes its bits twice.
"""

import csv
from functools import partial
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import numpy as np

from fedsim.bridges.replay.flows import Flows, flows_of
from fedsim.bridges.replay.steady import SteadyGraph, steady_graph
from fedsim.errors import RunError
from fedsim.history import History
from fedsim.scenario import Scenario
from fedsim.whole_files import replace_file

PLATFORM: Final = "platform.xml"
PLATFORM_WITHOUT_DELAYS: Final = "platform_without_delays.xml"
FLOWS: Final = "flows.csv"
_COLUMNS: Final = "flow round client direction source target start_s bits delay_s end_s whole"
_HEAD: Final = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"


def write_replay(
    scenario: Scenario, history: History, folder: str | Path, *, rounds: tuple[int, int] | None = None
) -> Flows:
    """Write the transfers of a finished run over a graph as files that SimGrid replays, and return them.

    ``flows.csv`` has a row for each transfer. ``platform.xml`` is the graph with its delays. In
    ``platform_without_delays.xml`` all delays are 0, for a replay that adds ``delay_s`` of a flow after its last bit.
    """
    graph, flows = steady_graph(scenario), flows_of(history, rounds)
    most = len(graph.up)
    if flows.client.max() >= most:
        raise RunError(f"{history.name}: client {flows.client.max()} is not among the {most} clients of the scenario")
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    for name, delays in ((PLATFORM, True), (PLATFORM_WITHOUT_DELAYS, False)):
        replace_file(to / name, partial(_write_platform, graph=graph, flows=flows, delays=delays))
    replace_file(to / FLOWS, lambda path: _write_flows(path, graph, flows))
    return flows


def platform(graph: SteadyGraph, flows: Flows, *, delays: bool) -> str:
    """Return the platform of a graph, with the routes of the clients of some flows, as XML of SimGrid's format 4.1."""
    clients = np.unique(flows.client).tolist()
    ways = list(dict.fromkeys(way for client in clients for way in (graph.down[client], graph.up[client])))
    root = ElementTree.Element("platform", version="4.1")
    zone = ElementTree.SubElement(root, "zone", id="fedsim", routing="Full")
    for host in dict.fromkeys(end for way in ways for end in (way.source, way.target)):
        ElementTree.SubElement(zone, "host", id=host, speed="1f")
    for number in sorted({number for way in ways for number in way.capacities}):
        capacity = graph.capacities[number]
        ElementTree.SubElement(
            zone,
            "link",
            id=capacity.name,
            bandwidth=f"{capacity.capacity_bps!r}bps",
            latency=f"{capacity.delay_s if delays else 0.0!r}s",
        )
    for way in ways:
        route = ElementTree.SubElement(zone, "route", src=way.source, dst=way.target, symmetrical="NO")
        for number in way.capacities:
            ElementTree.SubElement(route, "link_ctn", id=graph.capacities[number].name)
    ElementTree.indent(root)
    return _HEAD + ElementTree.tostring(root, encoding="unicode") + "\n"


def _write_platform(path: Path, graph: SteadyGraph, flows: Flows, delays: bool) -> None:
    path.write_text(platform(graph, flows, delays=delays), encoding="utf-8")


def _write_flows(path: Path, graph: SteadyGraph, flows: Flows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS.split())
        rows = zip(*(column.tolist() for column in vars(flows).values()), strict=True)
        for flow, (number, client, up, start_s, end_s, bits, whole) in enumerate(rows):
            direction, way = ("up", graph.up[client]) if up else ("down", graph.down[client])
            row = (flow, number, client, direction, way.source, way.target, start_s, bits, way.delay_s, end_s)
            writer.writerow((*row, int(whole)))
