"""Deadlines that no client meets on average."""

import re
from typing import ClassVar

import pytest

from fedsim import Component, Testbed, simulate
from fedsim.errors import ScenarioError
from fedsim.rounds import Effect, EffectSettings
from fedsim.rounds.server import asynchronous
from fedsim.simulation import Simulation
from tests.support.short_runs import TIMING

WORK = TIMING.replace(
    {
        "learning": {"kind": "none", "model_bits": 1e6, "samples_per_client": [54, 60, 70, 80, 90, 98]},
        "network": {
            "kind": "latency",
            "downlink": {"kind": "constant", "value_s": 0.2},
            "uplink": {"kind": "constant", "value_s": 2.3},
        },
        "devices.compute": {"kind": "rate", "samples_per_s": 10.0, "spread_sigma": 0.0, "jitter_sigma": 0.0},
        "rounds.count": 2,
        "rounds.policy": {"kind": "deadline", "deadline_s": 1.0},
    }
)
"""Work takes 5.4 to 9.8 s, and with the links 7.9 to 12.3 s."""
EDGES = {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}
ASYNCHRONOUS = {"kind": "fedbuff", "concurrency": 2, "buffer": 1, "give_up_s": 7.0}


def test_the_way_out_lets_nine_of_ten_in(logged):
    history = simulate(WORK)
    note = (
        "rounds.policy: no client delivers within the deadline on average: work 5.4 to 9.8 s, downlink 0.2 s, uplink "
        "2.3 s; deadline 1 s; rounds.policy.deadline_s = 13 would do for 90% of them"
    )
    assert history.notes[0] == note
    assert history.notes[1].startswith("nothing was delivered: 0 of 6 participations")
    assert logged[0].endswith(note)
    even = {"network.downlink.value_s": 0.1, "network.uplink.value_s": 0.2, "devices.compute": "zero"}
    for deadline_s, links in ((13.0, {}), (0.3, even)):  # 0.1 s and 0.2 s are more than 0.3 s on a computer
        better = simulate(WORK.replace({"rounds.policy.deadline_s": deadline_s} | links))
        assert set(better.column("participations", "outcome")) == {"delivered"}
        assert better.notes == []
    known = Simulation(WORK.replace({"rounds.policy.deadline_s": 0.29} | even)).foreseen[0]
    assert "rounds.policy.deadline_s = 0.3 would do" in known


@pytest.mark.parametrize(
    ("policy", "what", "field"),
    [
        ({"kind": "quorum", "share": 0.5, "max_wait_s": 1.0}, "wait", "max_wait_s"),
        ({"kind": "k-fastest", "k": 1, "max_wait_s": 1.0}, "wait", "max_wait_s"),
        ({"kind": "adaptive-deadline", "initial_s": 0.1, "longest_s": 1.0}, "deadline", "longest_s"),
        ({"kind": "moving-average", "initial_s": 1.0}, "deadline", "initial_s"),
        (ASYNCHRONOUS | {"give_up_s": 1.0}, "time until it is given up", "give_up_s"),
    ],
)
@pytest.mark.parametrize("edges", [None, EDGES])
def test_every_limit_of_a_wait_is_looked_at(policy, what, field, edges):
    known = Simulation(WORK.replace({"rounds.policy": policy, "rounds.edges": edges})).foreseen[0]
    assert known.startswith(f"rounds.policy: no client delivers within the {what} on average: work 5.4 to 9.8 s")
    assert known.endswith(f"{what.split()[0]} 1 s; rounds.policy.{field} = 13 would do for 90% of them")


class Fixed(Component):
    """A compute time of the user's own, with numbers for some draws only."""

    requires: ClassVar[frozenset[str]] = frozenset({"samples"})
    draws: int

    def build(self, run):
        return self

    def duration_s(self, client, draw, samples):
        assert draw <= self.draws
        return samples / 10.0

    def expected_s(self, samples):
        return samples / 10.0


@pytest.mark.parametrize(
    ("changes", "given_up"),
    [
        ({}, 1),
        ({"rounds.policy.give_up_s": 7.89}, 1),
        ({"devices.compute.jitter_sigma": 0.01}, 100),
        ({"network.uplink": {"kind": "shifted-exponential", "shift_s": 2.3, "scale_s": 1.0}}, 100),
        ({"devices.compute.jitter_sigma": 0.01, "devices.dropout": {"kind": "hazard", "rate_per_s": 9.0}}, 100),
        ({"rounds.policy.give_up_s": 7.91, "devices.dropout": {"kind": "hazard", "rate_per_s": 9.0}}, 100),
        ({"rounds.policy.give_up_s": 7.91, "devices.dropout": {"kind": "hazard", "rate_per_s": 0.7}}, 150),
        ({"devices.compute": Fixed(draws=10**9)}, 1),
        ({"devices.compute": Fixed(draws=99)}, 150),
        ({"rounds.edges": EDGES}, 1),
        ({"rounds.edges": EDGES, "rounds.policy.give_up_s": 8.1}, 1),
    ],
)
def test_a_server_that_gives_every_client_up_says_so_as_soon_as_that_is_sure(changes, given_up, monkeypatch):
    """Client 0 needs 0.2 + 5.4 + 2.3 = 7.9 s: at once where times are constant, and of drawn ones after 100 in a row.

    With 0.01 s more it could deliver if it were not lost, which it is but for exp(-71), or exp(-5.5): then 10,000 in a
    row are enough, here 150. Of the clients 0 to 2 of an edge server the fastest takes 7.9 s, of 3 to 5 10.5 s.
    """
    monkeypatch.setattr(asynchronous, "PATIENCE", 150)
    scenario = WORK.replace({"rounds.policy": ASYNCHRONOUS, **changes})
    with pytest.raises(ScenarioError, match=rf"give_up_s: .* {given_up} clients in a row were given up"):
        simulate(scenario)


class Heavier(EffectSettings):
    """Makes the work of each participation so many times what it was, until an instant."""

    times: float
    until_s: float = 1e9
    kind: str = "plan"

    def build(self, run):
        return WEIGHTS[self.kind](self)


class Weight(Effect):
    def __init__(self, settings):
        self.settings = settings

    def of(self, now_s):
        return self.settings.times if now_s < self.settings.until_s else 0.5

    def plan(self, plan):
        plan.work = plan.work * self.of(plan.start_s)


class ByClock(Weight):
    """Reads the clock in a function of the run that it was given."""

    def begin(self, run):
        self.now_s = lambda: run.env.now

    def plan(self, plan):
        plan.work = plan.work * self.of(self.now_s())


class WhenDue(Effect):
    phases = frozenset({1})
    __init__, of = Weight.__init__, Weight.of

    def due(self, plan, phase, members):
        plan.work[members] *= self.of(plan.begun_s[phase, members].min())


class ByProcess(Weight):
    def begin(self, run):
        self.env = run.env
        run.env.process(self.change())

    def change(self):
        yield self.env.timeout(self.settings.until_s)
        self.settings = Heavier(times=0.5)


class AfterEnough(Weight):
    """Has as its second of change the number of clients that have ended."""

    ended = 0

    def plan(self, plan):
        plan.work = plan.work * self.of(self.ended)

    def settle(self, plan, members):
        self.ended += len(members)


WEIGHTS = {"plan": Weight, "clock": ByClock, "due": WhenDue, "process": ByProcess, "settle": AfterEnough}


@pytest.mark.parametrize(("kind", "given_up"), [*((kind, 100) for kind in ("plan", "clock", "due")), ("process", 150)])
def test_effects_of_ones_own_that_change_work_are_foreseen_in_a_copy(kind, given_up, monkeypatch):
    """The fastest takes 7.9 s, with half of the work 5.2 s, and is given up after 7 s; 150 in a row take 525 s."""
    monkeypatch.setattr(asynchronous, "PATIENCE", 150)
    scenario = WORK.replace({"rounds.policy": ASYNCHRONOUS, "rounds.effects": [Heavier(times=9.0, kind=kind)]})
    with pytest.raises(ScenarioError, match=rf"give_up_s: .* {given_up} clients in a row were given up"):
        simulate(scenario)
    for effect in (Heavier(times=0.5, kind=kind), Heavier(times=9.0, kind=kind, until_s=480.0)):
        history = simulate(scenario.replace({"rounds.effects": [effect]}))
        assert history.rounds.num_rows == 2
        assert not any("on average" in note for note in history.notes)


@pytest.mark.parametrize(
    "windows",
    [
        {"kind": "traces", "period_s": 20.0, "ends_s": 7.8},
        {"kind": "traces", "period_s": 1e6, "ends_s": 7.8},
        {"kind": "markov", "mean_on_s": 0.2, "mean_off_s": 1.0},
    ],
)
def test_windows_shorter_than_any_task_are_told_after_few_clients(windows, monkeypatch, tmp_path):
    """The shortest task takes 7.9 s, and clients are given up after 8 s."""
    monkeypatch.setattr(asynchronous, "PATIENCE", 150)
    monkeypatch.setattr(asynchronous, "LOOKS", 1_000)
    with pytest.raises(ScenarioError, match=r"give_up_s: .* 100 clients in a row .*: none of .* stays online"):
        simulate(in_windows(windows, tmp_path))


@pytest.mark.parametrize(
    "windows",
    [
        {"kind": "traces", "period_s": 20.0, "ends_s": 7.95},
        {"kind": "traces", "period_s": 20.0, "ends_s": 7.8, "long": 0},
        {"kind": "markov", "mean_on_s": 4.0, "mean_off_s": 1.0},
    ],
)
def test_windows_with_time_for_a_task_are_waited_for(windows, tmp_path):
    assert simulate(in_windows(windows, tmp_path)).rounds.num_rows == 2


def in_windows(windows, folder):
    """Return the scenario with an availability; one of traces has a window of each client from 1 s on."""
    if windows["kind"] == "traces":
        ends_s = [windows["period_s"] / 2 if i == windows.get("long") else windows["ends_s"] + 1.0 for i in range(6)]
        rows = "".join(f"{i},1,{end_s},{windows['period_s']}\n" for i, end_s in enumerate(ends_s))
        (folder / "windows.csv").write_text("client,start_s,end_s,period_s\n" + rows)
        windows = {"kind": "traces", "path": str(folder / "windows.csv")}
    return WORK.replace({"rounds.policy": ASYNCHRONOUS | {"give_up_s": 8.0}, "devices.availability": windows})


@pytest.mark.parametrize(("compute_s", "given_up"), [(None, 100), (5.4, 150)])
def test_a_testbed_is_refused_by_the_laws_unless_it_states_its_times(compute_s, given_up, monkeypatch):
    monkeypatch.setattr(asynchronous, "PATIENCE", 150)
    testbed = Testbed(WORK.replace({"rounds.policy": ASYNCHRONOUS}))
    for i in range(given_up - 1):
        testbed.send([i % 6], compute_s=compute_s)
        assert testbed.next_arrival().outcome == "late"
    testbed.send([0], compute_s=compute_s)
    with pytest.raises(ScenarioError, match=rf"give_up_s: .* {given_up} clients in a row were given up"):
        testbed.next_arrival()


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds.policy.give_up_s": 7.91},
        {"devices.compute.jitter_sigma": 0.15},
        {"rounds.effects": [Heavier(times=9.0, until_s=120, kind="settle")]},
    ],
)
def test_a_server_waits_on_where_a_client_may_deliver(changes):
    """Of the laws' participations of client 0 some take less than 7 s: 4.5 s of work, a level of one in nine."""
    history = simulate(WORK.replace({"rounds.policy": ASYNCHRONOUS, **changes}))
    assert history.rounds.num_rows == 2


def test_a_last_second_ends_a_server_that_gives_every_client_up():
    history = simulate(WORK.replace({"rounds.policy": ASYNCHRONOUS, "rounds.until_s": 20.0}))
    assert any("rounds.until_s has come, and the last 4 clients were given up" in note for note in history.notes)


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds.policy.deadline_s": 7.9},
        {"rounds.late": {"kind": "stale"}},
        {"rounds.policy": {"kind": "k-fastest", "k": 1}},
    ],
)
def test_nothing_is_said_where_updates_arrive(changes):
    assert not [note for note in simulate(WORK.replace(changes)).notes if "no client" in note]


def test_late_updates_that_are_used_are_no_reason_for_a_note():
    history = simulate(WORK.replace({"rounds.late": "stale", "rounds.policy.deadline_s": 9.0, "rounds.count": 6}))
    assert not [note for note in history.notes if "was delivered" in note]


def test_links_that_carry_nothing_are_named():
    network = {"kind": "lora", "path_loss": {"kind": "log-distance", "exponent": 9.0}}
    notes = simulate(WORK.replace({"network": network, "crowd.placement": {"kind": "disc", "radius_m": 1e6}})).notes
    assert "uplink inf s; deadline 1 s; links carry nothing" in notes[0]


@pytest.mark.parametrize(
    ("uplink_s", "factor", "way_out"),
    [
        (2.3, [1.0] * 4 + [2.0, 1e6], "deadline_s = 14 would do for 83% of them (over 100 times the median: 1)"),
        (2.3, [1.0] * 3 + [1e6] * 3, "deadline_s = 9.5 would do for 50% of them (over 100 times the median: 3)"),
        (1e3, [1e6] * 6, "links carry next to nothing"),
    ],
)
def test_clients_out_of_reach_make_no_deadline_absurd(uplink_s, factor, way_out):
    network = {"network.uplink.value_s": uplink_s, "network.uplink_factor": factor}
    known = Simulation(WORK.replace(network)).foreseen[0]
    assert re.search(rf"; (rounds\.policy\.)?{re.escape(way_out)}$", known)


def test_a_wireless_lan_with_clients_in_deep_shadow_proposes_no_deadline_of_months():
    wireless = WORK.replace({"crowd.clients": 20, "learning.samples_per_client": 60, "network": "wifi"})
    proposed = re.search(r"deadline_s = (\S+) would do", Simulation(wireless).foreseen[0])
    assert float(proposed[1]) < 3_600.0
