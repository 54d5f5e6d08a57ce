"""Messages of an effect of the user's own before the selection, the dispatch and the aggregation, by hand."""

import numpy as np

from fedsim.rounds import Deadline, Effect
from fedsim.selectors import Answers
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
