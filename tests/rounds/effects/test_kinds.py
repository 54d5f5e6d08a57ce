"""Effects of a scenario, worked by hand."""

from typing import ClassVar

import numpy as np
import pytest

from fedsim import Component, read_run, run, simulate
from fedsim.devices import Dropout
from fedsim.devices.tracking import PlainTracker
from fedsim.errors import ContractError, FedsimError, PartError, ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.rounds import Deadline, Effect, EffectSettings, Limit, Never, WaitForAll
from fedsim.rounds.effects.background_traffic import BackgroundTraffic
from fedsim.rounds.effects.duty_cycle import DutyCycle
from fedsim.run_setup import RunSetup
from fedsim.selectors import Cohort
from fedsim.streams import Streams
from fedsim.testing import check_effect
from tests.support.short_runs import timed
from tests.support.stories import rows
from tests.support.worlds import Pipe, available_in, batteries, serve


def test_a_duty_cycle_of_a_quarter_is_followed_by_three_times_the_message():
    """Uploads of 2 s, due each 4 s after the end: silent for 6 s, so that each waits for 3 s, for 1 s of work."""
    settings = DutyCycle(share=0.25)
    assert DutyCycle().share == 0.01, "as in Europe at 868 MHz"
    history, *_ = serve(
        WaitForAll(), [1.0], [2.0], [2.0], effects=[settings.build(RunSetup(1, Streams(0)))], count=3, audit=True
    )
    assert rows(history.participations, "start_s", "queue_s", "uplink_s", "end_s") == [
        (0.0, 0.0, 2.0, 5.0),
        (5.0, 3.0, 2.0, 13.0),
        (13.0, 3.0, 2.0, 21.0),
    ]


@pytest.mark.parametrize("shared", [{"down": FirstCome}, {"up": EqualSharing}, {"down": FirstCome, "up": FirstCome}])
def test_a_duty_cycle_holds_on_shared_links_too(shared):
    """Messages of 1 bit at 1 bit/s: 1 s up and 3 s of silence, of which 1 s down and 1 s of work pass."""
    effects, links = [DutyCycle(share=0.25).build(RunSetup(1, Streams(0)))], Pipe([1.0], [1.0], **shared)
    history, *_ = serve(WaitForAll(), [1.0], [1.0], [1.0], links=links, effects=effects, count=2)
    assert rows(history.participations, "queue_s", "uplink_s", "end_s") == [(0.0, 1.0, 3.0), (1.0, 1.0, 7.0)]


@pytest.mark.parametrize(("back_s", "queue_s"), [(5.8, 1.0), (6.5, 1.5)])
def test_a_link_that_fails_during_a_silence_loses_nothing(back_s, queue_s):
    """The second upload is due at 5 s and allowed at 6 s; the link fails at 5.5 s."""
    effects, up = [DutyCycle(share=0.25).build(RunSetup(1, Streams(0)))], available_in([(0, 5.5), (back_s, 99)])
    history, *_ = serve(Deadline(deadline_s=9), [1], [1], [1], effects=effects, links_up=up, count=2)
    assert rows(history.participations, "queue_s", "outcome")[1] == (queue_s, "delivered")


@pytest.mark.parametrize(
    ("rule", "from_s", "until_s", "work_s", "expected"),
    [
        # Beside one sender half the rate, until 3 s: round 1 sends from 1 s for 2 s, round 2 from 4 s, alone.
        (EqualSharing, 0.5, 3.0, 1.0, [(0.0, 2.0, 3.0), (0.0, 1.0, 5.0)]),
        # The queue is taken until 0.5 s: an upload due at 0.25 s waits for the end of the present message.
        (FirstCome, 0.0, 0.5, 0.25, [(0.25, 1.0, 1.5), (0.0, 1.0, 2.75)]),
    ],
)
def test_background_traffic_takes_its_share_or_its_turns_of_the_uplink(rule, from_s, until_s, work_s, expected):
    """A message of 1 bit at 1 bit/s, alone 1 s."""
    traffic = BackgroundTraffic(from_s=from_s, until_s=until_s).build(RunSetup(1, Streams(0)))
    links = Pipe([0.0], [1.0], up=rule)
    history, *_ = serve(WaitForAll(), [0.0], [work_s], [1.0], links=links, effects=[traffic], count=2, audit=True)
    assert rows(history.participations, "queue_s", "uplink_s", "end_s") == expected


def test_background_traffic_is_sent_by_the_first_client_of_its_site():
    class Sited(Pipe):
        serving, sent = np.array([0, 1, 1]), []

        def uplink(self, client, bits):
            self.sent.append((client, bits))
            return super().uplink(client, bits)

    traffic = BackgroundTraffic(from_s=0.5, until_s=3.0, site=1, senders=2, message_bits=2e4).build(None)
    links = Sited([0.0] * 3, [1.0] * 3, up=EqualSharing)
    serve(WaitForAll(), [0.0] * 3, [1.0] * 3, [1.0] * 3, links=links, effects=[traffic])
    assert links.sent == [(1, 2e4)] * 2 + [(client, 1.0) for client in range(3)]


def scenario(effects, **changes):
    tables = {"devices": {}, "rounds": {"count": 2, "effects": effects}, **changes}
    return timed(bits=1e6, samples=10, cohort=3, **tables)


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        ([{"kind": "duty-cycle", "share": 1.5}], r"rounds\.effects\.0\.share: 1\.5 is not allowed"),
        ([{"kind": "duty-circle"}], r"rounds\.effects\.0.*duty-cycle"),
        ([{"kind": "background-traffic", "from_s": 3.0, "until_s": 2.0}], r"until_s = 2\.0 is not allowed"),
    ],
)
def test_wrong_effects_are_refused_with_their_place(effects, message):
    with pytest.raises(ScenarioError, match=message):
        scenario(effects)


def test_background_traffic_needs_a_shared_uplink_and_a_site():
    traffic = {"kind": "background-traffic", "from_s": 0.0, "until_s": 2.0}
    with pytest.raises(ScenarioError, match="needs uplinks that clients share"):
        simulate(scenario([traffic]))
    cell = {"kind": "cell", "uplink": {"sharing": "equal"}}
    with pytest.raises(ScenarioError, match=r"at site 3 is not allowed: the network has 1 site\(s\)"):
        simulate(scenario([{**traffic, "site": 3}], network=cell))


class Ending(EffectSettings):
    may_end = True
    after_s: float = 0.5

    def build(self, run):
        return Ends(after_s=self.after_s)


class Ends(Effect):
    """Ends a phase of each participation at a limit."""

    def __init__(self, phase=1, **most):
        self.phases, self.most = frozenset({phase}), most

    def limit(self, plan, phase, members):
        return Limit(**self.most)


def test_an_effect_of_ones_own_ends_participations_where_it_says():
    history, *_ = serve(Deadline(deadline_s=9), [1, 1], [2, 0.25], [3, 3], effects=[Ends(after_s=0.5)])
    assert rows(history.participations, "end_s", "compute_s", "outcome", "cut_in") == [
        (1.5, 0.5, "dropped", "compute"),
        (4.25, 0.25, "delivered", None),
    ]


@pytest.mark.parametrize(
    ("up", "most", "expected"),
    [
        (None, {"bits": 0.25}, (1.0, 0.25)),
        (None, {"active_s": 0.75}, (0.75, 0.1875)),
        (EqualSharing, {"bits": 0.25}, (0.5, 0.25)),
        (EqualSharing, {"active_s": 0.75}, (0.75, 0.375)),
    ],
)
def test_an_effect_of_ones_own_ends_messages_after_bits_or_seconds(up, most, expected):
    """Two uploads of a bit in 4 s each, or that share 1 bit/s."""
    links = None if up is None else Pipe([2] * 2, [4] * 2, up=up)
    history, *_ = serve(Deadline(deadline_s=9), [2] * 2, [1] * 2, [4] * 2, links=links, effects=[Ends(2, **most)])
    assert rows(history.participations, "uplink_s", "uplink_bits", "cut_in") == [(*expected, "uplink")] * 2


def test_a_server_that_waits_for_all_refuses_an_effect_that_may_end_participations():
    with pytest.raises(ScenarioError, match=r"rounds\.effects"):
        scenario([Ending()])
    assert scenario([Ending()], rounds={"count": 1, "policy": {"kind": "deadline", "deadline_s": 9.0}, "effects": ()})


def looked_at(self, client):
    return PlainTracker(lambda ids, *_: np.ones(ids.size, dtype=bool), client, "look")


LIES = {
    "wait": ("wait_s", lambda *_: (-1.0, 0.0), r"returned -1\.0 for 8 member\(s\) in downlink; allowed: numbers >= 0"),
    "unequal": (
        *("wait_s", lambda *given: (np.arange(np.size(given[-1]), dtype=float), 0.0)),
        r"wait_s says 0\.0 of a member alone and 1\.0 of it among others",
    ),
    "limit": ("limit", lambda *_: np.nan, "limit returned float, not a Limit or None"),
    "ends": (
        *("passed", lambda *given: np.ones(np.shape(given[-1]), dtype=bool)),
        "limit or passed has ended a participation, and may_end is False",
    ),
    "plan": (
        *("plan", lambda _, plan: setattr(plan, "client", plan.client[::-1].copy())),
        "plan changed the clients of a cohort",
    ),
    "free": (
        *("free_s", lambda *_: np.zeros(1)),
        r"free_s returned array\(\[0\.\]\); allowed: an instant for each of 8 clients, or None",
    ),
    "shows": (
        *("shows", lambda _: {"mood": lambda *_: np.zeros(2)}),
        r"shows: mood has the shape \(2,\); allowed: \(8,\)",
    ),
    "joules": (
        *("participation_j", lambda *given: given[2]),
        r"participation_j returned (.|\n)*; allowed: joules >= 0 for each of 8 clients",
    ),
    "never": ("never", lambda *_: "closed", "never returned 'closed'; allowed: a Never, or None"),
    "tracker": ("tracker", looked_at, "tracker says .* where free_s says"),
}


class Lying(EffectSettings):
    lie: str

    def build(self, run):
        name, member, _ = LIES[self.lie]
        rests = {"free_s": lambda *given: given[1] + 1e9} if name == "tracker" else {}
        return type("Liar", (Effect,), {name: member, **rests})()


@pytest.mark.parametrize("lie", LIES)
def test_check_effect_names_the_fault(lie):
    with pytest.raises(ContractError, match=LIES[lie][2]):
        check_effect(Lying(lie=lie))


@pytest.mark.parametrize("settings", [DutyCycle(share=0.1), Ending()], ids=["duty-cycle", "ending"])
def test_check_effect_accepts_right_ones(settings):
    check_effect(settings)


def test_an_effect_of_a_file_of_ones_own_holds(tmp_path, monkeypatch):
    """Each phase takes 1 s longer, so that a participation takes 3 s more; an error in it is its own."""
    (tmp_path / "slow_parts.py").write_text(
        "from fedsim.rounds import Effect, EffectSettings\n"
        "class Slow(EffectSettings):\n"
        "    by_s: float = 1.0\n"
        "    def build(self, run):\n"
        "        return Slowed(self.by_s)\n"
        "class Slowed(Effect):\n"
        "    def __init__(self, by_s):\n"
        "        self.by_s = by_s\n"
        "    def wait_s(self, plan, phase, members):\n"
        "        if self.by_s > 5.0:\n"
        "            raise ValueError('too slow')\n"
        "        return self.by_s, 0.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plain, slow = (
        simulate(scenario(effects)).column("participations", "end_s")[:3] for effects in ([], ["slow_parts:Slow"])
    )
    np.testing.assert_allclose(slow - plain, 3.0)
    with pytest.raises(PartError, match=r"effect slow_parts:Slowed\.wait_s failed with ValueError: too slow"):
        simulate(scenario([{"kind": "slow_parts:Slow", "by_s": 6.0}]))


class Compressing(Effect):
    """Halves the update, in twice the seconds of work."""

    may_end = False

    def plan(self, plan):
        plan.bits[1], plan.compute_s = 0.5 * plan.bits[1], 2.0 * plan.compute_s


def test_what_an_effect_has_made_of_a_cohort_is_sent_worked_and_paid_for():
    """Half a bit at 4 J a bit and 4 s at 1.25 W are 7 J, with 3 J for the downlink 10 J."""
    power = batteries([50.0], receive=3.0, work_w=1.25, send=4.0)
    history, *_ = serve(Deadline(deadline_s=50), [1.0], [2.0], [3.0], batteries=power, effects=[Compressing()])
    assert rows(history.participations, "compute_s", "downlink_bits", "uplink_bits", "energy_j") == [
        (4.0, 1.0, 0.5, 10.0)
    ]


class Rest(EffectSettings):
    """A client is not selected for 7 s after each participation; it declares until when."""

    def build(self, run):
        return Rests(np.zeros(run.clients))


class Rests(Effect):
    phases = frozenset()
    may_end = False

    def __init__(self, until_s):
        self.until_s = until_s

    def free_s(self, client, time_s):
        return self.until_s[client]

    def shows(self):
        return {"rests_until_s": lambda client, _: self.until_s[client]}

    def settle(self, plan, members):
        self.until_s[plan.client[members]] = plan.end_s[members] + 7.0


class Reading:
    """Selects everybody, and reads what clients declare."""

    read: ClassVar[list] = []

    def select(self, view, rng):
        self.read.append(view.at_request["rests_until_s"]().tolist())
        return Cohort(view.client)

    def observe(self, reports):
        pass


class Restful(Component, Dropout):
    """A part of another kind that brings an effect."""

    possible: ClassVar[bool] = False

    def time_to_dropout_s(self, client, draw, streams, phases_s=None):
        return np.full(client.size, np.inf)

    def effects(self, run):
        return [Rests(np.zeros(run.clients))]


@pytest.mark.parametrize("part", [{"effects": [Rest()]}, {"dropout": Restful()}])
def test_a_client_that_is_not_free_is_not_selected_and_declares_until_when(part):
    check_effect(Rest())
    Reading.read.clear()
    tables = {"crowd": {"clients": 1}, "selector": Reading()}
    tables |= {"devices": {"dropout": part["dropout"]}} if "dropout" in part else {}
    history = simulate(scenario(part.get("effects", []), **tables))
    (_, first_s), (second_s, _) = rows(history.rounds, "start_s", "end_s")
    assert second_s == first_s + 7.0
    assert Reading.read == [[0.0], [second_s]]


@pytest.mark.parametrize("returned", [None, [3]])
def test_effects_of_a_part_are_a_list_of_effects(returned):
    wrong = type("Wrong", (Restful,), {"effects": lambda *_: returned, "__module__": __name__})
    with pytest.raises(PartError, match=r"effects returned"):
        simulate(scenario([], devices={"dropout": wrong()}))


class Closed(Effect):
    def free_s(self, client, time_s):
        return np.full(client.size, np.inf)

    def never(self, time_s):
        return Never("rounds.effects", "the shop is closed", "opening hours")

    def of_round(self, tables, number):
        return {"largest_leakage": 10.0 * number}


class Shop(EffectSettings):
    def build(self, run):
        return Closed()


def test_an_effect_says_why_no_client_is_free_and_states_columns_of_rounds():
    with pytest.raises(ScenarioError, match=r"^rounds\.effects: no round can start; the shop is closed; allowed: op"):
        simulate(scenario([Shop()]))
    history, *_ = serve(WaitForAll(), [1.0], [1.0], [1.0], effects=[Closed()], count=2)
    assert history.column("rounds", "largest_leakage").tolist() == [10.0, 20.0]


class Counting(Effect):
    """Says how often each client has taken part before."""

    adds: ClassVar = {"counting.before": "participations before this one"}

    def __init__(self):
        self.times = {}

    def settle(self, plan, members):
        plan.notes[self] = plan.notes.get(self, np.zeros(plan.client.size))
        for i in members.tolist():
            client = int(plan.client[i])
            plan.notes[self][i] = self.times.get(client, 0)
            self.times[client] = self.times.get(client, 0) + 1

    def columns(self, plan, members):
        return {"counting.before": plan.notes[self][members]}


class Counted(EffectSettings):
    def build(self, run):
        return Counting()


class Undeclared(Counting):
    adds: ClassVar = {}


class Dotless(Counting):
    adds: ClassVar = {"before": "no dot"}


def test_an_effect_adds_a_column_which_a_run_folder_keeps(tmp_path):
    given = scenario([Counted()])
    history = run(given, tmp_path / "counted")
    seen = history.participations.group_by("client", use_threads=False).aggregate([("counting.before", "list")])
    assert all(one == list(range(len(one))) for one in seen["counting.before_list"].to_pylist())
    assert read_run(tmp_path / "counted").participations.equals(history.participations)
    assert "counting.before" not in simulate(scenario([])).participations.column_names


@pytest.mark.parametrize(
    ("effect", "said"), [(Undeclared, "has no column counting.before"), (Dotless, "adds 'before'")]
)
def test_a_column_that_is_not_declared_with_a_dot_is_refused(effect, said):
    class Settings(EffectSettings):
        def build(self, run):
            return effect()

    with pytest.raises(FedsimError, match=said):
        simulate(scenario([Settings()]))
