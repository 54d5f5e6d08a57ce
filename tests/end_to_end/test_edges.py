"""Whole runs with edge servers: what they have in common with flat ones, every rule at once, and sameness."""

import pytest

from fedsim import simulate
from tests.support.short_runs import timed

LAW = {"kind": "log-normal", "median_s": 0.5, "sigma": 0.6}
LATENCY = {"kind": "latency", "downlink": LAW, "uplink": LAW}
SHARED = {"kind": "cell", "downlink": {"sharing": "equal"}, "uplink": {"sharing": "equal"}}
WIRE = {"kind": "link", "rate_bps": 1e6, "delay_s": 0.05}
PRIVACY = {
    "budget": {"kind": "geometric", "epsilon": 40.0, "eta": 0.04},
    "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.012},
}
PAUSE = {"kind": "pause", "cohort": 4}
DEADLINE = {"kind": "deadline", "deadline_s": 1.6}


def scenario(edges=None, **tables):
    rounds = {"count": 8, "policy": DEADLINE, **tables.pop("rounds", {})}
    if edges is not None:
        rounds["edges"] = {"grouping": {"kind": "order", "count": 1}, "backhaul": "none", **edges}
    usual = {
        "crowd": {"clients": 18, "placement": {"kind": "disc", "radius_m": 60.0}},
        "network": LATENCY,
        "devices": {"compute": {"kind": "rate", "samples_per_s": 100.0, "spread_sigma": 0.5}},
    }
    return timed(bits=1e5, samples=20, cohort=4, rounds=rounds, **{**usual, **tables})


def but_for_the_edge(table):
    return table.drop_columns("edge") if "edge" in table.column_names else table


MANY_KINDS = {
    "wait for all": {"rounds": {"policy": "wait-for-all"}},
    "deadline": {},
    "stale": {"rounds": {"late": "stale"}},
    "partial": {"rounds": {"late": "partial"}},
    "fastest": {"rounds": {"policy": {"kind": "k-fastest", "k": 3}}},
    "moving average": {"rounds": {"policy": {"kind": "moving-average", "initial_s": 3.0}}},
    "FedBuff": {"rounds": {"policy": {"kind": "fedbuff", "buffer": 3, "concurrency": 6}}},
    "FedAsync": {"rounds": {"policy": {"kind": "fedasync", "concurrency": 6}}},
    "too few": {"rounds": {"minimum_updates": 4}},
    "PAUSE": {"selector": PAUSE, "privacy": PRIVACY},
    "shared cell": {"network": SHARED, "rounds": {"late": "drop"}},
    "tosses": {"devices": {"availability": {"kind": "bernoulli", "probability": 0.03}}},
    "on and off": {"devices": {"availability": {"kind": "markov", "mean_on_s": 2.0, "mean_off_s": 30.0}}},
    "on and off, stale": {
        "devices": {"availability": {"kind": "markov", "mean_on_s": 2.0, "mean_off_s": 30.0}},
        "rounds": {"late": "stale"},
    },
    "dropouts": {"devices": {"dropout": {"kind": "hazard", "rate_per_s": 0.4}}},
    "batteries": {
        "devices": {
            "energy": {
                "kind": "battery",
                "capacity_j": 10.0,
                "initial_from": 0.1,
                "initial_to": 0.6,
                "least_charge": 0.2,
                "compute_w": 5.0,
                "charge_w": 0.5,
            }
        }
    },
}  # fmt: skip


@pytest.mark.parametrize("what", MANY_KINDS)
def test_one_edge_server_without_a_backhaul_is_a_flat_server(what):
    flat, one = simulate(scenario(**MANY_KINDS[what])), simulate(scenario({}, **MANY_KINDS[what]))
    # The cloud's round ends when its edges have come, whatever ended theirs.
    assert one.rounds.drop_columns("ended_by").equals(flat.rounds.drop_columns("ended_by"))
    assert but_for_the_edge(one.participations).equals(but_for_the_edge(flat.participations))
    assert one.accounts.equals(flat.accounts)
    assert but_for_the_edge(one.edge_rounds).equals(flat.rounds)
    assert set(one.column("participations", "edge")) == {0}
    assert flat.participations.column("edge").null_count == flat.participations.num_rows >= 8


def test_the_luck_of_edges_differs():
    """Two edges of nine clients each: the same cohort of four at both in all of eight rounds would be no luck."""
    history = simulate(scenario({"grouping": {"kind": "order", "count": 2}}, rounds={"policy": "wait-for-all"}))
    cohorts = {edge: set() for edge in (0, 1)}
    for row in history.participations.to_pylist():
        cohorts[row["edge"]].add((row["round"], row["client"] - 9 * row["edge"]))
    assert cohorts[0] != cohorts[1]


def test_another_grouping_changes_nobodys_times():
    """Each client's times depend on its own rounds alone."""
    found = []
    for count in (2, 6):
        edges = {"grouping": {"kind": "order", "count": count}}
        history = simulate(scenario(edges, selector="all", rounds={"policy": "wait-for-all"}))
        rows = history.participations.to_pylist()
        found.append({(row["client"], row["round"]): (row["downlink_s"], row["uplink_s"]) for row in rows})
    assert found[0] == found[1]
    assert len(found[0]) == 18 * 8


DIGITS = {
    "model": {"kind": "mlp", "hidden": [8]},
    "local": {"optimizer": "adam", "learning_rate": 0.01, "batch_size": 20, "keep_optimizer_state": True},
}


def test_one_edge_learns_what_a_flat_server_does_bit_by_bit():
    tables = {"learning": DIGITS, "rounds": {"count": 6, "policy": {"kind": "deadline", "deadline_s": 3.0}}}
    flat, one = simulate(scenario(**tables)), simulate(scenario({}, **tables))
    assert one.evaluations.equals(flat.evaluations)
    assert flat.column("evaluations", "accuracy")[-1] > 0.4
    many = simulate(scenario({"rounds": 3}, **{**tables, "rounds": {**tables["rounds"], "count": 2}}))
    assert but_for_the_edge(many.edge_rounds).equals(flat.rounds)
    for name in ("end_s", "model_version"):
        assert many.column("rounds", name).tolist() == flat.column("rounds", name)[2::3].tolist()
    for name in ("time_s", "accuracy", "loss", "model_version"):
        assert many.column("evaluations", name).tolist() == flat.column("evaluations", name)[::3].tolist()
