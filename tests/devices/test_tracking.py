"""A tracker answers as a plain look at each client does, whatever has changed between two looks."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fedsim.devices import AVAILABILITIES, Availability, EligibleClients, tracking
from fedsim.devices.availability.independent import AlwaysAvailable
from fedsim.devices.availability.on_off import Markov
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.leaving import Crashes
from fedsim.rounds.plan import Look, Plan
from tests.support.media import of_crowd
from tests.support.worlds import batteries

LAWS = [
    "always",
    {"kind": "bernoulli", "probability": 0.3},
    {"kind": "markov", "mean_on_s": 20.0, "mean_off_s": 30.0},
    "diurnal",
    {"kind": "flash", "never_share": 0.2},
]
STEPS_S = st.one_of(st.floats(0.0, 3.0), st.floats(0.0, 200.0), st.floats(0.0, 1e5), st.floats(-500.0, 0.0))


def follow(law, client, looks):
    """Ask a tracker and the law at each look, and compare: states, their number, and what has come or gone."""
    tracker, before = law.tracker(client), np.zeros(client.size, dtype=bool)
    for time_s, draw in looks:
        changed = tracker.update(time_s, draw)
        plain = law.available(client, time_s, draw)
        np.testing.assert_array_equal(tracker.available, plain)
        assert tracker.count == np.count_nonzero(plain)
        np.testing.assert_array_equal(np.sort(changed), np.flatnonzero(plain != before))
        before = plain


@pytest.mark.parametrize("law", LAWS, ids=str)
@given(
    clients=st.integers(1, 60),
    steps_s=st.lists(STEPS_S, min_size=1, max_size=30),
    share=st.sampled_from([1, 2, 7]),
    agenda=st.sampled_from([1, 3, 256]),
)
@settings(max_examples=5)
def test_it_is_the_plain_look(law, clients, steps_s, share, agenda):
    """Agendas of one change, of a few and of all; steps that change nothing, much, and back in time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracking, "_LEAST_AGENDA", agenda)
        looks_s = np.maximum(np.cumsum(steps_s), 0.0).tolist()
        built = of_crowd(AVAILABILITIES.make(law), clients, 1)
        follow(built, np.arange(clients)[::share], [(time_s, 1 + i // 3) for i, time_s in enumerate(looks_s)])


@given(steps_s=st.lists(st.floats(0.0, 60.0), min_size=1, max_size=20), begun=st.sets(st.integers(0, 9)))
@settings(max_examples=5)
def test_several_criteria(steps_s, begun):
    """Batteries that charge, devices that fail, and participations that begin between two looks."""
    power = batteries(np.linspace(20.0, 60.0, 10).tolist(), gain_w=0.5, least=50.0)
    running = of_crowd(Markov(mean_on_s=30.0, mean_off_s=10.0), 10, 3)
    online = of_crowd(AVAILABILITIES.make({"kind": "markov", "mean_on_s": 20.0, "mean_off_s": 30.0}), 10, 1)
    law = EligibleClients(online, [battery := Battery(power), Crashes(running)], np.arange(10))
    tracker, client = law.tracker(np.arange(10)), np.array(sorted(begun), dtype=np.int64)
    for i, time_s in enumerate(np.cumsum(steps_s).tolist()):
        if i == len(steps_s) // 2:
            work = dict.fromkeys(("samples", "compute_s"), np.ones(client.size))
            plan = Plan(client, 1, 1, Look(time_s, 1), bits=(1.0, 1.0), **work)
            plan.begin(time_s)
            battery.plan(plan)
        for _ in range(2):
            tracker.update(time_s, 1)
            np.testing.assert_array_equal(tracker.available, law.available(np.arange(10), time_s, 1))
        if i == 3 * len(steps_s) // 4 and i > len(steps_s) // 2:
            plan.end_s = np.full(client.size, time_s)
            battery.settle(plan, plan.everyone)


def test_a_slow_crowd_is_looked_up_only_where_it_changes():
    """2,000 clients with mean sojourns of 1,000 s and looks each 0.1 s: a change each five looks."""
    law = of_crowd(Markov(mean_on_s=1000.0, mean_off_s=1000.0), 2000)
    tracker, looked_up, plain = law.tracker(np.arange(2000)), [], law.look_up
    tracker._look_up = lambda client, time_s: looked_up.append(client.size) or plain(client, time_s)
    for look in range(500):
        tracker.update(0.1 * look, 1)
    assert looked_up[0] == 2000
    assert 50 < sum(looked_up[1:]) < 150


def test_who_is_always_there_is_asked_for_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        AlwaysAvailable, "available", lambda _, client, *at: asked.append(at) or np.ones(client.size, bool)
    )
    tracker = AlwaysAvailable().tracker(np.arange(3))
    assert [tracker.update(time_s, 1 + i).tolist() for i, time_s in enumerate((0.0, 5.0, 2.0))] == [[0, 1, 2], [], []]
    assert asked == [(0.0, 1)]


class Counted(AlwaysAvailable):
    """Counts how often it is asked."""

    def __init__(self, kind):
        self.kind, self.asked = kind, 0

    def available(self, client, time_s, draw):
        self.asked += 1
        return super().available(client, time_s, draw)

    def tracker(self, client):
        return Availability.tracker(self, client)


@pytest.mark.parametrize(("kind", "expected"), [("per-draw", [1, 1, 1, 2, 2]), ("timed", [1, 1, 2, 2, 3])])
def test_a_law_of_ones_own_is_asked_again_when_its_answer_may_have_changed(kind, expected):
    """A law of draws at each new draw, a law of instants at each new instant."""
    law = Counted(kind)
    tracker, asked = law.tracker(np.arange(3)), []
    for time_s, draw in ((1.0, 1), (1.0, 1), (2.0, 1), (2.0, 2), (3.0, 2)):
        tracker.update(time_s, draw)
        asked.append(law.asked)
    assert asked == expected


def test_batteries_are_looked_at_again_only_after_participations():
    """2,000 batteries that do not charge while idle: at 1 s clients 3 and 7 begin, and end at 2 s with too little."""
    battery, looked_up = Battery(batteries([60.0] * 2000, send=20.0, least=50.0)), []
    tracker, plain = battery.tracker(np.arange(2000)), battery.batteries.holds_until_s
    tracker._look_up = lambda client, time_s: looked_up.append(client.tolist()) or plain(client, time_s)
    client = np.array([3, 7])
    plan = Plan(client, 1, 1, Look(1.0, 1), bits=(1.0, 1.0), samples=client, compute_s=client)
    plan.begin(1.0)
    plan.sent_bits[1] = 1.0
    counts = []
    for time_s, happens in ((0.0, None), (1.0, battery.plan), (1.0, None), (2.0, battery.settle), (2.0, None)):
        tracker.update(time_s, 1)
        counts.append(tracker.count)
        plan.end_s = np.full(2, time_s)
        if happens is not None:
            happens(*((plan,) if happens == battery.plan else (plan, plan.everyone)))
    assert counts == [2000, 2000, 1998, 1998, 1998]
    assert looked_up[1:] == [[3, 7], [3, 7]]
