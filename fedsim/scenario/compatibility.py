"""Parts of a scenario that do not go together: what one requires and none provides, and what one excludes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fedsim import capabilities as names
from fedsim.errors import suggest
from fedsim.foreign import Stateful
from fedsim.identity import parts_of
from fedsim.learning import (
    AGGREGATIONS,
    DATASETS,
    LEARNERS,
    LOCAL_ALGORITHMS,
    PARTITIONS,
    TASKS,
    LocalAlgorithm,
    NoLearning,
    Supervised,
)
from fedsim.learning.data.partitions.contracts import WITHOUT_LABELS
from fedsim.network import NETWORKS, Network
from fedsim.registry import Component
from fedsim.rounds import BACKHAULS, CLOUD_RULES, GROUPINGS, LATE, POLICIES, Edges
from fedsim.scenario.clashes import clashes
from fedsim.scenario.private_parts import Problem, private_problems
from fedsim.scenario.sections import Crowd, Rounds, ScenarioTables
from fedsim.scenario.update_numbers import cohort_of, update_problems
from fedsim.selectors import SelectorInfo
from fedsim.selectors.adapter import numbers_of_clients

_CATALOGUES: Final = {
    "learning": LEARNERS,
    "network": NETWORKS,
    "learning.data": DATASETS,
    "learning.split": PARTITIONS,
    "learning.aggregation": AGGREGATIONS,
    "learning.task": TASKS,
    "rounds.policy": POLICIES,
    "rounds.late": LATE,
    "rounds.edges.grouping": GROUPINGS,
    "rounds.edges.merging": CLOUD_RULES,
    "rounds.edges.backhaul": BACKHAULS,
}


@dataclass(frozen=True)
class _Requirement:
    """What stands behind a name, for messages."""

    meaning: str
    by: str
    allowed: str
    refused: str | None = None


_REQUIREMENTS: Final = {
    names.MODEL_BITS: _Requirement(
        "the size of the model in bits when nothing is learned", "learning", "any number > 0", "learning.model_bits"
    ),
    names.SAMPLES: _Requirement(
        "the number of samples of a client when nothing is learned",
        "learning",
        "any whole number >= 1, or devices.compute = 'zero' and no devices.energy.compute_j_per_flop",
        "learning.samples_per_client",
    ),
    names.FLOPS: _Requirement(
        "the number of operations of a sample when nothing is learned",
        "learning",
        "any number > 0, or a devices.compute and a devices.energy.compute_w that do not count operations",
        "learning.flops_per_sample",
    ),
    names.NO_LOSSES: _Requirement(
        "clients that always deliver at last, because it waits for every client, and a client can be lost "
        "(devices.dropout, devices.availability, devices.energy, rounds.faults, rounds.effects)",
        "devices",
        "a policy with a deadline or a longest wait, or give_up_s for an asynchronous one",
    ),
    names.TIME_LIMIT: _Requirement(
        "rounds with a longest duration that is known when they begin", "rounds.policy", "a policy with such a limit"
    ),
    names.EDGES: _Requirement(
        "rounds that can run at several edge servers, and this policy needs all clients at one server",
        "rounds.policy",
        "any other policy",
        "rounds.policy",
    ),
    names.SITES: _Requirement(
        "sites at which transfers end",
        "network",
        "'order', 'latency', 'given', a network of cells, or a graph with server = 'edge-server'",
    ),
    names.ROUTES: _Requirement(
        "routes between edge servers and cloud over the clients' network",
        "network",
        "'link', 'none', or a network of kind 'graph' with server = 'edge-server'",
    ),
    names.TIERS: _Requirement(
        "edge servers ordered by speed",
        "rounds.edges.grouping",
        "grouping = 'latency', or the merging 'synchronous' or 'asynchronous'",
    ),
    names.USERS: _Requirement(
        "samples that belong to users", "learning.data", "a data set that tells users, or any other split"
    ),
    names.LABELS: _Requirement(
        "samples with labels",
        "learning.task",
        f"the task 'classification', or the splits {', '.join(WITHOUT_LABELS)}",
    ),
    names.UPDATES: _Requirement(
        "the updates of clients at once, where the policy has an average of their models",
        "rounds.policy",
        "any other policy, or learning.aggregation = 'mean'",
    ),
}


def problems(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield what does not go together in the tables of a scenario."""
    crowd, rounds = tables.crowd, tables.rounds
    yield from _about_sizes(crowd, rounds, tables.selector)
    yield from update_problems(tables)
    yield from _about_requirements(tables)
    yield from _about_task(tables)
    yield from _about_refusals(tables)
    if rounds.edges is not None:
        yield from _about_transfers(rounds.edges, tables.network)
    if isinstance(tables.learning, Supervised):
        yield from _about_algorithm(tables, tables.learning.algorithm)
    yield from private_problems(tables)
    yield from clashes(tables)


def _about_requirements(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield each name that a part requires and no part provides."""
    faults = tables.rounds.faults
    lossy = tables.devices.may_lose_clients or (faults is not None and faults.may_lose_clients)
    lossy = lossy or any(effect.may_end for effect in tables.rounds.effects)
    parts: dict[str, names.Capable] = dict(parts_of(tables))
    parts["devices"] = names.Capabilities(provides=frozenset(() if lossy else {names.NO_LOSSES}))
    if tables.rounds.edges is not None:
        parts["rounds.edges"] = names.Capabilities(frozenset({names.EDGES}))
    provided = [part.provides for part in parts.values()]
    for path, part in parts.items():
        for name in names.missing(part.requires, provided):
            yield _lacking(name, path, parts, frozenset().union(*provided))


def _about_task(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield a target that no evaluation states, and a selector that asks for labels where there are none."""
    if not isinstance(tables.learning, Supervised):
        return
    task, target = tables.learning.task, tables.rounds.target
    known = ["loss", *(metric.name for metric in task.metrics)]
    wanted: dict[tuple[str, ...], str] = {}
    if target is not None:
        wanted["rounds", "target", "metric"] = target.metric
    if tables.rounds.target_accuracy is not None:
        wanted["rounds", "target_accuracy"] = "accuracy"
    for path, name in wanted.items():
        if name not in known:
            yield path, name, f"no evaluation of this task has {name!r}; allowed: a target of {', '.join(known)}"
    selector = tables.selector
    if names.LABELS in task.provides and "accuracy" in known:
        return
    asks = SelectorInfo.of(selector.stands_for)
    if asks.uses_labels and names.LABELS not in task.provides:
        message = "it needs samples with labels; allowed: the task 'classification', or another selector"
        yield ("selector",), selector.kind, message
    if "accuracy_gain" in asks.needs and "accuracy" not in known:
        message = "it asks for gains of accuracy; allowed: a task with the metric 'accuracy', or another selector"
        yield ("selector",), selector.kind, message


def _lacking(name: str, path: str, parts: Mapping[str, names.Capable], provided: frozenset[str]) -> Problem:
    """Return the problem of a part that requires what no part provides."""
    known = _REQUIREMENTS.get(name)
    if known is None:
        hint, all_names = suggest(name, provided), ", ".join(sorted(provided)) or "none"
        message = f"it requires {name!r}, which no part of this scenario provides{hint}; provided are: {all_names}"
    elif known.refused is not None:
        message, path = f"{path} needs {known.meaning}; allowed: {known.allowed}", known.refused
    else:
        found = _kind(known.by, parts)
        lacks = "" if found is None else f", and {known.by} = {found!r} has none"
        message = f"it needs {known.meaning}{lacks}; allowed: {known.allowed}"
    return tuple(path.split(".")), _kind(path, parts), message


def _kind(path: str, parts: Mapping[str, names.Capable]) -> str | None:
    """Return the kind of the part in a field, the name of its class where the field has no catalogue of its own."""
    part = parts.get(path)
    if not isinstance(part, Component):
        return None
    return _CATALOGUES[path].kind_of(part) if path in _CATALOGUES else type(part).__name__


def _about_sizes(crowd: Crowd, rounds: Rounds, selector: Stateful) -> Iterator[Problem]:
    """Yield numbers of clients that can never be reached."""
    cohort = cohort_of(selector)
    if isinstance(cohort, int) and cohort > crowd.clients:
        yield (
            ("selector", "cohort"),
            cohort,
            f"a cohort cannot be larger than the crowd; allowed: 1 to crowd.clients = {crowd.clients}",
        )
    # Each edge server numbers its clients from 0; how many it has is known when the run is built.
    of_clients = numbers_of_clients(selector.stands_for) if rounds.edges is None else ()
    for name in of_clients:
        given = selector.options.get(name)
        if given is not None and len(given) != crowd.clients:
            yield (
                ("selector", name),
                given,
                f"{len(given)} numbers; allowed: one for each client, crowd.clients = {crowd.clients}",
            )
    misfit = None if rounds.edges is None else rounds.edges.grouping.misfit(crowd.clients)
    if misfit is not None:
        name, value, message = misfit
        yield ("rounds", "edges", "grouping", name), value, message


def _about_refusals(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield a refusal of updates in a run without any."""
    if tables.rounds.refuse_nonfinite_updates and type(tables.learning) is NoLearning:
        yield (
            ("rounds", "refuse_nonfinite_updates"),
            True,
            "learning.kind = 'none' has no numbers in its updates; allowed: false",
        )


def _about_algorithm(tables: ScenarioTables, algorithm: LocalAlgorithm) -> Iterator[Problem]:
    """Yield what a local algorithm does not go together with, and widths that are not one for each client."""
    rounds, kind, traits = tables.rounds, LOCAL_ALGORITHMS.kind_of(algorithm), tables.rounds.policy.traits
    here = ("learning", "algorithm")
    if algorithm.server_keeps or algorithm.reweighs:
        if rounds.edges is not None or traits.overlaps_rounds or not rounds.late.cancels:
            yield (
                here,
                kind,
                "its server makes of fresh updates of one round what no other server does; allowed: one synchronous "
                "server, without rounds.edges, whose rounds.late is 'cancel' or 'partial'",
            )
        if algorithm.server_keeps and tables.privacy is not None:
            yield here, kind, "clients send more than their updates, which no mechanism protects; allowed: no privacy"
    given = algorithm.given_widths
    if given is not None and len(given) != tables.crowd.clients:
        yield (
            (*here, "client_widths"),
            given,
            f"{len(given)} widths; allowed: one for each client, crowd.clients = {tables.crowd.clients}",
        )


def _about_transfers(edges: Edges, network: Network) -> Iterator[Problem]:
    """Yield contradictions about where the clients' transfers end and models go on to the cloud."""
    provided, grouping = network.provides, GROUPINGS.kind_of(edges.grouping)
    if names.ENDS_AT_EDGES in provided and names.SITES not in edges.grouping.requires:
        yield (
            ("rounds", "edges", "grouping"),
            grouping,
            "transfers of this network end at the nearest edge server; allowed: 'site', or network.server = 'cloud'",
        )
    if names.ENDS_AT_EDGES in provided and names.MOBILITY in provided:
        moves = dict(parts_of(network)).get("mobility")
        yield (
            ("network", "mobility"),
            NETWORKS.kind_of(network) if moves is None else type(moves).__name__,
            "clients that move would send to other edge servers than their own; allowed: none with rounds.edges and "
            "network.server = 'edge-server'",
        )
    if names.ENDS_AT_CLOUD in provided and names.MODEL_BITS in edges.backhaul.requires:
        yield (
            ("rounds", "edges", "backhaul"),
            BACKHAULS.kind_of(edges.backhaul),
            "transfers of this network end at the cloud, so models would travel there twice; allowed: 'none', or "
            "network.server = 'edge-server'",
        )
