"""What does not go together with edge servers."""

from collections.abc import Iterator

from fedsim.network import NETWORKS, Network
from fedsim.rounds import BACKHAULS, CLOUD_RULES, GROUPINGS, POLICIES, Edges, RoundPolicy

Problem = tuple[tuple[str, ...], object, str]
"""Path of a field, its value, and what is wrong and what is allowed."""


def edge_problems(edges: Edges | None, policy: RoundPolicy, network: Network, clients: int) -> Iterator[Problem]:
    """Yield what in a scenario contradicts its edge servers.

    Parameters
    ----------
    edges : None for a flat federation, which nothing contradicts
    policy, network : of the scenario
    clients : size of the crowd
    """
    if edges is None:
        return
    yield from _about_rules(edges, policy)
    yield from _about_groups(edges, clients)
    yield from _about_network(edges, network)


def _about_rules(edges: Edges, policy: RoundPolicy) -> Iterator[Problem]:
    merging, grouping = CLOUD_RULES.kind_of(edges.merging), GROUPINGS.kind_of(edges.grouping)
    if edges.merging.needs_tiers and not getattr(edges.grouping, "fastest_first", False):
        yield (
            ("rounds", "edges", "merging"),
            merging,
            f"it weighs tiers by how fast they are, and the grouping {grouping!r} does not order them; allowed: "
            "grouping = 'latency', or the merging 'synchronous' or 'asynchronous'",
        )
    if "edges" not in policy.traits.provides:
        yield (
            ("rounds", "policy"),
            POLICIES.kind_of(policy),
            "its cache holds the models of the whole crowd, and its rounds would throw away what the cloud has merged; "
            "allowed with rounds.edges: any other policy",
        )


def _about_groups(edges: Edges, clients: int) -> Iterator[Problem]:
    count: int | None = getattr(edges.grouping, "count", None)
    if isinstance(count, int) and count > clients:
        yield (
            ("rounds", "edges", "grouping", "count"),
            count,
            f"every edge server needs a client; allowed: 1 to crowd.clients = {clients}",
        )
    given = getattr(edges.grouping, "edge", None)
    if given is not None and (len(given) != clients or set(given) != set(range(max(given) + 1))):
        yield (
            ("rounds", "edges", "grouping", "edge"),
            list(given),
            f"allowed: one number for each of the {clients} clients (crowd.clients), from 0 without gaps",
        )


def _about_network(edges: Edges, network: Network) -> Iterator[Problem]:
    kind, grouping = NETWORKS.kind_of(network), GROUPINGS.kind_of(edges.grouping)
    backhaul = BACKHAULS.kind_of(edges.backhaul)
    at_servers = kind == "graph" and getattr(network, "server", None) == "edge-server"
    if grouping == "site" and not (at_servers if kind == "graph" else network.uses_positions):
        yield (
            ("rounds", "edges", "grouping"),
            grouping,
            f"this network ({kind}) has no sites at which transfers end; allowed: 'order', 'latency', 'given', a "
            "network of cells, or a graph with server = 'edge-server'",
        )
    if at_servers and grouping != "site":
        yield (
            ("rounds", "edges", "grouping"),
            grouping,
            "this graph's transfers end at the edge server that is nearest; allowed: 'site', or network.server = "
            "'cloud'",
        )
    if at_servers and getattr(network, "mobility", None) is not None:
        yield (
            ("network", "mobility"),
            "given",
            "clients that move would send to other edge servers than their own; allowed: none with rounds.edges and "
            "network.server = 'edge-server'",
        )
    if kind == "graph" and not at_servers and backhaul != "none":
        yield (
            ("rounds", "edges", "backhaul"),
            backhaul,
            "this graph's transfers end at the cloud, so models would travel there twice; allowed: 'none', or "
            "network.server = 'edge-server'",
        )
    if backhaul == "network" and kind != "graph":
        yield (
            ("rounds", "edges", "backhaul"),
            backhaul,
            f"only clients send over this network ({kind}); allowed: 'link', 'none', or a network of kind 'graph'",
        )
