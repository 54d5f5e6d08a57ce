"""SAFA: its picks, its cache and its deprecated clients, worked by hand."""

from dataclasses import dataclass

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.rounds.aggregation.staleness import Constant
from fedsim.rounds.policies.count_based import Quorum
from fedsim.rounds.policies.late import Stale
from fedsim.rounds.policies.safa import Safa
from tests.support.stories import ends, timeline, told
from tests.support.worlds import Asking, CountingLearner, Everybody, available_in, serve

# Three clients that take 3, 5 and 8 s.
THREE = ([1, 1, 2], [1, 2, 3], [1, 2, 3])


@dataclass
class Number:
    """A model that is one number."""

    version: int
    value: float
    digest: str = ""


class Halving(CountingLearner):
    """Client k trains a model w to w / 2 + 2 ** k."""

    def initial(self):
        return Number(0, 0.0)

    def updates(self, model, client, releases=None, work=None, repeat=0, level=None):
        super().updates(model, client, releases, work, repeat)
        return [2.0**k - model.value / 2 for k in client.tolist()]

    def trained(self, base, update):
        return Number(base.version + 1, base.value + update)

    def merge(self, models, weights, version=None):
        assert np.all(weights >= 0)
        assert sum(weights) == pytest.approx(1)
        merged = Number(version, float(np.dot([model.value for model in models], weights)))
        self.aggregated.append(merged.value)
        return merged


def run(policy, times=THREE, samples=None, **options):
    learner = Halving(np.full(len(times[0]), 10) if samples is None else np.array(samples))
    history, selector, *_ = serve(policy, *times, learner=learner, **options)
    return history, selector, learner


def fates(history):
    return [(row["round"], row["client"], row["fate"], row["staleness"]) for row in history.participations.to_pylist()]


def test_a_selector_that_asks_is_answered_while_others_are_at_work_too():
    """Client 2 is at work from 2 s to 32 s. Clients 0 and 1 answer within 2 s and take 3 s and 4 s.

    Client 0 arrives at 5 s and ends round 1; it is asked in round 2. Client 1 arrives at 6 s, so that both are sent at
    7 s, and the round is over. In round 3 nobody is left to be asked.
    """

    history, selector, _ = run(
        Safa(share=1 / 3, max_wait_s=20.0),
        ([1, 1, 1], [1, 2, 28], [1, 1, 1]),
        selector=Asking(asks="resources", wait_s=2.0),
        count=3,
    )
    asked = [(row["round"], row["client"], row["start_s"]) for row in history.probes.to_pylist()]
    assert asked == [(1, 0, 0), (1, 1, 0), (1, 2, 0), (2, 0, 5)]
    seen = [(view.time_s, view.client.tolist(), view.answers.client.tolist()) for view in selector.views]
    assert seen == [(2, [0, 1, 2], [0, 1, 2]), (7, [0, 1], [0])]
    assert ends(history) == [5, 7, 10]


def test_a_limit_counts_from_the_end_of_a_question_though_nobody_was_sent_after_it():
    """Client 0 is there to 4 s: asked from 3 s on, it is gone. Client 1 arrives at 12 s, 7 s after that."""

    there = available_in([(0, 4)], [(0, 1000)])
    history, _, _ = run(
        Safa(share=0.5, max_wait_s=8.5),
        ([1, 4], [1, 4], [1, 4]),
        selector=Asking(asks="resources", rounds=(2,)),
        presence=there,
        count=2,
    )
    assert ends(history) == [3, 12]
    assert history.column("rounds", "ended_by").tolist() == ["enough", "enough"]
    assert history.critical_path().column("client").to_pylist() == [0, 1]


def test_quota_compensation_and_fill():
    """Two of three are picked. In round 2 the late client 2 comes first, since it was not picked before; client 0
    fills the quota, when nobody is at work any more. Client 1 is in vain, and a newer update takes its place.
    """
    history, _, learner = run(Safa(share=2 / 3, max_wait_s=10.0), count=4)
    assert timeline(history) == told("""
         0 round 1 begins; client 0 starts from 0; client 1 starts from 0; client 2 starts from 0
         3 client 0 arrives: used
         5 client 1 arrives: used; round 1 ends with model 1; round 2 begins; client 0 starts from 1;
           client 1 starts from 1
         8 client 0 arrives: used; client 2 arrives: stale-used
        10 client 1 arrives: wasted-unmerged; round 2 ends with model 2; round 3 begins;
           client 0 starts from 2; client 1 starts from 2; client 2 starts from 2
        13 client 0 arrives: used
        15 client 1 arrives: used
        18 client 2 arrives: wasted-unmerged; round 3 ends with model 3; round 4 begins;
           client 0 starts from 3; client 1 starts from 3; client 2 starts from 3
        21 client 0 arrives: used
        23 client 1 arrives: wasted-unmerged
        26 client 2 arrives: used; round 4 ends with model 4
    """)
    third = (2.25 + 3.25 + 4) / 3
    assert learner.aggregated == pytest.approx(
        [(1 + 2 + 0) / 3, (1.5 + 2 + 4) / 3, third, (third / 2 + 1 + 3.25 + third / 2 + 4) / 3]
    )


def test_undrafted_updates_bypass_a_round():
    """All four arrive at 3 s; client 0 is picked and the others wait in vain. In round 2 client 1 is picked, whose
    first update is not used; those of clients 2 and 3 are: (1 + (1/8 + 2) + 4 + 8) / 4.
    """
    history, _, learner = run(Safa(share=0.25, max_wait_s=10.0), ([1] * 4, [1] * 4, [1] * 4), count=2)
    assert learner.aggregated == [0.25, 15.125 / 4]
    assert sorted(fates(history)) == [
        (1, 0, "used", 0),
        (1, 1, "wasted-unmerged", None),
        (1, 2, "stale-used", 1),
        (1, 3, "stale-used", 1),
        (2, 0, "wasted-unmerged", None),
        (2, 1, "used", 0),
        (2, 2, "wasted-unmerged", None),
        (2, 3, "wasted-unmerged", None),
    ]
    weights = history.column("participations", "weight")
    assert sorted(weights) == [0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25]


def test_picks_at_one_instant_do_not_depend_on_the_last_digits_of_the_clock():
    """Both take 0.6 s in two ways, and one of them is picked: the one that was sent first."""
    history, _, learner = run(Safa(share=0.5, max_wait_s=10.0), ([0.1, 0.3], [0.2, 0.2], [0.3, 0.1]))
    assert learner.aggregated == [0.5]
    assert fates(history)[0] == (1, 0, "used", 0)


def test_bypassed_updates_make_a_model_though_nobody_arrives():
    """In round 2 everybody leaves; the updates kept back change the model all the same."""
    there = available_in([(0, 3.5)], [(0, 3.5)])
    history, _, learner = run(
        Safa(share=0.5, max_wait_s=2.0), ([1] * 2, [1] * 2, [1] * 2), presence=there, count=3, until_s=10.0
    )
    assert ends(history) == [2, 3, 5]
    assert history.column("rounds", "model_version").tolist() == [0, 1, 2]
    assert learner.aggregated == [0.5, 1.5]


def test_deprecated_clients_are_cut_off_and_their_places_become_the_global_model():
    """Client 2 starts from version 0 and is two behind at 5 s: its place becomes (1 + 2 + 0) / 3 = 1."""
    history, _, learner = run(Safa(share=1 / 3, max_wait_s=10.0, lag=1), count=4)
    assert timeline(history) == told("""
         0 round 1 begins; client 0 starts from 0; client 1 starts from 0; client 2 starts from 0
         3 client 0 arrives: used; round 1 ends with model 1; round 2 begins; client 0 starts from 1
         5 client 1 arrives: stale-used; client 2 is cut off: wasted-late; round 2 ends with model 2;
           round 3 begins; client 1 starts from 2; client 2 starts from 2
         6 client 0 arrives: stale-used; round 3 ends with model 3; round 4 begins; client 0 starts from 3
         9 client 0 arrives: wasted-unmerged
        10 client 1 arrives: stale-used; client 2 is cut off: wasted-late; round 4 ends with model 4
    """)
    assert learner.aggregated == pytest.approx([1 / 3, 1, (7 / 6 + 2 + 1) / 3, (7 / 6 + 2.5 + 1) / 3])
    tolerant, _, patient = run(Safa(share=1 / 3, max_wait_s=10.0, lag=2), count=3)
    assert (3.0, "client 2 starts from 2") not in timeline(tolerant)
    assert patient.aggregated == pytest.approx([1 / 3, 1, (7 / 6 + 2 + 0) / 3])


def test_without_any_lag_all_that_are_behind_the_newest_model_start_again():
    """Version 1 is there at 3 s: clients 1 and 2, of version 0, are cut off, and their places become its value 1/3.

    Client 0 was picked last time, so that client 1 ends round 2 at 8 s; the place of client 2 becomes version 2.
    """
    history, _, learner = run(Safa(share=1 / 3, max_wait_s=10.0, lag=0), count=3)
    assert timeline(history) == told("""
         0 round 1 begins; client 0 starts from 0; client 1 starts from 0; client 2 starts from 0
         3 client 0 arrives: used; client 1 is cut off: wasted-late; client 2 is cut off: wasted-late;
           round 1 ends with model 1; round 2 begins; client 0 starts from 1; client 1 starts from 1;
           client 2 starts from 1
         6 client 0 arrives: wasted-unmerged
         8 client 1 arrives: used; client 2 is cut off: wasted-late; round 2 ends with model 2; round 3 begins;
           client 0 starts from 2; client 1 starts from 2; client 2 starts from 2
        11 client 0 arrives: used; client 1 is cut off: wasted-late; client 2 is cut off: wasted-late;
           round 3 ends with model 3
    """)
    second = (1 + (1 / 6 + 2) + 1 / 3) / 3
    assert learner.aggregated == pytest.approx([1 / 3, second, ((second / 2 + 1) + (1 / 6 + 2) + second) / 3])
    with pytest.raises(ValidationError, match="lag"):
        Safa(max_wait_s=1.0, lag=-1)


def test_absent_clients_are_deprecated_too():
    """Client 1 is never there again after its first update, 2 in the cache; two versions later it is replaced."""
    there = available_in([(0, 1000)], [(0, 5)])
    history, _, learner = run(
        Safa(share=0.5, max_wait_s=10.0, lag=1), ([1, 1], [1, 2], [1, 2]), presence=there, count=5
    )
    # Client 0 makes versions 1 and 2; at 5 s client 1 makes version 2 and is gone.
    values = [1 / 2, (1 + 2) / 2]
    assert learner.aggregated[:2] == pytest.approx(values)
    assert ends(history)[:2] == [3, 5]
    values.append((1 + values[0] / 2 + 2) / 2)  # client 0, from version 1, at 6 s
    values.append((1 + values[2] / 2 + 2) / 2)  # and from version 3, at 9 s: filled up, nobody else is at work
    replaced = values[3]  # version 4 is two ahead of 2
    values.append((1 + values[3] / 2 + replaced) / 2)
    assert learner.aggregated == pytest.approx(values)


def test_the_limit_ends_a_round_and_a_round_may_begin_without_anybody_free():
    """Rounds of 12 s end empty until two arrive at 30 s; the third comes half a second later, beside nobody else."""
    history, _, learner = run(Safa(share=2 / 3, max_wait_s=12.0), ([10] * 3, [10] * 3, [10, 10, 10.5]), count=4)
    assert timeline(history)[4:] == told("""
          12 round 1 ends with model 0; round 2 begins
          24 round 2 ends with model 0; round 3 begins
          30 client 0 arrives: stale-used; client 1 arrives: stale-used; round 3 ends with model 1;
             round 4 begins; client 0 starts from 1; client 1 starts from 1
        30.5 client 2 arrives: stale-used
          42 client 0 is cut off: wasted-late; client 1 is cut off: wasted-late; round 4 ends with model 2
    """)
    assert history.column("rounds", "selected").tolist() == [3, 0, 0, 2]
    assert learner.aggregated == pytest.approx([1, (1 + 2 + 4) / 3])


def test_the_cache_is_weighted_by_samples_also_of_clients_that_have_none():
    _, _, learner = run(Safa(share=1.0, max_wait_s=10.0), samples=[30, 0, 10])
    assert learner.aggregated == [pytest.approx(0.75 * 1 + 0.25 * 4)]
    _, _, unknown = run(Safa(share=1.0, max_wait_s=10.0), samples=[0, 0, 0])
    assert unknown.aggregated == [pytest.approx((1 + 2 + 4) / 3)]


def test_lost_clients_are_waited_for_and_sent_again():
    """Client 1 is lost at 2 s of each round; a quota of all makes every round last to its limit."""
    history, selector, _ = run(
        Safa(share=1.0, max_wait_s=10.0), count=2, leaves_s=[np.inf, 2.0, np.inf], selector=Everybody()
    )
    assert ends(history) == [10, 20]
    assert [view.client.tolist() for view in selector.views] == [[0, 1, 2], [0, 1, 2]]
    assert history.column("rounds", "dropped").tolist() == [1, 1]
    gone = available_in([(0, 1000)], [(0, 2)])
    history, *_ = run(Safa(share=1.0, max_wait_s=10.0, lag=0), ([1] * 2,) * 3, count=3, presence=gone)
    assert ends(history) == [10, 13, 16], "its model is too old from round 2 on"


def test_too_few_updates_leave_cache_and_model():
    """Three are needed, which come in the second round: then all that was thrown away has left no trace."""
    history, _, learner = run(Safa(share=1.0, max_wait_s=6.0), count=2, minimum_updates=3)
    assert history.column("rounds", "model_version").tolist() == [0, 1]
    assert learner.aggregated == [pytest.approx((1 + 2 + 4) / 3)]
    assert [fate for _, _, fate, _ in fates(history)].count("wasted-unmerged") == 2


@pytest.mark.parametrize(("most", "fate"), [(5, "stale-used"), (1, "wasted-late")])
def test_the_reduced_form_of_refls_code_is_a_quorum_with_stale_updates(most, fate):
    """A tenth of three is one: rounds end at 3, 6 and 9 s with client 0, the others come at 5 and 8 s.

    Client 1 is one model behind then, client 2 two, and who has come is sent again in the round after.
    """
    history, *_ = serve(
        Quorum(share=0.1, max_wait_s=100.0),
        *THREE,
        late=Stale(weight=Constant(), max_staleness=most),
        selector=Everybody(),
        count=3,
    )
    assert ends(history) == [3, 6, 9]
    rows = [
        tuple(row[name] for name in ("round", "client", "end_s", "fate", "staleness"))
        for row in sorted(history.participations.to_pylist(), key=lambda row: (row["start_s"], row["client"]))
    ]
    assert rows[:4] == [
        (1, 0, 3, "used", 0),
        (1, 1, 5, "stale-used", 1),
        (1, 2, 8, fate, 2 if fate == "stale-used" else None),
        (2, 0, 6, "used", 0),
    ]
    assert [row[:2] for row in rows[4:]] == [(3, 0), (3, 1)]
