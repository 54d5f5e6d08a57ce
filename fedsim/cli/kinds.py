"""The command ``fedsim list``: the kinds that may fill a slot of a scenario."""

from importlib import import_module
from typing import Annotated, Any, Final

import typer

from fedsim.cli.printing import print_table
from fedsim.errors import FedsimError
from fedsim.inputs.plugins import registered

_SORTS: Final = {
    "selectors": "selectors:SELECTORS",
    "policies": "rounds:POLICIES",
    "late-rules": "rounds:LATE",
    "effects": "rounds:EFFECTS",
    "staleness-laws": "rounds.aggregation.staleness:STALENESS",
    "weightings": "rounds.aggregation.weightings:WEIGHTINGS",
    "secure-aggregations": "rounds.secure.protocols:SECURE_AGGREGATIONS",
    "groupings": "rounds:GROUPINGS",
    "edge-mergings": "rounds:CLOUD_RULES",
    "backhauls": "rounds:BACKHAULS",
    "networks": "network:NETWORKS",
    "latency-laws": "network:LATENCY_LAWS",
    "placements": "network:PLACEMENTS",
    "path-losses": "network:PATH_LOSSES",
    "shadowings": "network:SHADOWINGS",
    "fadings": "network:FADINGS",
    "rates": "network:RATES",
    "sharings": "network.medium.cell:SHARINGS",
    "power-controls": "network.radio.shares.power_control:POWER_CONTROLS",
    "topologies": "network.topology.generators:LAYOUTS",
    "accesses": "network.graph.access:ACCESSES",
    "access-latencies": "network.cell.access:ACCESS_LATENCIES",
    "transports": "network.transport.transport:TRANSPORTS",
    "passes": "network.satellite.satellite:PASSES",
    "mobilities": "network.topology.mobility:MOBILITIES",
    "troubles": "network.medium.failures:FAILURES",
    "compute-times": "devices:COMPUTE_TIMES",
    "spread-laws": "devices:HETEROGENEITY_LAWS",
    "client-laws": "per_client:CLIENT_LAWS",
    "availabilities": "devices:AVAILABILITIES",
    "dropouts": "devices:DROPOUTS",
    "energies": "devices:ENERGIES",
    "learners": "learning:LEARNERS",
    "tasks": "learning:TASKS",
    "metrics": "learning:METRICS",
    "datasets": "learning:DATASETS",
    "splits": "learning:PARTITIONS",
    "models": "learning:MODELS",
    "local-algorithms": "learning:LOCAL_ALGORITHMS",
    "schedules": "learning:SCHEDULES",
    "compressors": "learning:COMPRESSORS",
    "aggregations": "learning:AGGREGATIONS",
    "server-optimizers": "learning:SERVER_OPTIMIZERS",
    "executors": "learning:EXECUTORS",
    "budgets": "privacy:BUDGETS",
    "mechanisms": "privacy:MECHANISMS",
    "compositions": "privacy:COMPOSITIONS",
    "side-information": "privacy:SIDE_INFORMATIONS",
    "label-histograms": "privacy:LABEL_HISTOGRAMS",
}
"""The registry of each sort: its module in fedsim, and its name there."""


def list_kinds(
    sort: Annotated[str | None, typer.Argument(metavar="[SORT]", help="selectors, networks, ...")] = None,
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="one of the sort, for its options")] = None,
) -> None:
    """List the kinds that may fill a slot of a scenario, or the options of one kind."""
    registries = catalogues()
    singular = {catalogue.noun.replace(" ", "-"): name for name, catalogue in registries.items()}
    sort = singular.get(sort, sort) if sort is not None else None
    if sort is None:
        print_table("fedsim list SORT", [(name, ", ".join(c.kinds())) for name, c in registries.items()])
        return
    if sort not in registries:
        from fedsim.errors import suggest

        raise FedsimError(
            f"list: there is no sort {sort!r}{suggest(sort, registries)}; allowed: {', '.join(registries)}"
        )
    catalogue = registries[sort]
    if kind is not None:
        _print_options(catalogue, kind)
        return
    if sort == "selectors":
        print_table(sort, _selectors(catalogue), ("kind", "what it is"), markup=True)
        return
    rows = [_row(catalogue, kind) for kind in catalogue.kinds()] + _hidden(catalogue)
    if sort == "executors":  # no part of a scenario: its options are those of the command
        print_table(sort, [row[:2] for row in rows], ("kind", "what it is"))
        return
    print_table(sort, rows, ("kind", "what it is", "options"))


def _print_options(catalogue: Any, kind: str) -> None:
    from fedsim.cli.options_of_kind import rows_of

    found, what = _loaded(catalogue, kind)
    if found is None:
        raise FedsimError(f"list: {what}")
    print_table(f"{catalogue.noun} {kind}: {what}", rows_of(found), ("option", "type", "unit", "default", "meaning"))


def catalogues() -> dict[str, Any]:
    places = {sort: place.split(":") for sort, place in _SORTS.items()}
    return {sort: getattr(import_module(f"fedsim.{module}"), name) for sort, (module, name) in places.items()}


def _loaded(catalogue: Any, kind: str) -> tuple[Any, str]:
    """Return the class of a kind, and the first line about it; None and the reason if it cannot be loaded."""
    from pydantic_core import PydanticCustomError

    try:
        found = catalogue.load(kind)
    except PydanticCustomError as error:  # a fault of another package hides no other kind
        return None, error.message()
    what = (found.__doc__ or "").strip().partition("\n")[0]
    installed = None if kind in catalogue.builtin else registered(catalogue.group)[kind]
    return found, f"{what} (package {installed.in_words()})" if installed else what


def _row(catalogue: Any, kind: str) -> tuple[str, str, str]:
    found, what = _loaded(catalogue, kind)
    return kind, what, ", ".join(catalogue.option_names(kind)) or "none" if found else "not known"


def _hidden(catalogue: Any) -> list[tuple[str, str, str]]:
    """Return kinds of installed packages that have a name of fedsim's own, and so cannot be named."""
    return [
        (kind, f"not used: {found.in_words()} registers this name too, and fedsim's own kind has it", "")
        for kind, found in registered(catalogue.group).items()
        if kind in catalogue.builtin
    ]


def _selectors(catalogue: Any) -> list[tuple[str, str]]:
    """Return the kind of each selector, and its description, needs and communication in lines."""
    from rich.markup import escape

    from fedsim.selectors import SelectorInfo

    rows = [(kind, what) for kind, what, _ in _hidden(catalogue)]
    for kind in sorted(catalogue.kinds()):
        found, what = _loaded(catalogue, kind)
        if found is None:
            rows.append((kind, escape(what)))
            continue
        info = SelectorInfo.of(found)
        lines = {
            "needs to know": info.knowledge or "nothing but the round view",
            "communication": info.communication or "not stated",
            "leaks beside updates": _leaks(info),
            "options": ", ".join(catalogue.option_names(kind)) or "none",
            "paper": info.paper or "not stated",
        }
        told = "\n".join(f"[bold]{name}[/bold]: {escape(text)}" for name, text in lines.items())
        rows.append((kind, f"{escape(what)}\n{told}"))
    return rows


def _leaks(info: Any) -> str:
    """Return what a selector makes clients tell of their data beside their updates, in words."""
    if not info.leaks:
        return "nothing"
    exact = " or label_histograms" if info.uses_labels else ""
    return f"{', '.join(info.leaks)}; with privacy, numbers with noise unless side_information{exact} is exact"
