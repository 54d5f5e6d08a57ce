"""Asynchronous servers whose selectors ask clients first: one question at a time, and updates come meanwhile."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.rounds import Edges
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.policies.asynchronous import FedAsync, FedBuff
from tests.support.short_runs import timed
from tests.support.worlds import Asking, available_in, serve

# A question about resources takes 1 s, participations take 3.5, 4 and 3 s.
TIMES_S = ([0.5] * 3, [2.5, 3.0, 2.0], [0.5] * 3)


class AskingAll(Asking):
    """Asks all that are free, and selects as many as are wanted, those with the lowest ids that have answered."""

    def __init__(self):
        super().__init__(asks="resources", down_bits=3.0, up_bits=5.0)

    def select(self, view, rng):
        super().select(view, rng)
        return view.answers.client[: view.wanted]


def asked(history):
    names = ("round", "client", "start_s", "end_s", "outcome")
    return [tuple(row[name] for name in names) for row in history.probes.to_pylist()]


def took_part(history):
    names = ("round", "client", "start_s", "start_version", "end_s", "fate", "staleness")
    return [tuple(row[name] for name in names) for row in history.participations.to_pylist()]


def test_updates_are_merged_while_a_question_is_in_the_air():
    """Client 1 comes at 5 s, as clients 0 and 2 are being asked: one place is filled at 5.5 s, the other at 6.5 s."""
    history, selector, *_ = serve(FedAsync(concurrency=2), *TIMES_S, selector=AskingAll(), count=3)
    assert asked(history) == [
        *((1, client, 0.0, 1.0, "delivered") for client in (0, 1, 2)),
        *((2, client, 4.5, 5.5, "delivered") for client in (0, 2)),
        *((3, client, 5.5, 6.5, "delivered") for client in (1, 2)),
    ]
    assert took_part(history) == [
        (1, 0, 1.0, 0, 4.5, "used", 0),
        (1, 1, 1.0, 0, 5.0, "stale-used", 1),
        (3, 0, 5.5, 2, 9.0, "used", 0),
        (3, 1, 6.5, 2, 9.0, "wasted-late", None),
    ]
    assert history.column("rounds", "end_s").tolist() == [4.5, 5.0, 9.0]
    # Those that have come since the question was put are free, but have not answered it.
    seen = [(view.round, view.time_s, view.client.tolist(), view.answers.client.tolist()) for view in selector.views]
    assert seen == [(1, 1.0, [0, 1, 2], [0, 1, 2]), (3, 5.5, [0, 1, 2], [0, 2]), (3, 6.5, [1, 2], [1, 2])]


def test_a_question_that_is_in_the_air_when_the_run_ends_is_cut_off():
    history, *_ = serve(FedAsync(concurrency=2), *TIMES_S, selector=AskingAll(), count=2)
    assert asked(history)[3:] == [(2, 0, 4.5, 5.0, "late"), (2, 2, 4.5, 5.0, "late")]
    assert history.column("probes", "uplink_bits")[3:].tolist() == [0.0, 0.0], "at 5 s they begin to answer"


def test_a_restart_breaks_a_question_off_and_the_next_is_put_afterwards():
    """The server crashes at 4.75 s, for 1 s; client 1 is at work then and lost."""
    history, *_ = serve(
        FedAsync(concurrency=2),
        *TIMES_S,
        selector=AskingAll(),
        count=3,
        server_restart=ServerRestart(at_s=[4.75], down_s=1.0),
    )
    assert asked(history)[3:] == [
        *((2, client, 4.5, 4.75, "late") for client in (0, 2)),
        *((3, client, 5.75, 6.75, "delivered") for client in (0, 1, 2)),
    ]
    assert took_part(history)[1:3] == [(1, 1, 1.0, 0, 4.75, "wasted-late", None), (3, 0, 6.75, 1, 10.25, "used", 0)]


def test_where_nobody_is_free_nobody_is_asked_until_somebody_is():
    """Client 0 is at work to 4.5 s, and client 1 is there from 20 s on."""
    there = available_in([(0, 8)], [(20, 99)])
    history, *_ = serve(
        FedBuff(concurrency=2, buffer=1, give_up_s=50.0),
        *(times_s[:2] for times_s in TIMES_S),
        selector=AskingAll(),
        presence=there,
        count=2,
    )
    assert [row[:4] for row in asked(history)] == [(1, 0, 0.0, 1.0), (2, 0, 4.5, 5.5), (2, 1, 20.0, 21.0)]
    assert [row[1:3] for row in took_part(history)] == [(0, 1.0), (0, 5.5), (1, 21.0)]


def test_at_edges_each_asks_its_own():
    edges = Edges(grouping={"kind": "given", "edge": (0, 0, 1)}, backhaul="none")
    history, *_ = serve(
        FedAsync(concurrency=1), *TIMES_S, edges=edges, selectors=[AskingAll(), AskingAll()], count=1, audit=True
    )
    assert [(row["edge"], row["client"]) for row in history.probes.to_pylist()] == [(0, 0), (0, 1), (1, 2)]
    assert history.column("participations", "client").tolist() == [2, 0]


@pytest.mark.parametrize("kind", ["pow-d", "cpow-d", "fedcs", "tifl"])
@pytest.mark.parametrize("policy", [{"kind": "fedasync"}, {"kind": "fedbuff", "buffer": 2}])
def test_every_selector_that_asks_works_asynchronously_and_questions_have_luck_of_their_own(kind, policy):
    law = {"kind": "log-normal", "median_s": 0.3, "sigma": 0.4}
    options = {"fedcs": {"deadline_s": 60.0}, "cpow-d": {"cohort": 3, "samples": 4}}.get(kind, {"cohort": 3})
    history = simulate(
        timed(
            clients=12,
            bits=1e5,
            samples=30,
            network={"kind": "latency", "downlink": law, "uplink": law},
            devices={},
            rounds={"count": 25, "policy": {"concurrency": 4, **policy}},
            selector={"kind": kind, **options},
        )
    )
    assert history.rounds.num_rows == 25
    assert history.column("rounds", "model_version").tolist() == list(range(1, 26))
    # No two of a client's ways down were equally long, whether for questions or for models.
    down_s = np.concatenate([history.column(table, "downlink_s") for table in ("probes", "participations")])
    whole = np.concatenate(
        [history.column("probes", "outcome") == "delivered", history.column("participations", "outcome") == "delivered"]
    )
    assert np.unique(down_s[whole]).size == np.count_nonzero(whole)


def test_the_critical_path_knows_each_clients_own_question():
    """Questions take 2.75 s with client 1 and 1 s without: from 0, 5.25 (to client 0) and 6.25 s, as the round goes on.

    Client 0 comes at 5.25 s, client 1 at 5.75 s, and client 0, asked for 1 s in the round before, at 8.75 s.
    """
    times_s = ([0.5, 2.25, 0.5], [1.5, 0.25, 1.5], [0.5] * 3)
    history, *_ = serve(FedAsync(concurrency=2), *times_s, selector=AskingAll(), count=3)
    names = ("round", "duration_s", "cause", "client", "phase", "phase_s")
    assert [tuple(row[name] for name in names) for row in history.critical_path().to_pylist()] == [
        (1, 5.25, "client", 0, "probe", 2.75),
        (2, 0.5, "client", 1, "probe", 2.75),
        (3, 3.0, "client", 0, "compute", 1.5),
    ]
