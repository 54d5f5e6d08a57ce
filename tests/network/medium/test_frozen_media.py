"""Every shared medium is asked a fixed series of questions: its answers are those of yesterday.

Transfers come by twos and threes, some of nothing, and some are given up; between events the medium is asked what it
has carried, and for its books.
"""

import numpy as np
import pytest
import simpy

from fedsim.network import NETWORKS, SHARINGS
from fedsim.streams import Streams
from tests.golden import freeze
from tests.support.frozen_answers import check_frozen
from tests.support.options import NETWORK_OPTIONS

POSITIONS_M = np.array([[10.0, 5.0], [40.0, -20.0], [-70.0, 30.0], [0.0, 90.0], [55.0, 60.0], [-30.0, -45.0]])
BITS = (3e5, 1e5, 0.0, 2.5e6, 8e3, 6e5, 1.2e6)
WAIT_S = (0.02, 0.0, 0.0, 0.15, 0.4, 0.0, 0.011)
RULES = [rule for rule in sorted(SHARINGS.kinds()) if rule not in ("dedicated", "dcf")]
MEAN = {"fading_in_shares": "mean"}
BUSY = {"ingress_bps": 9e5, "background": {"least": 0.1, "most": 0.4, "interval_s": 0.3}}
LOSSES = [
    {"kind": "loss", "node": "bs-1", "from_s": 0.5, "duration_s": 1.0},
    {"kind": "loss", "node": "bs-0", "from_s": 1.2, "duration_s": 0.4},
]
CASES = {
    **{name: table for name, table in freeze.NETWORKS.items() if name.startswith("graph")},
    "graph-losses": {**freeze.NETWORKS["graph-moving"], "trouble": [*LOSSES, freeze.BURSTS]},
    **{f"cell-{rule}": freeze.cell(rule, rule) for rule in RULES},
    **{
        f"cell-{rule}-mean": {
            "kind": "cell",
            "downlink": {"sharing": rule, **MEAN},
            "uplink": {"sharing": rule, **MEAN},
        }
        for rule in RULES
    },
    **{f"cell-{rule}": freeze.cell(rule, "first-come") for rule in ("multicast", "multicast-rateless")},
    "cell-sites": freeze.NETWORKS["cell-sites"],
    "cell-access": {**freeze.cell("multicast", "equal"), "access": {"kind": "grant", "inactivity_s": 0.2}},
    "cell-server": {
        **freeze.cell("multicast", "dedicated"),
        "transport": {"kind": "tcp", "rtt_s": 0.03, "server": BUSY},
    },
    "wifi-dcf": {"kind": "wifi-dcf"},
    "lora": {"kind": "lora", "uplink_duty_cycle": 0.4, "downlink_duty_cycle": 1.0, "bandwidth_hz": 5e7},
    "rate-traces": {"kind": "rate-traces", **NETWORK_OPTIONS["rate-traces"], "sharing": "equal"},
}


def told(env, medium, flows):
    """Return what can be seen of a medium now; differences of large numbers to 6 decimal places."""
    books = {name: [round(entry, 6) for entry in vars(book).values()] for name, book in medium.books().items()}
    seen = [[round(flow.sent_bits(), 6), flow.queued_s(), flow.arrives_s(), flow.done.triggered] for flow in flows]
    return [env.now, seen, books]


def starts(medium, shared, case):
    """Return what starts a transfer by its number."""
    ways = [way for way, used in zip((medium.downlink, medium.uplink), shared, strict=True) if used]
    edges, cloud = medium.edge_routes() if case == "graph-edge-servers" else ([], "")

    def start(i):
        if edges and i % 5 == 0:
            return medium.transfer(edges[i % len(edges)], cloud, BITS[i % 7])
        return ways[i // 3 % len(ways)](i * 5 % 6, BITS[i % 7])

    return start


def played(env, medium, start):
    """Return what is seen of a medium in a run, and when transfers end."""
    found, flows, ends = [], [], []

    def watched(number, flow):
        yield flow.done
        ends.append([number, env.now])

    def script():
        for i in range(30):
            flows.append(start(i))
            env.process(watched(i, flows[-1]))
            if i % 4 == 3:
                found.append(told(env, medium, flows[-6:]))
            if i % 6 == 5:
                flows[i - i % 4].cancel()
            yield env.timeout(WAIT_S[i % 7])
        for wait_s in (0.05, 0.3, 2.0):
            yield env.timeout(wait_s)
            found.append(told(env, medium, flows))
            for flow in flows[:: 1 + int(10 * wait_s)]:
                flow.cancel()

    env.process(script())
    env.run(until=60.0)
    return [*found, told(env, medium, flows), ends]


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_medium_answers_as_before(case):
    links = NETWORKS.make(CASES[case]).build(POSITIONS_M, Streams(11))
    env = simpy.Environment()
    client, ones = np.arange(6), np.ones(6)
    found = [
        links.shared,
        [links.expected_downlink_s(1e5), links.expected_uplink_s(1e5), links.uplink_snr_hz(client, 2.0)],
        [ask(client, 3, 0.7 * ones, 2e5) for ask in (links.downlink_s, links.uplink_s)],
        [links.carried_bits(client, 3, 0.7 * ones, 0.04 * ones, 2e5, up=up) for up in (False, True)],
    ]
    if any(links.shared):
        medium = links.open(env)
        found += played(env, medium, starts(medium, links.shared, case))
        if case in ("graph-moving", "graph-losses"):
            found.append(medium.handovers)
    check_frozen("media", case, found)
