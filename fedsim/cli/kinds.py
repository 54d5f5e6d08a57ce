"""The command ``fedsim list``: the kinds that may fill a slot of a scenario."""

from typing import Annotated, Any

import typer

from fedsim.cli.printing import print_table
from fedsim.errors import FedsimError


def list_kinds(
    sort: Annotated[str | None, typer.Argument(metavar="[SORT]", help="selectors, networks, ...")] = None,
) -> None:
    """List the kinds that may fill a slot of a scenario."""
    registries = catalogues()
    if sort is None:
        print_table("fedsim list SORT", [(name, ", ".join(c.kinds())) for name, c in registries.items()])
        return
    if sort not in registries:
        from fedsim.registry import suggest

        raise FedsimError(
            f"list: there is no sort {sort!r}{suggest(sort, registries)}; allowed: {', '.join(registries)}"
        )
    if sort == "selectors":
        print_table(sort, _selectors(registries[sort]), ("kind", "what it is"), markup=True)
        return
    rows = [(kind, *_described(registries[sort], kind)) for kind in registries[sort].kinds()]
    if sort == "executors":  # no part of a scenario: its options are those of the command
        print_table(sort, [row[:2] for row in rows], ("kind", "what it is"))
        return
    print_table(sort, rows, ("kind", "what it is", "options"))


def catalogues() -> dict[str, Any]:
    """Return the registry of each sort."""
    from fedsim.devices import AVAILABILITIES, COMPUTE_TIMES, DROPOUTS, ENERGIES, HETEROGENEITY_LAWS
    from fedsim.learning import (
        AGGREGATIONS,
        COMPRESSORS,
        DATASETS,
        EXECUTORS,
        LEARNERS,
        LOCAL_ALGORITHMS,
        METRICS,
        MODELS,
        PARTITIONS,
        SCHEDULES,
        SERVER_OPTIMIZERS,
        TASKS,
    )
    from fedsim.network import FADINGS, LATENCY_LAWS, NETWORKS, PATH_LOSSES, PLACEMENTS, RATES, SHADOWINGS
    from fedsim.network.cell.access import ACCESS_LATENCIES
    from fedsim.network.graph.access import ACCESSES
    from fedsim.network.medium.cell import SHARINGS
    from fedsim.network.medium.failures import FAILURES
    from fedsim.network.radio.shares.power_control import POWER_CONTROLS
    from fedsim.network.satellite.passes import PASSES
    from fedsim.network.topology.generators import LAYOUTS
    from fedsim.network.topology.mobility import MOBILITIES
    from fedsim.network.transport.transport import TRANSPORTS
    from fedsim.per_client import CLIENT_LAWS
    from fedsim.privacy import BUDGETS, COMPOSITIONS, LABEL_HISTOGRAMS, MECHANISMS, SIDE_INFORMATIONS
    from fedsim.rounds import BACKHAULS, CLOUD_RULES, GROUPINGS, LATE, POLICIES
    from fedsim.rounds.aggregation.staleness import STALENESS
    from fedsim.rounds.aggregation.weightings import WEIGHTINGS
    from fedsim.rounds.secure.protocols import SECURE_AGGREGATIONS
    from fedsim.selectors import SELECTORS

    return {
        "selectors": SELECTORS,
        "policies": POLICIES,
        "late-rules": LATE,
        "staleness-laws": STALENESS,
        "weightings": WEIGHTINGS,
        "secure-aggregations": SECURE_AGGREGATIONS,
        "groupings": GROUPINGS,
        "edge-mergings": CLOUD_RULES,
        "backhauls": BACKHAULS,
        "networks": NETWORKS,
        "latency-laws": LATENCY_LAWS,
        "placements": PLACEMENTS,
        "path-losses": PATH_LOSSES,
        "shadowings": SHADOWINGS,
        "fadings": FADINGS,
        "rates": RATES,
        "sharings": SHARINGS,
        "power-controls": POWER_CONTROLS,
        "topologies": LAYOUTS,
        "accesses": ACCESSES,
        "access-latencies": ACCESS_LATENCIES,
        "transports": TRANSPORTS,
        "passes": PASSES,
        "mobilities": MOBILITIES,
        "troubles": FAILURES,
        "compute-times": COMPUTE_TIMES,
        "spread-laws": HETEROGENEITY_LAWS,
        "client-laws": CLIENT_LAWS,
        "availabilities": AVAILABILITIES,
        "dropouts": DROPOUTS,
        "energies": ENERGIES,
        "learners": LEARNERS,
        "tasks": TASKS,
        "metrics": METRICS,
        "datasets": DATASETS,
        "splits": PARTITIONS,
        "models": MODELS,
        "local-algorithms": LOCAL_ALGORITHMS,
        "schedules": SCHEDULES,
        "compressors": COMPRESSORS,
        "aggregations": AGGREGATIONS,
        "server-optimizers": SERVER_OPTIMIZERS,
        "executors": EXECUTORS,
        "budgets": BUDGETS,
        "mechanisms": MECHANISMS,
        "compositions": COMPOSITIONS,
        "side-information": SIDE_INFORMATIONS,
        "label-histograms": LABEL_HISTOGRAMS,
    }


def _described(catalogue: Any, kind: str) -> tuple[str, str]:
    what = (catalogue.load(kind).__doc__ or "").strip().partition("\n")[0]
    return what, ", ".join(catalogue.option_names(kind)) or "none"


def _selectors(catalogue: Any) -> list[tuple[str, str]]:
    """Return the kind of each selector, and its description, needs and communication in lines."""
    from rich.markup import escape

    from fedsim.selectors import SelectorInfo

    rows = []
    for kind in sorted(catalogue.kinds()):
        info, (what, options) = SelectorInfo.of(catalogue.load(kind)), _described(catalogue, kind)
        lines = {
            "needs to know": info.knowledge or "nothing but the round view",
            "communication": info.communication or "not stated",
            "leaks beside updates": _leaks(info),
            "options": options,
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
