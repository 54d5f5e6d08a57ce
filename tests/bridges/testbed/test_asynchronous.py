"""A testbed of an asynchronous server, by hand: client k delivers k + 4 s after it was sent."""

import math

import pytest

from fedsim import Scenario, Testbed, simulate
from fedsim.errors import StepError
from tests.support.hand_made import BASE, by_hand
from tests.support.stepped import driven, table_bytes


def asynchronous(kind="fedbuff", count=3, alike=False, **options):
    """Return a testbed; clients that are alike deliver after 4 s each."""
    network = {**BASE["network"], **({"uplink_factor": 1.0} if alike else {})}
    policy = {"kind": kind, "concurrency": 3, **options}
    return Testbed(by_hand(network=network, rounds={"count": count, "policy": policy}))


def test_arrivals_come_in_order_and_close_rounds():
    """Of clients 0, 1 and 2 the first two fill the buffer, after 4 and 5 s; the third is one version stale."""
    testbed = asynchronous(buffer=2)
    testbed.send([2, 0, 1])
    first, second = testbed.next_arrival(), testbed.next_arrival()
    assert [(one.client, one.time_s, one.delivered) for one in (first, second)] == [(0, 4.0, True), (1, 5.0, True)]
    assert first.closed is None
    assert second.closed.client.tolist() == [0, 1]
    assert second.closed.weight.tolist() == [0.5, 0.5]
    assert (second.closed.number, second.closed.version, testbed.last) == (1, 1, second.closed)
    testbed.report(losses={0: 1.0, 1: 2.0}, accuracy=0.5)
    testbed.send([0])
    third = testbed.next_arrival()
    assert (third.client, third.time_s, third.start_version, third.staleness, third.closed) == (2, 6.0, 0, 1, None)
    fourth = testbed.next_arrival()
    assert (fourth.client, fourth.time_s, fourth.start_version, fourth.staleness) == (0, 9.0, 1, 0)
    assert fourth.closed.staleness.tolist() == [1, 0]


def test_updates_of_one_instant_come_one_by_one():
    """FedAsync: two clients that are alike arrive at once, each makes a version, and each of them is reported on."""
    testbed = asynchronous("fedasync", alike=True)
    testbed.send([0, 1])
    one, other = testbed.next_arrival(), testbed.next_arrival()
    assert (one.client, one.closed, other.client, other.closed.number) == (0, None, 1, 1)
    testbed.report(accuracy=0.1)
    last = testbed.next_arrival()
    assert (last.client, last.delivered, last.closed.number, last.time_s) == (-1, False, 2, 4.0)
    testbed.report(accuracy=0.2)
    assert testbed.finish().evaluations.column("accuracy").to_pylist() == [0.1, 0.2]


def test_a_loop_that_asks_for_the_end_reports_on_each_round():
    """FedAsync: three clients that are alike arrive at 4 s, where three rounds end; the run ends with the second."""
    testbed, closed = asynchronous("fedasync", 2, alike=True), []
    while not testbed.over:
        if testbed.vacant:
            testbed.send([0, 1, 2])
        arrival = testbed.next_arrival()
        if arrival.closed is not None:
            closed.append(arrival.closed.number)
            testbed.report(accuracy=0.1 * len(closed))
    assert (closed, testbed.now_s, testbed.vacant) == ([1, 2], 4.0, 0)
    assert testbed.finish().evaluations.column("accuracy").to_pylist() == [0.1, 0.2]


def test_a_server_that_has_gone_on_takes_one_evaluation():
    """The round has ended after 4 s with a single update; the next clients are sent before its model is evaluated."""
    testbed = asynchronous(buffer=1)
    testbed.send([0])
    testbed.next_arrival()
    testbed.send([1])
    testbed.report(accuracy=0.5)
    with pytest.raises(StepError, match="report: no round was just played"):
        testbed.report(accuracy=0.6)
    testbed.next_arrival()
    testbed.report(accuracy=0.7)
    assert testbed.finish().evaluations.column("accuracy").to_pylist() == [0.5, 0.7]


def test_a_wait_has_a_limit():
    """Client 3 arrives after 7 s."""
    testbed = asynchronous(buffer=1)
    testbed.send([3])
    assert testbed.next_arrival(within_s=2.0) is None
    assert testbed.now_s == 2.0
    assert (testbed.in_flight, testbed.vacant) == (1, 2)
    testbed.send([0])  # after 6 s
    assert [testbed.next_arrival(within_s=4.0).client, testbed.next_arrival().client] == [0, 3]
    assert testbed.now_s == 7.0


def test_time_passes_with_arrivals():
    testbed = asynchronous(buffer=2)
    testbed.send([0, 1, 2])
    assert [arrival.client for arrival in testbed.advance(5.5)] == [0, 1]
    assert testbed.now_s == 5.5
    assert [arrival.client for arrival in testbed.advance(20.0, to_arrival=True)] == [2]
    assert testbed.now_s == 6.0
    assert testbed.advance(20.0) == ()
    assert testbed.now_s == 20.0
    testbed.send([3])
    assert testbed.next_arrival().time_s == 27.0


def test_a_client_that_is_given_up_is_told():
    testbed = asynchronous(buffer=1, give_up_s=6.5)
    testbed.send([3])
    arrival = testbed.next_arrival()
    assert (arrival.client, arrival.outcome, arrival.delivered, arrival.time_s) == (3, "late", False, 6.5)
    testbed.send([3])  # it is a candidate again


@pytest.mark.parametrize("sent", [[], [0, 1, 2]])
def test_time_that_passes_ends_the_run_at_its_last_second(sent):
    """All clients are lost at once."""
    policy = {"kind": "fedbuff", "concurrency": 3, "give_up_s": 50.0}
    devices = {"compute": "zero", "dropout": {"kind": "hazard", "rate_per_s": 1e6}}
    testbed = Testbed(by_hand(devices=devices, rounds={"count": 3, "until_s": 10.0, "policy": policy}))
    if sent:
        testbed.send(sent)
    found = []
    while not testbed.over:
        found += testbed.advance(testbed.now_s + 3.0)
    assert [(one.delivered, one.closed.number, one.time_s) for one in found] == [(False, 1, 10.0)]
    assert (testbed.now_s, testbed.vacant) == (10.0, 0)
    with pytest.raises(StepError, match=r"at 10 s: rounds\.until_s has come, and "):
        testbed.next_arrival()
    assert testbed.finish().participations.num_rows == len(sent)


def test_a_run_is_finished_with_clients_in_flight():
    """The round that has begun is the last one; what it has sent is lost, and the audit finds nothing wrong."""
    testbed = asynchronous(buffer=2)
    testbed.send([0, 1, 2])
    testbed.next_arrival()
    history = testbed.finish()
    assert history.participations.column("fate").to_pylist() == ["wasted-unmerged", "wasted-late", "wasted-late"]
    assert history.rounds.column("selected").to_pylist() == [3]


def test_a_run_is_finished_between_two_rounds():
    testbed = asynchronous(buffer=1)
    testbed.send([0])
    testbed.next_arrival()
    testbed.view()
    assert testbed.finish().rounds.num_rows == 1


def test_sizes_and_work_are_stated():
    """Clients 0 and 3 receive and send for 2 and 5 s beside their work."""
    testbed = asynchronous(buffer=2)
    testbed.send([0, 3], compute_s=[5.0, 0.5], up_bits=[1e5, 2e5])
    arrivals = [testbed.next_arrival(), testbed.next_arrival()]
    assert [(one.client, one.time_s) for one in arrivals] == [(3, 5.5), (0, 7.0)]
    assert arrivals[1].closed.uplink_bits.tolist() == [1e5, 2e5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda testbed: testbed.round([0]),
            "round: the scenario has an asynchronous policy, .* allowed: send and next",
        ),
        (lambda testbed: testbed.next_arrival(), "next_arrival: no client is in flight"),
        (lambda testbed: testbed.next_arrival(within_s=math.nan), "next_arrival: within_s: nan is not allowed"),
        (lambda testbed: testbed.send([0, 1, 2, 3]), "send: clients: 4 are not allowed, as 3 of 3 places are vacant"),
        (lambda testbed: testbed.send([9]), "send: clients: 9 is no client of this crowd"),
        (lambda testbed: testbed.report(accuracy=0.5, losses={0: 1.0}), "report: no round was just played"),
        (lambda testbed: testbed.view(within_s=1.0), "view: within_s: an asynchronous server waits by next_arrival"),
    ],
)
def test_calls_that_are_not_allowed_are_refused(call, message):
    testbed = asynchronous(buffer=1)
    with pytest.raises(StepError, match=message):
        call(testbed)
    testbed.send([1])
    assert testbed.next_arrival().time_s == 5.0


def test_a_question_at_an_asynchronous_server_is_refused():
    scenario = by_hand(
        selector={"kind": "pow-d", "cohort": 2},
        rounds={"count": 2, "policy": {"kind": "fedbuff", "concurrency": 2, "buffer": 1}},
    )
    with pytest.raises(StepError, match="select: PowD asks clients a question first"):
        Testbed(scenario).select()


@pytest.mark.parametrize("kind", ["fedbuff", "fedasync", "pisces"])
def test_clients_that_come_and_go(kind):
    """Where clients are away for a while, the server looks again as `simulate` does."""
    devices = {**BASE["devices"], "availability": {"kind": "markov", "mean_on_s": 20.0, "mean_off_s": 20.0}}
    policy = {"kind": kind, "concurrency": 3, "give_up_s": 9.0}
    scenario = Scenario(**by_hand(devices=devices, rounds={"count": 4, "policy": policy}))
    assert table_bytes(driven(scenario)) == table_bytes(simulate(scenario))
