"""Draws the import graph of a package: rooms, arrows between them, and what is wrong with them.

    python tests/tools/house.py fedsim.rounds fedsim.network     # rooms, arrows, upward arrows, circles

Imports are read from the source and never run; those inside functions and for type checking count. A room of a package
is a file or a folder right below it. Which arrows go upward is told by the layers of pyproject.toml.
"""

import argparse
import importlib.util
import re
import tomllib
from pathlib import Path

import grimp
import networkx as nx


def home() -> Path:
    found = importlib.util.find_spec("fedsim")
    if found is None or found.origin is None:
        raise SystemExit("there is no fedsim to look at")
    return Path(found.origin).parent


def layers_of(package: str) -> list[set[str]]:
    """Return the layers that pyproject.toml states for a package, the highest first; none if it states none."""
    contracts = tomllib.loads((home().parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        if contract["type"] == "layers" and contract["containers"] == [package]:
            return [{room.strip(" ()") for room in re.split("[|:]", layer)} for layer in contract["layers"]]
    return []


def rooms_of(package: str) -> "nx.DiGraph[str]":
    """Return the rooms of a package and how many imports go from one to another."""
    graph = grimp.build_graph("fedsim", cache_dir=None)
    drawn: nx.DiGraph[str] = nx.DiGraph()
    depth = package.count(".") + 1
    drawn.add_nodes_from(child.split(".")[depth] for child in graph.find_children(package))
    for importer in graph.find_descendants(package):
        for imported in graph.find_modules_directly_imported_by(importer):
            if imported.startswith(f"{package}."):
                source, target = importer.split(".")[depth], imported.split(".")[depth]
                if source != target:
                    seen = drawn.get_edge_data(source, target, {"imports": 0})["imports"]
                    drawn.add_edge(source, target, imports=seen + 1)
    return drawn


def show_graph(package: str) -> None:
    """Print the rooms of a package, its arrows, and what is wrong with them."""
    drawn, layers = rooms_of(package), layers_of(package)
    level = {room: height for height, layer in enumerate(layers) for room in layer}
    upward = [(a, b) for a, b in drawn.edges if a in level and b in level and level[a] >= level[b]]
    circles = [sorted(circle) for circle in nx.strongly_connected_components(drawn) if len(circle) > 1]
    print(f"{package}: {drawn.number_of_nodes()} rooms, {drawn.number_of_edges()} arrows")
    for room in sorted(drawn, key=lambda room: (level.get(room, len(level)), room)):
        below = ", ".join(f"{other} {drawn.edges[room, other]['imports']}" for other in sorted(drawn[room]))
        print(f"  {room} -> {below or '-'}")
    print(f"  upward or sideways: {', '.join(f'{a} -> {b}' for a, b in upward) or 'none'}{'' if layers else ' known'}")
    print(f"  circles: {'; '.join(', '.join(circle) for circle in circles) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="*", help="packages to draw")
    chosen = parser.parse_args()
    for package in chosen.package:
        show_graph(package)


if __name__ == "__main__":
    main()
