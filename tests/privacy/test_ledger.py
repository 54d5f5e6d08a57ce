"""No client leaks more than its budget, whatever the policy, the server, the mechanism and the late clients."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import zeta

from fedsim import Scenario, simulate
from tests.support.families import by_default

CLIENTS, ROUNDS = 6, 18
SYNCHRONOUS = {
    "adaptive-deadline": {"initial_s": 1.0, "shortest_s": 0.5},
    "deadline": {"deadline_s": 1.0},
    "k-fastest": {"k": 2, "max_wait_s": 10.0},
    "moving-average": {"initial_s": 1.0, "target_share": 0.7},
    "quorum": {"share": 0.5, "min_wait_s": 0.3, "max_wait_s": 2.0},
}
OWN_RULE = {
    "fedasync": {"concurrency": 3, "give_up_s": 3.0},
    "fedbuff": {"concurrency": 3, "buffer": 2, "give_up_s": 3.0},
    "pisces": {"concurrency": 3, "bound": 2, "give_up_s": 3.0},
    "safa": {"share": 0.4, "max_wait_s": 2.0, "lag": 1},
}
LATE = ("cancel", "drop", "stale", "partial")
RULES = [*itertools.product(SYNCHRONOUS.items(), LATE), *((policy, None) for policy in OWN_RULE.items())]
BUDGETS = {
    "geometric": ({"epsilon": 5.0, "eta": 0.2}, lambda i: 5.0 * (math.exp(0.2) - 1) * math.exp(-0.2 * i)),
    "zeta": ({"epsilon": 5.0, "power": 1.5}, lambda i: 5.0 * i**-1.5 / zeta(1.5)),
    "uniform": ({"epsilon": 5.0, "releases": 4}, lambda i: 1.25 if i <= 4 else None),
    "unlimited": ({"epsilon": 0.5}, lambda _: 0.5),
}
MECHANISMS = (
    {"kind": "gaussian", "clip": 1.0},
    {"kind": "laplace-l1", "clip": 1.0},
    {"kind": "laplace-coordinate", "delta_f": 0.1},
)
COMPOSED = {"kind": "rdp", "delta": 1e-4, "most_epsilon": 2.0}
SELECTORS = ({"kind": "uniform", "cohort": 3}, {"kind": "oort", "cohort": 3}, {"kind": "round-robin", "cohort": 3})
SERVERS = ("client", "server", "edges")
WORLD = Scenario(
    name="ledger",
    crowd={"clients": CLIENTS},
    learning={"kind": "none", "model_bits": 1e5, "samples_per_client": 20},
    network={
        "kind": "latency",
        "downlink": {"kind": "log-normal", "median_s": 0.1, "sigma": 0.5},
        "uplink": {"kind": "log-normal", "median_s": 0.4, "sigma": 1.0},
    },
    devices={
        "compute": {"kind": "rate", "samples_per_s": 100.0},
        "availability": {"kind": "bernoulli", "probability": 0.9},
        "dropout": {"kind": "hazard", "rate_per_s": 0.15},
    },
    rounds={"count": ROUNDS, "policy": {"kind": "deadline", "deadline_s": 1.0}},
    selector=SELECTORS[0],
    results={"audit": True},
)


def cases():
    """Yield a name and the changes of each case: each rule with each budget, other parts in turn."""
    for number, (((kind, options), late), budget) in enumerate(itertools.product(RULES, [*BUDGETS, "composed"])):
        server = SERVERS[number % 3]
        if server != "client" and (kind in ("pisces", "safa") or number % 2):
            server = "client"
        composed = budget == "composed"
        mechanism = MECHANISMS[0 if composed else number % 3]
        named = "unlimited" if composed else budget
        changes = {
            "seed": number,
            "rounds.policy": {"kind": kind, **options},
            "selector": SELECTORS[(number // 3) % 3],
            "privacy": {
                "budget": {"kind": named, **BUDGETS[named][0]},
                "mechanism": mechanism,
                "where": "client" if server == "client" else "server",
                **({"composition": COMPOSED} if composed else {}),
            },
        }
        if late is not None:
            changes["rounds.late"] = late
        if server != "client" and kind not in OWN_RULE:
            changes["rounds.weights"] = "uniform"
        if server == "edges" and kind not in ("fedasync", "fedbuff", "safa", "pisces"):
            changes["rounds.edges"] = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}
        yield f"{kind}, {late}, {budget}, {server}", changes


CASES = dict(cases())


def begun(row):
    """Return whether a row's upload has begun: it was not cut before."""
    return row["cut_in"] in (None, "uplink")


def check(changes):
    scenario = WORLD.replace(changes)
    history = simulate(scenario)
    budget, composed = scenario.privacy.budget, scenario.privacy.composition is not None
    term = BUDGETS[changes["privacy"]["budget"]["kind"]][1]
    # A tenth of each term pays for numbers, where the selector asks for any.
    asks = changes["selector"]["kind"] == "oort"
    share = 0.9 if asks else 1.0
    rows, releases = history.participations.to_pylist(), (history.releases.to_pylist() if history.releases else [])
    of_clients = [row for row in releases if row["client"] is not None]
    most = 2.0 if composed else budget.total
    for client in range(CLIENTS):
        mine = [row for row in rows if row["client"] == client]
        made = sorted((row for row in of_clients if row["client"] == client), key=lambda row: row["number"])
        assert [row["number"] for row in made] == list(range(1, sum(map(begun, mine)) + 1)), "each upload is charged"
        assert all(row["epsilon"] == 0 for row in mine if not begun(row)), "nothing is charged before an upload"
        costs = [term(row["number"]) for row in made]
        assert None not in costs, "no release after the last term"
        assert [row["epsilon"] for row in made] == pytest.approx([share * cost for cost in costs])
        assert sum(row["epsilon"] for row in mine) == pytest.approx(sum(costs)), "late and cancelled ones too"
        spent = [row["spent"] for row in made]
        assert all(value <= most * (1 + 1e-9) for value in spent)
        if not composed:
            assert spent == pytest.approx(np.cumsum(costs).tolist())
            assert sum(costs) <= most * (1 + 1e-9)
        elif made:
            assert sorted(spent) == spent
            assert spent[-1] < sum(costs) or len(made) < 4
    table = history.edge_rounds if scenario.rounds.edges is not None else history.rounds
    told = max(table.column("largest_leakage").to_pylist())
    assert told <= most * (1 + 1e-9)
    # An upload that begins after the last round has ended is not in the table of rounds.
    assert told <= max((row["spent"] for row in of_clients), default=0.0) + 1e-12
    return history, most


QUICK = [name for number, name in enumerate(CASES) if number % 6 == 0]


@pytest.mark.parametrize("name", by_default(sorted(CASES), QUICK))
def test_no_client_leaks_more_than_its_budget(name):
    check(CASES[name])


@pytest.mark.parametrize("kind", ["fedbuff", "deadline"])
def test_a_budget_that_runs_out_ends_the_run(kind):
    """Four releases of each of six clients at most: with none lost before its upload, the run ends with the last."""
    policy = {"kind": kind, **{**SYNCHRONOUS, **OWN_RULE}[kind]}
    private = {"budget": {"kind": "uniform", **BUDGETS["uniform"][0]}, "mechanism": MECHANISMS[0], "where": "client"}
    changes = {"rounds.policy": policy, "rounds.count": 200, "selector": SELECTORS[0], "privacy": private}
    history, most = check(changes)
    assert history.rounds.num_rows < 200
    assert any("the privacy budget of each client is spent" in note for note in history.notes)
    spent = {row["client"]: row["spent"] for row in history.releases.to_pylist() if row["client"] is not None}
    assert spent == pytest.approx(dict.fromkeys(range(CLIENTS), most))


def test_the_delta_of_a_sum_is_at_most_1():
    """Releases with a delta of 0.3 each: after four of them nothing is promised."""
    private = {
        "budget": {"kind": "unlimited", "epsilon": 0.5},
        "mechanism": {"kind": "gaussian", "clip": 1.0, "delta": 0.3},
    }
    changes = {"privacy": private, "selector": "all", "rounds.policy": "wait-for-all", "rounds.count": 6}
    steady = {"devices.dropout": "never", "devices.availability": "always"}
    rows = simulate(WORLD.replace(changes | steady)).releases.to_pylist()
    assert [row["delta"] for row in rows if row["client"] == 0] == pytest.approx([0.3, 0.6, 0.9, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("where", ["client", "server"])
def test_leakage_of_one_number_is_said(where):
    said = "leakage is per coordinate (privacy.mechanism = 'laplace-coordinate')"
    for mechanism in MECHANISMS:
        private = {"budget": {"kind": "unlimited", "epsilon": 0.5}, "mechanism": mechanism, "where": where}
        history = simulate(WORLD.replace({"privacy": private, "rounds.weights": "uniform", "rounds.count": 1}))
        assert sum(said in note for note in history.notes) == (mechanism["kind"] == "laplace-coordinate")
