"""Edge servers without available clients, or with too few updates, and clouds that are stopped during a cycle."""

import numpy as np
import pytest

from fedsim.devices import Always, Bernoulli
from fedsim.errors import ScenarioError
from fedsim.rounds import Deadline, Edges, WaitForAll
from fedsim.rounds.policies.late import Stale
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support.stories import rows
from tests.support.worlds import available_in, batteries, serve

ZEROS = np.zeros(2)


def edges(merging, edge=(0, 1), **options):
    return Edges(**{"grouping": {"kind": "given", "edge": edge}, "merging": merging, "backhaul": "none", **options})


SKIP = {"kind": "synchronous", "absent": "skip"}
LATER = ([(0, 1000)], [(50, 1000)])
NAMES = ("round", "edge", "start_s", "end_s", "edge_rounds", "weight")


def run(merging, presence, *, count=3, work_s=(4.0, 4.0), **options):
    """Run two edges of one client each, whose participations take 4 s of work."""
    return serve(
        Deadline(deadline_s=10), ZEROS, work_s, ZEROS, presence=presence, edges=edges(merging), count=count, **options
    )[0]


def test_a_synchronous_cloud_waits_for_the_clients_of_every_edge():
    history = run("synchronous", available_in(*LATER))
    assert rows(history.edge_participations, *NAMES) == [
        (1, 0, 0.0, 4.0, 1, 0.5),
        (1, 1, 0.0, 54.0, 1, 0.5),
        (2, 0, 54.0, 58.0, 1, 0.5),
        (2, 1, 54.0, 58.0, 1, 0.5),
        (3, 0, 58.0, 62.0, 1, 0.5),
        (3, 1, 58.0, 62.0, 1, 0.5),
    ]


def test_or_continues_without_edge_servers_that_have_no_available_client():
    history = run(SKIP, available_in(*LATER), count=14)
    found = rows(history.edge_participations, *NAMES)
    assert found[:13] == [(number, 0, 4.0 * (number - 1), 4.0 * number, 1, 1.0) for number in range(1, 14)]
    assert found[13:] == [(14, 0, 52.0, 56.0, 1, 0.5), (14, 1, 52.0, 56.0, 1, 0.5)]
    assert rows(history.edge_rounds, "edge", "round")[-1] == (1, 14), "a round that is missed keeps its number"


def test_an_edge_that_its_clients_leave_delivers_its_model_or_waits():
    """Client 1 is available until 6 s and again from 20 s; its edge runs two rounds a cycle and has run one by then."""
    availability = available_in([(0, 1000)], [(0, 6), (20, 1000)])
    for merging, end_s, done in ((SKIP, 8.0, 1), ("synchronous", 24.0, 2)):
        history, *_ = serve(
            Deadline(deadline_s=10), ZEROS, [4, 6], ZEROS, presence=availability, edges=edges(merging, rounds=2)
        )
        assert rows(history.edge_participations, "edge", "edge_rounds") == [(0, 2), (1, done)]
        assert history.column("rounds", "end_s").tolist() == [max(8.0, 26.0 if done == 2 else end_s)]


@pytest.mark.parametrize("merging", ["asynchronous", "fedat"])
def test_an_asynchronous_cloud_continues_and_the_edge_returns_with_its_clients(merging):
    """The edge waits before it fetches the model, so that it fetches the newest."""
    history = run(merging, available_in(*LATER), count=14)
    names = ("round", "edge", "start_s", "end_s")
    expected = [(number, 0, 4.0 * (number - 1), 4.0 * number) for number in range(1, 14)]
    assert rows(history.edge_participations, *names)[:14] == [*expected, (14, 1, 50.0, 54.0)]
    assert history.column("edge_participations", "start_version").tolist()[13] == 12


@pytest.mark.parametrize("merging", ["synchronous", SKIP, "asynchronous", "fedat"])
def test_an_edge_without_any_client_ever_is_left_out(merging):
    history = run(merging, available_in([(0, 1000)], []))
    assert rows(history.edge_participations, "round", "edge")[:3] == [(1, 0), (2, 0), (3, 0)]
    assert rows(history.rounds, "start_s", "end_s", "candidates") == [(0, 4, 1), (4, 8, 1), (8, 12, 1)]


@pytest.mark.parametrize("merging", ["synchronous", SKIP, "asynchronous", "fedat"])
def test_a_run_ends_early_when_no_client_will_be_available(merging):
    """Both leave for good (the period is longer than the run) after two rounds; the next would start at 1,000 s."""
    history = run(merging, available_in([(0, 8)], [(0, 8)]), count=9, until_s=500.0)
    assert history.column("rounds", "end_s").max() == 8.0
    assert history.column("rounds", "model_version").max() >= 2
    with pytest.raises(ScenarioError, match="no round can start"):
        run(merging, available_in([], []))
    with pytest.raises(ScenarioError, match=r"rounds\.until_s"):
        run(merging, available_in([(90, 99)], [(80, 99)]), until_s=50.0)


@pytest.mark.parametrize("merging", ["synchronous", "asynchronous"])
def test_a_run_ends_although_updates_are_always_too_few_and_no_time_passes(merging):
    """Two updates are needed and the only candidate of each edge delivers at once: eight rounds, all at 0 s."""
    availability = available_in([(0, 1000)], [], [(0, 1000)], [])
    history, _, learner, _ = serve(
        Deadline(deadline_s=10), *[np.zeros(4)] * 3,
        presence=availability, edges=edges(merging, (0, 0, 1, 1)), minimum_updates=2, count=8,
    )  # fmt: skip
    assert rows(history.rounds, "end_s", "model_version") == [(0.0, 0)] * 8
    assert set(history.column("edge_participations", "weight")) == {0.0}
    assert set(history.column("participations", "fate")) == {"wasted-unmerged"}
    assert learner.aggregated == learner.merged == []


def test_an_edge_waits_for_clients_in_flight_and_then_for_the_next_available_one():
    """Client 1 is late at 1 s, drops out at 3 s and is back at 10 s; its edge has no other client."""
    history, *_ = serve(
        Deadline(deadline_s=1), ZEROS, [0.5, 5.0], ZEROS,
        presence=available_in([(0, 1000)], [(0, 3), (10, 14), (30, 900)]),
        late=Stale(), edges=edges("synchronous"), count=3,
    )  # fmt: skip
    assert rows(history.edge_rounds, "edge", "round", "start_s", "end_s") == [
        (0, 1, 0.0, 0.5),
        (1, 1, 0.0, 1.0),
        (0, 2, 1.0, 1.5),
        (1, 2, 1.0, 11.0),
        (0, 3, 11.0, 11.5),
        (1, 3, 11.0, 31.0),
    ]
    of_client_1 = [row for row in rows(history.participations, "client", "start_s", "end_s", "outcome") if row[0] == 1]
    assert of_client_1 == [(1, 0.0, 3.0, "dropped"), (1, 10.0, 14.0, "dropped"), (1, 30.0, 31.0, "late")]


@pytest.mark.parametrize("merging", ["synchronous", "asynchronous"])
def test_edges_wait_for_their_own_batteries(merging):
    """50 J are needed: client 0 has them at 5 s, client 1 at 20 s, and a participation empties neither below 50 J."""
    power = batteries([40.0, 10.0], gain_w=2.0, least=50.0, sample=0.0)
    history = run(merging, Always().build(RunSetup(2, Streams(0))), batteries=power, count=2)
    starts_s = dict(reversed(rows(history.participations, "client", "start_s")))
    assert starts_s[0] == history.column("rounds", "start_s")[0] == 5.0
    assert history.column("edge_rounds", "start_s").tolist() == (
        [5.0, 20.0, 24.0, 24.0] if merging == "synchronous" else [5.0, 9.0]
    )


@pytest.mark.parametrize("merging", ["synchronous", SKIP, "asynchronous"])
def test_each_edge_draws_availability_until_a_client_is_available(merging):
    """Two clients of p = 0.1 each: most first draws have no available client, but every edge round has a candidate."""
    presence = Bernoulli(probability=0.1, retry_s=3.0).build(RunSetup(4, Streams(5)))
    history, *_ = serve(
        WaitForAll(), [0] * 4, [1.0] * 4, [0] * 4, presence=presence, edges=edges(merging, (0, 1, 1, 0)), count=40
    )
    candidates = history.column("edge_rounds", "candidates")
    assert candidates.min() >= 1
    starts_s = history.column("edge_rounds", "start_s")
    assert history.rounds.num_rows == 40
    assert np.all(np.abs((starts_s - np.round(starts_s)) % 1.0) < 1e-9)
    assert set(history.column("edge_rounds", "edge")) == {0, 1}
