"""What becomes of late clients: everything that happens, worked by hand."""

import math

import numpy as np
import pytest

from fedsim.errors import ScenarioError
from fedsim.network.medium.disciplines import EqualSharing, FirstCome
from fedsim.privacy import GeometricBudget
from fedsim.rounds import Cancel, Deadline, Edges
from fedsim.rounds.aggregation.staleness import Constant, Deviation, Exponential, Hinge, Polynomial
from fedsim.rounds.policies.late import Drop, Partial, Stale
from fedsim.selectors import Cohort
from tests.support.stories import ends, rows, timeline, told
from tests.support.worlds import CountingLearner, Curious, FixedLinks, Pipe, Sequence, available_in, batteries, serve

# Three clients that take 3, 5 and 12 s: downlink, work, uplink.
THREE = ([1, 1, 2], [1, 2, 5], [1, 2, 5])


STORY = """
     0 round 1 begins; client 0 starts from 0; client 1 starts from 0; client 2 starts from 0
     3 client 0 arrives: used
     4 round 1 ends with model 1; round 2 begins; client 0 starts from 1
     5 client 1 arrives: LATE
     7 client 0 arrives: used; round 2 ends with model 2; round 3 begins; client 0 starts from 2;
       client 1 starts from 2
    10 client 0 arrives: used
    11 round 3 ends with model 3; round 4 begins; client 0 starts from 3
    12 client 1 arrives: LATE; client 2 arrives: LATE
    14 client 0 arrives: used; round 4 ends with model 4
"""


def test_dropped_updates_arrive_for_nothing_and_their_clients_are_busy_until_then():
    budget = GeometricBudget(epsilon=10.0, eta=0.04)
    history, selector, learner, _ = serve(Deadline(deadline_s=4), *THREE, late=Drop(), count=4, budget=budget)
    assert timeline(history) == told(STORY.replace("LATE", "wasted-late"))
    assert learner.aggregated == [([0], [1.0])] * 4
    assert [client for _, client, _, _ in learner.asked] == [0] * 4, "what is thrown away is never trained"
    assert np.all(history.column("participations", "epsilon") > 0), "but it leaks, and it costs bits"
    assert np.all(history.column("participations", "uplink_bits") == 1)
    assert [view.client.tolist() for view in selector.views] == [[0, 1, 2], [0], [0, 1], [0]]
    assert [report.client.tolist() for report in selector.reports] == [[0, 1, 2], [0], [0, 1], [0]]
    assert selector.views[2].last_duration_s[:2].tolist() == [3, 5], "the server has seen it arrive"


def test_stale_updates_are_merged_in_the_round_in_which_they_arrive():
    """With 1 / (staleness + 1): 1/2 beside 1, and then 1/4 and 1/2 beside 1."""
    history, _, learner, _ = serve(Deadline(deadline_s=4), *THREE, late=Stale(weight=Polynomial(a=1.0)), count=4)
    assert timeline(history) == told(STORY.replace("LATE", "stale-used"))
    assert learner.aggregated == [
        ([0], [1.0]),
        ([1, 0], pytest.approx([1 / 3, 2 / 3])),
        ([0], [1.0]),
        ([2, 1, 0], pytest.approx([1 / 7, 2 / 7, 4 / 7])),
    ]
    stale = [row for row in history.participations.to_pylist() if row["fate"] == "stale-used"]
    by_client = [(row["client"], row["round"], row["served_round"], row["staleness"], row["outcome"]) for row in stale]
    assert by_client == [(1, 1, 2, 1, "late"), (2, 1, 4, 3, "late"), (1, 3, 4, 1, "late")]
    assert history.column("rounds", "stale_used").tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (Constant(), [1, 1, 1, 1]),
        (Polynomial(), [1, 1 / math.sqrt(2), 1 / math.sqrt(5), 1 / math.sqrt(10)]),
        (Polynomial(a=1.0), [1, 1 / 2, 1 / 5, 1 / 10]),
        (Hinge(), [1, 1, 1, 1 / 51]),
        (Hinge(a=2.0, b=0.0), [1, 1 / 3, 1 / 9, 1 / 19]),
        (Exponential(a=0.5), [1, math.exp(-0.5), math.exp(-2), math.exp(-4.5)]),
        # 0.65 / (staleness + 1) + 0.35 (1 - exp(-L / 4)) with L of 1, 4 and 2; fresh updates weigh 1.
        (
            Deviation(),
            [
                1,
                0.325 + 0.35 * (1 - math.exp(-0.25)),
                0.13 + 0.35 * (1 - math.exp(-1)),
                0.065 + 0.35 * (1 - math.exp(-0.5)),
            ],
        ),
        (Deviation(beta=0.0), [1, 1 / 2, 1 / 5, 1 / 10]),
        (Deviation(beta=1.0, scale=10.0), [1, *(1 - math.exp(-x) / 10 for x in (0.25, 1.0, 0.5))]),
    ],
    ids=repr,
)
def test_staleness_laws(law, expected):
    staleness, deviation = np.array([0.0, 1.0, 4.0, 9.0]), np.array([0.0, 1.0, 4.0, 2.0])
    np.testing.assert_allclose(law.factor(staleness, deviation), expected, rtol=1e-14)


def test_deviation_without_any_is_age_alone():
    np.testing.assert_allclose(Deviation().factor(np.array([1.0, 3.0]), np.zeros(2)), [0.65 / 2, 0.65 / 4])


def test_stale_updates_are_compared_with_the_fresh_ones_of_their_round():
    """Client 1 is one version behind in round 2; clients 2 and 1 are three and one behind in round 4."""

    class Apart(CountingLearner):
        def deviations(self, fresh, fresh_weights, stale):
            assert (fresh, fresh_weights) == ([0], None)
            return np.array([4.0, 2.0])[: len(stale)]

    learner = Apart(np.full(3, 10))
    serve(Deadline(deadline_s=4), *THREE, late=Stale(weight=Deviation()), count=4, learner=learner)
    second = [0.325 + 0.35 * (1 - math.exp(-1)), 1]
    fourth = [0.65 / 4 + 0.35 * (1 - math.exp(-1)), 0.325 + 0.35 * (1 - math.exp(-0.5)), 1]
    for round_, factors in ((1, second), (3, fourth)):
        assert learner.aggregated[round_][1] == pytest.approx(np.array(factors) / np.sum(factors))


def test_deviations_are_asked_for_only_where_they_matter():
    class Deaf(CountingLearner):
        def deviations(self, *_):
            raise AssertionError

    serve(Deadline(deadline_s=4), *THREE, late=Stale(), count=4, learner=Deaf(np.full(3, 10)))
    serve(Deadline(deadline_s=12), *THREE, late=Stale(weight=Deviation()), learner=Deaf(np.full(3, 10)))


def test_stale_updates_count_by_samples_too():
    learner = CountingLearner(np.array([30, 20, 10]))
    serve(Deadline(deadline_s=4), *THREE, late=Stale(weight=Polynomial(a=1.0)), count=2, learner=learner)
    assert learner.aggregated[1] == ([1, 0], pytest.approx([10 / 40, 30 / 40]))


def test_updates_that_are_too_stale_are_thrown_away_and_count_for_nothing():
    """Of clients 2, 1 and 0 in round 4 the first is three versions behind."""
    history, _, learner, _ = serve(Deadline(deadline_s=4), *THREE, late=Stale(max_staleness=2), count=4)
    assert learner.aggregated[3][0] == [1, 0]
    assert ("wasted-late", 2, None) in rows(history.participations, "fate", "client", "staleness")
    few, *_ = serve(Deadline(deadline_s=4), *THREE, late=Stale(max_staleness=0), count=4, minimum_updates=2)
    assert few.column("rounds", "model_version").tolist() == [0, 1, 1, 2]


def test_minimum_updates_counts_stale_ones_but_not_dropped_ones():
    """Round 1 gets one of the two that are needed. From then on client 1's version is as old as the model."""
    stale, *_ = serve(Deadline(deadline_s=4), *THREE, late=Stale(), count=2, minimum_updates=2)
    assert stale.column("rounds", "model_version").tolist() == [0, 1]
    assert rows(stale.participations, "client", "fate", "staleness")[1:] == [
        (1, "stale-used", 0),
        (0, "used", 0),
        (2, "wasted-late", None),
    ]
    dropped, _, learner, _ = serve(Deadline(deadline_s=4), *THREE, late=Drop(), count=2, minimum_updates=2)
    assert dropped.column("rounds", "model_version").tolist() == [0, 0]
    assert learner.aggregated == []


def test_a_round_waits_for_somebody_to_be_free():
    """The only client takes 3 s and is late after 2: the second round has nobody to ask before 3 s, and gets its
    first update, which is not stale since the model has not moved.
    """
    history, selector, learner, _ = serve(Deadline(deadline_s=2), [1], [1], [1], late=Stale(), count=3)
    assert timeline(history) == told("""
        0 round 1 begins; client 0 starts from 0
        2 round 1 ends with model 0; round 2 begins
        3 client 0 arrives: stale-used; client 0 starts from 0
        5 round 2 ends with model 1; round 3 begins
        6 client 0 arrives: stale-used; client 0 starts from 1
        8 client 0 is cut off: wasted-late; round 3 ends with model 2
    """)
    assert learner.aggregated == [([0], [1.0])] * 2
    assert [view.time_s for view in selector.views] == [0, 3, 6]
    assert rows(history.participations, "staleness") == [(0,), (1,), (None,)]


def test_a_round_waits_for_somebody_to_come_who_is_free():
    """Client 0 is late and at work until 30 s; client 1 comes at 5 s."""
    there = available_in([(0, 100)], [(5, 100)])
    history, selector, *_ = serve(
        Deadline(deadline_s=2), [10, 0], [10, 1], [10, 0], late=Drop(), presence=there, count=2
    )  # fmt: skip
    assert ends(history) == [2, 6]
    assert [(view.time_s, view.client.tolist()) for view in selector.views] == [(0, [0]), (5, [1])]


@pytest.mark.parametrize("late", [Drop(), Stale()])
@pytest.mark.parametrize("edge", [None, (0, 0), (0, 1)])
def test_a_run_that_would_wait_for_dead_links_for_ever_is_refused(late, edge):
    """After 2 s everybody is late, and at work for ever."""
    edges = None if edge is None else Edges(grouping={"kind": "given", "edge": edge}, backhaul="none", rounds=2)
    with pytest.raises(ScenarioError, match=r"none ever will be: .* allowed: rounds\.late that cancels"):
        serve(Deadline(deadline_s=2), [1, 1], [1, 1], [np.inf, np.inf], late=late, edges=edges, count=3)
    serve(Deadline(deadline_s=2), [1, 1], [1, 1], [np.inf, np.inf], late=Cancel(), edges=edges, count=3)


def test_who_is_lost_after_the_end_of_its_round_is_free_again():
    """Client 1 is late at 4 s and leaves at 4.5 s."""
    history, selector, *_ = serve(Deadline(deadline_s=4), *THREE, late=Stale(), count=3, leaves_s=[np.inf, 4.5, np.inf])
    assert timeline(history)[5:14] == told("""
          4 round 1 ends with model 1; round 2 begins; client 0 starts from 1
        4.5 client 1 is lost: wasted-dropped
          7 client 0 arrives: used; round 2 ends with model 2; round 3 begins; client 0 starts from 2;
            client 1 starts from 2
    """)
    assert [view.client.tolist() for view in selector.views] == [[0, 1, 2], [0], [0, 1]]


def test_late_clients_that_finish_hog_the_uplink():
    """Uploads of clients 0 and 1 begin at 1 s and share the pipe; at 2.5 s 3/4 of each is sent. Client 2's begins at
    2.75 s: alone it takes 1 s; behind the others, who have 1/8 left each, 0.375 s at a third and 0.875 s alone.
    """
    times = [0] * 3, [1, 1, 0.25], [0] * 3
    after = {}
    for late in (Cancel(), Drop(), Stale()):
        links = Pipe([0] * 3, [0] * 3, up=EqualSharing)
        selector = Sequence([np.array([0, 1]), np.array([2])])
        history, *_ = serve(Deadline(deadline_s=2.5), *times, links=links, selector=selector, late=late, count=2)
        after[type(late).__name__] = rows(history.participations, "client", "end_s")
    assert after["Cancel"] == [(0, 2.5), (1, 2.5), (2, 3.75)]
    assert after["Drop"] == after["Stale"] == [(0, 3.125), (1, 3.125), (2, 4.0)]


class Stepping(CountingLearner):
    """A learner whose clients do four steps each."""

    def whole_steps(self, client, work, *, up):
        return (np.ceil if up else np.floor)(np.maximum(work * 4, 1)) / 4


PRESCRIBED = Cohort(np.arange(3), work=np.array([0.1, 0.4, 1.0]))
MORE = Cohort(np.arange(2), work=np.array([2.0, 1.5]))
PARTIAL = {
    # Of 8 s: client 0 has 8 - 1 - 2 = 5 s for 10 s of work, exactly half; client 1 can do all of its 4 s; client 2
    # has 1 s for 10 s, does a quarter at least, and is late.
    "what fits": (
        *(8, ([1, 1, 5], [10, 4, 10], [2, 2, 2]), {"late": Partial(least_work=0.25)}),
        *[(0.5, 5.0, 8.0, "used"), (1.0, 4.0, 7.0, "used"), (0.25, 2.5, 8.0, "wasted-late")],
    ),
    # 9 s of work in four steps: 5 s leave time for two of 2.25 s, and 1 s for none.
    "whole steps": (8, ([1], [9], [2]), {"learner": Stepping(np.array([10]))}, (0.5, 4.5, 7.5, "used")),
    "one step": (4, ([1], [9], [2]), {"learner": Stepping(np.array([10]))}, (0.25, 2.25, 4.0, "wasted-late")),
    # Of 10 s a tenth, rounded up to a step of four, or 0.4, or all is prescribed; 5 s are left.
    "prescribed": (
        *(8, ([1] * 3, [10] * 3, [2] * 3), {"selector": Sequence([PRESCRIBED])}),
        *[(0.1, 1.0, 4.0, "used"), (0.4, 4.0, 7.0, "used"), (0.5, 5.0, 8.0, "used")],
    ),
    "prescribed in steps": (
        *(8, ([1] * 3, [10] * 3, [2] * 3)),
        {"selector": Sequence([PRESCRIBED]), "learner": Stepping(np.full(3, 10))},
        *[(0.25, 2.5, 5.5, "used"), (0.5, 5.0, 8.0, "used"), (0.5, 5.0, 8.0, "used")],
    ),
    # 10 s of work twice and half as often again; 5 s are left, half of the usual work.
    "more than usual": (
        *(99, ([1] * 2, [10] * 2, [2] * 2), {"selector": Sequence([MORE])}),
        *[(2.0, 20.0, 23.0, "used"), (1.5, 15.0, 18.0, "used")],
    ),
    "more than fits": (
        *(8, ([1] * 2, [10] * 2, [2] * 2), {"selector": Sequence([MORE])}),
        *[(0.5, 5.0, 8.0, "used")] * 2,
    ),
    # Nothing is left for 10 s of work, of which half is prescribed, and of that half at least.
    "a share of what was prescribed": (
        *(3, ([1], [10], [2])),
        {"selector": Sequence([Cohort(np.arange(1), work=np.array([0.5]))]), "late": Partial(least_work=0.5)},
        (0.25, 2.0, 3.0, "wasted-late"),
    ),
    # Two downlinks share the pipe for 2 s. Then 4 s are left for 10 s of work, and client 1 has enough with 3 s.
    "a shared downlink": (
        *(8, ([0] * 2, [10, 3], [2] * 2), {"links": Pipe([0] * 2, [2, 2], down=EqualSharing)}),
        *[(0.4, 4.0, 8.0, "used"), (1.0, 3.0, 7.0, "used")],
    ),
    # Of 1.25 s the upload takes 1 s, which leaves half of the work of 0.5 s.
    "less than a second": (1.25, ([0], [0.5], [1]), {}, (0.5, 0.25, 1.25, "used")),
    "nothing to do": (3, ([2], [0], [1]), {}, (1.0, 0.0, 3.0, "used")),
    "nothing to do, and late": (2, ([2], [0], [1]), {}, (1.0, 0.0, 2.0, "wasted-late")),
}


@pytest.mark.parametrize("case", PARTIAL)
def test_partial_work_worked_by_hand(case):
    """It weighs as much as other work, and a second of it costs 1 J."""
    deadline_s, times_s, options, *expected = PARTIAL[case]
    power = batteries([99.0] * len(times_s[0]), work_w=1.0)
    history, _, learner, _ = serve(
        Deadline(deadline_s=deadline_s), *times_s, **{"late": Partial(), "batteries": power, **options}
    )
    assert rows(history.participations, "work", "compute_s", "end_s", "fate") == expected
    assert history.column("participations", "energy_j").tolist() == pytest.approx([row[1] for row in expected])
    used = [row for row in expected if row[3] == "used"]
    assert [work for *_, work in learner.asked] == [row[0] for row in used]
    alike = [[1 / len(used)] * len(used)] if used else []
    assert [weights for _, weights in learner.aggregated] == [pytest.approx(weights) for weights in alike]


def test_partial_work_knows_the_mean_of_its_upload_and_not_its_length():
    """Both believe in 2 s; behind client 0, client 1 waits for the pipe and is late."""
    links = Pipe([1, 1], [2, 2], up=FirstCome)
    history, *_ = serve(Deadline(deadline_s=8), [1] * 2, [10] * 2, [2] * 2, late=Partial(), links=links)
    assert rows(history.participations, "work", "end_s", "fate") == [(0.5, 7.0, "used"), (0.5, 8.0, "used")]

    class Optimistic(FixedLinks):
        def expected_uplink_s(self, bits):
            return np.array([2.0])

    slow = Optimistic([1], [3])
    history, *_ = serve(Deadline(deadline_s=8), [0], [10], [0], late=Partial(), links=slow)
    assert rows(history.participations, "work", "end_s", "fate") == [(0.5, 8.0, "wasted-late")]


def test_partial_work_without_a_limit_in_sight_is_all_of_it():
    class Endless(Deadline):
        def time_limit_s(self, past):
            return np.inf

        def enough(self, round_):
            return round_.everyone | round_.limit(self.deadline_s)

    history, *_ = serve(Endless(deadline_s=8), [1], [10], [2], late=Partial())
    assert rows(history.participations, "work", "fate") == [(1.0, "wasted-late")]


def test_what_a_stale_update_says_is_remembered_and_not_reported():
    """Client 1's update of round 1 arrives in round 2, is measured there, and stands in round 3's view."""
    _, selector, *_ = serve(Deadline(deadline_s=4), *THREE, late=Stale(), count=3, selector=Curious())
    np.testing.assert_array_equal(selector.reports[0].loss, [0.0, np.nan, np.nan])
    assert selector.reports[1].client.tolist() == [0]
    assert selector.views[2].last_loss.tolist() == [0.0, 1.0]
    assert selector.views[2].last_duration_s.tolist() == [3.0, 5.0]
