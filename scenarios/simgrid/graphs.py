"""Runs that fedsim and SimGrid are compared on: those on four graphs, or one that was recorded."""

from pathlib import Path
from typing import Any

from fedsim import History, Scenario, Study, read_run, simulate


def recorded(run: Path) -> dict[str, tuple[Scenario, History]]:
    return {run.name: (Scenario.load(run / "scenario.toml"), read_run(run))}


def simulated(rounds: int) -> dict[str, tuple[Scenario, History]]:
    """Return runs on four graphs by name, about timing only; the last has ways of 5 to 157 ms over three regions."""
    study = Study.load(Path(__file__).with_name("graphs.toml"))
    found = {one.variant: one.scenario.replace({"rounds.count": rounds}) for one in study.points}
    nodes: list[dict[str, Any]] = [{"id": "cloud", "kind": "cloud"}]
    edges: list[dict[str, Any]] = []
    for region, delay_s in enumerate((0.004, 0.04, 0.15)):
        nodes.append({"id": f"region-{region}", "kind": "router"})
        edges.append({"source": f"region-{region}", "target": "cloud", "capacity_bps": 4e7, "delay_s": delay_s})
    for client in range(study.base.crowd.clients):
        nodes.append({"id": f"home-{client}", "kind": "client", "client": client})
        edge = {"source": f"home-{client}", "target": f"region-{client % 3}", "delay_s": 0.001 + 0.001 * (client % 7)}
        edges.append({**edge, "capacity_bps": 2e6 * (1 + client % 5)})
    wide = {"kind": "graph", "topology": {"kind": "given", "nodes": nodes, "edges": edges}}
    found["wide area"] = found["cells"].replace({"network": wide})
    return {name: (scenario, simulate(scenario)) for name, scenario in found.items()}
