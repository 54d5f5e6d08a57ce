"""Messages of an effect of the user's own before the selection, the dispatch and the aggregation, by hand."""

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import PartError
from fedsim.rounds import Deadline, Effect, EffectSettings
from fedsim.selectors import Answers, Cohort
from tests.support.short_runs import timed
from tests.support.worlds import Everybody, serve

DRAW = 2**60
# A message down and one up take 2 s, 3 s and 6 s; the work beside them 1 s.
WORLD = [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 2.0, 5.0]


class Roll(Effect):
    """Sends the model to those that respond to a message within 4 s."""

    phases, may_end = frozenset(), False

    def before_dispatch(self, server, cohort):
        plan = server.message(cohort.client, DRAW + server.number, (1.0, 1.0))
        left = yield from server.ask(plan, wait_s=4.0)
        return cohort.part(left)


def test_who_does_not_respond_is_not_sent_the_model():
    history, *_ = serve(Deadline(deadline_s=20.0), *WORLD, effects=[Roll()], count=2)
    assert history.column("participations", "client").tolist() == [0, 1, 0, 1]
    assert history.column("participations", "start_s").tolist() == [4.0, 4.0, 12.0, 12.0]
    assert history.column("rounds", "end_s").tolist() == [8.0, 16.0]


class Veto(Effect):
    """Asks those that have delivered whether their updates count: those that respond within 2.5 s say yes."""

    phases, may_end = frozenset(), False

    def before_aggregation(self, server, plan, members):
        answered = yield from server.ask(server.message(plan.client[members], DRAW, (1.0, 1.0)), wait_s=2.5)
        return members[answered]


def test_an_update_that_does_not_count_is_not_aggregated():
    history, *_ = serve(Deadline(deadline_s=5.0), *WORLD, effects=[Veto()])
    assert history.column("participations", "fate").tolist() == ["used", "wasted-unmerged", "wasted-late"]
    assert history.column("rounds", "end_s").tolist() == [7.5]


class Losses(Effect):
    """Shows the selector a loss of 0.5 of each client that responds, whenever that is."""

    phases, may_end = frozenset(), False

    def before_selection(self, server, view):
        answered = yield from server.ask(server.message(view.client, DRAW, (1.0, 1.0)))
        half, unknown = np.full(answered.size, 0.5), np.full(answered.size, np.nan)
        return Answers(client=view.client[answered], loss=half, compute_s=unknown, uplink_s=unknown)


def test_a_selector_sees_what_an_effect_has_asked():
    _, selector, *_ = serve(Deadline(deadline_s=5.0), *WORLD, effects=[Losses()], selector=Everybody())
    (view,) = selector.views
    assert (view.time_s, view.answers.loss.tolist()) == (6.0, [0.5] * 3)


def steps(yielded, value):
    """Return a member that yields what is given, if anything, and returns a value."""

    def member(self, server, *_):
        yield server.env.timeout(0.1) if yielded is None else yielded
        return value

    return member


@pytest.mark.parametrize(
    ("name", "member", "complaint"),
    [
        ("before_selection", steps(None, 0.5), r"member returned 0\.5\n  allowed: .*Answers, or None"),
        ("before_dispatch", steps(3, None), "member yielded 3\n  allowed: an event of the clock"),
        ("before_dispatch", steps(None, Cohort(np.array([9]))), "allowed: clients of the cohort that was given"),
        ("before_dispatch", lambda *given: given[-1], "Own.before_dispatch returned .*allowed: .*generator"),
        ("before_aggregation", steps(None, [7]), r"member returned \[7\]\n  allowed: an array of positions"),
    ],
)
def test_steps_that_no_server_can_take_are_refused(name, member, complaint):
    own = type("Own", (Effect,), {name: member, "phases": frozenset(), "may_end": False, "__module__": __name__})

    class Settings(EffectSettings):
        def build(self, run):
            return own()

    scenario = timed(clients=3, rounds={"count": 1, "policy": "wait-for-all", "effects": [Settings()]})
    with pytest.raises(PartError, match=f"(?s){complaint}"):
        simulate(scenario)
