"""Seconds to a target as rounds times the seconds of a round, and what a round is spent on: worked by hand."""

from dataclasses import replace

import numpy as np

from fedsim.history import Recorder
from fedsim.history.analyses.explaining import PARTS
from fedsim.results import sentences
from fedsim.rounds import Deadline, WaitForAll
from fedsim.rounds.policies.asynchronous import FedAsync
from fedsim.rounds.policies.late import Drop, Stale
from tests.support.worlds import Asking, CountingLearner, serve

# Client 0 takes 1 + 3 + 0.5 s and client 1 takes 1 + 1 + 4 s.
WORLD = [1, 1], [3, 1], [0.5, 4]


def learner(*accuracies):
    return CountingLearner(np.full(2, 10), accuracies=list(accuracies))


def parts(row):
    return {name.removesuffix("_s"): row[name] for name in PARTS if row[name]}


def test_a_round_is_the_means_of_its_clients_and_the_wait_for_the_slowest():
    """Rounds of 6 s; the mean client needs 1 s, 2 s and 2.25 s, and the server waits for the other 0.75 s."""
    history, *_ = serve(WaitForAll(), *WORLD, learner=learner(0.5, 0.8, 0.9), count=3)
    (row,) = history.explain().to_pylist()
    assert (row["reached"], row["seconds"], row["rounds"], row["round_s"]) == (True, 12.0, 2, 6.0)
    assert parts(row) == {"downlink": 1.0, "compute": 2.0, "uplink": 2.25, "waiting": 0.75}
    assert sum(parts(row).values()) == row["round_s"]
    never, *_ = history.explain(above=0.95).to_pylist()
    assert (never["reached"], never["seconds"], never["rounds"]) == (False, 18.0, 3)


def test_questions_come_before_and_clients_without_delivery_do_not_count():
    """Clients take 3 s and 5 s, and as long to answer. After a deadline of 4.5 s, as client 0 arrives, 1 is late."""
    asked, *_ = serve(WaitForAll(), [1, 1], [1, 3], [1, 1], selector=Asking(), count=2)
    assert parts(asked.explain().to_pylist()[0]) == {
        "before": 5.0, "downlink": 1.0, "compute": 2.0, "uplink": 1.0, "waiting": 1.0
    }  # fmt: skip
    hurried, *_ = serve(Deadline(deadline_s=4.5), *WORLD)
    assert parts(hurried.explain().to_pylist()[0]) == {"downlink": 1.0, "compute": 3.0, "uplink": 0.5}
    nobody, *_ = serve(Deadline(deadline_s=2), *WORLD)
    assert parts(nobody.explain().to_pylist()[0]) == {"waiting": 2.0}


def test_what_rounding_leaves_of_sums_is_no_part_of_a_round():
    """Rounds of 0.1 + 0.2 + 0.3 s, of which none has a wait."""
    history, *_ = serve(WaitForAll(), [0.1], [0.2], [0.3], count=7)
    assert parts(history.explain().to_pylist()[0]).keys() == {"downlink", "compute", "uplink"}


def test_rounds_that_overlap_are_not_divided():
    history, *_ = serve(FedAsync(concurrency=2), *WORLD, count=5)
    assert parts(history.explain().to_pylist()[0]) == {}
    assert Recorder("empty").history().explain().to_pylist()[0]["rounds"] == 0


def test_of_two_runs_only_evaluations_count_that_both_have():
    """The first one reaches 80 % after its first round, which the second one has not evaluated."""
    every, *_ = serve(WaitForAll(), *WORLD, learner=learner(0.8, 0.9, 0.9, 0.9), count=4)
    second, *_ = serve(WaitForAll(), [1, 1], [2, 1], [1, 1], learner=learner(0.7, 0.9), count=4, evaluate_every=2)
    assert [row["seconds"] for row in every.explain(second).to_pylist()] == [12.0, 16.0]
    assert [row["seconds"] for row in every.explain(every).to_pylist()] == [6.0, 6.0]
    said = sentences(every, beside={"other": second})[1]
    assert said == (
        "other: 16 s, 1.33 times as long = 2.00 times the rounds x 0.67 times the seconds a round, most by uplink "
        "(-1.25 s)."
    )


def test_a_sentence_says_from_when_on_models_were_not_evaluated():
    """Of rounds of 3 s the second and the fourth are evaluated."""
    every_other, *_ = serve(WaitForAll(), [1, 1], [1, 1], [1, 1], learner=learner(0.7, 0.9), count=4, evaluate_every=2)
    assert sentences(every_other)[1] == (
        "It may be sooner: models from 9 s on were not evaluated; to see it: "
        "simulate(scenario.replace({'results.evaluate_every': 1}))"
    )
    assert "reached by no evaluation, and " in sentences(replace(every_other, target_accuracy=0.95))[0]


def test_sentences_say_what_is_not_seen_and_how_it_is_had():
    history, *_ = serve(Deadline(deadline_s=4.5), *WORLD, learner=learner(0.5))
    assert sentences(history, [2.0, 10.0]) == [
        "80 % accuracy is never reached: 1 round of 4.5 s, 4.5 s in all. A mean round is work 67%, downlink 22%, "
        "uplink 11%.",
        "Of 1 round 1 ended with the deadline, 100% of the time.",
        "Lost were 1 of 2 participations, all late, of 1 client; 1 in the uplink.",
        "A deadline of about 6 s would have kept 50%, about 6 s 90%, about 6 s 100% of the late ones. For exact "
        "seconds: simulate(scenario.replace({'rounds.late.kind': 'drop'}))",
        "A deadline of 2 s would have saved 2.5 s (55.6%) and lost 1 used update (100.0%), every round taken as "
        "it was.",
        "A deadline of 10 s cannot be seen in this history, whose rounds lost clients earlier; to see it: "
        "simulate(scenario.replace({'rounds.policy.kind': 'deadline', 'rounds.policy.deadline_s': 10.0}))",
    ]


def test_a_run_beside_that_has_no_such_metric_says_so():
    learnt, *_ = serve(WaitForAll(), *WORLD, learner=learner(0.9))
    timed = Recorder("timing").history()
    assert sentences(learnt, beside={"timing": timed})[1] == "timing: has no accuracy, so that no factor is known."
    assert (
        sentences(timed, beside={"learnt": learnt})[1] == "learnt: reaches 80 % accuracy, so that no factor is known."
    )


def test_a_sentence_about_what_is_partly_seen_says_at_least_and_asks_for_no_run_that_there_is():
    """Of clients that go on 1 arrives at 6 s, and 2 is on its way as the run ends."""
    cut, *_ = serve(Deadline(deadline_s=4), [1, 1, 1], [1, 1, 9], [1, 4, 9])
    assert sentences(cut)[-1] == (
        "A deadline of about 6 s would have kept at least 50% of the late ones. What would have kept the rest cannot "
        "be seen in this history, which cancels late clients; to see it: "
        "simulate(scenario.replace({'rounds.late.kind': 'drop'}))"
    )
    dropped, *_ = serve(Deadline(deadline_s=4), [1, 1, 1], [1, 1, 30], [1, 4, 9], late=Drop(), count=2)
    assert sentences(dropped)[-1] == (
        "A deadline of 6 s would have kept at least 50% of the late ones. The others were on their way as the run "
        "ended."
    )


def test_late_updates_that_are_used_later_are_not_called_lost():
    """Client 1 arrives at 6 s, in the second round."""
    stale, *_ = serve(Deadline(deadline_s=4), [1, 1], [1, 1], [1, 4], late=Stale(), count=2)
    said = "Not in time were 1 of 3 participations, all late, of 1 client; 1 in the uplink; 1 of them were used later."
    assert said in sentences(stale)


def test_clients_sent_one_by_one_are_late_when_they_were_given_up():
    """Client 1 is given up 4 s after it was sent, in its uplink that would have taken 2 s more."""
    served, *_ = serve(FedAsync(concurrency=2, give_up_s=4.0), [1, 1], [1, 1], [1, 4], count=7)
    assert sentences(served)[-1].startswith("Giving up after about 6 s would have kept 50%, about 6 s 90%")
    assert "{'rounds.policy.give_up_s': 16.0}" in sentences(served)[-1]
