"""`check_task` refuses broken tasks, each for its own fault, and passes all kinds of the catalogue."""
# ruff: noqa: ARG005 (losses take what the contract gives)

import pytest
from pydantic import ValidationError

from fedsim.learning import TASKS, Classification, Metric, Regression
from fedsim.testing import check_task
from tests.support.checks import refuses
from tests.support.lies import lying
from tests.support.tiny_targets import TinyTargets


class Grows(Regression):
    def outputs(self, data):
        self.__dict__["asked"] = self.__dict__.get("asked", 2) + 1
        return self.__dict__["asked"]


class Largest(Metric):
    """Is no sum: the largest score of a batch counts for each of its samples."""

    def sums(self, scores, targets):
        return scores.max() + 0 * targets[:, :1].float()


class Narrow(Metric):
    def sums(self, scores, targets):
        return scores[:, 0]


def check(task):
    check_task(task, TinyTargets().load())


@pytest.mark.parametrize("kind", [kind for kind in TASKS.builtin if kind != "next-token"])
def test_kinds_of_the_catalogue_pass(kind):
    targets = {"classification": "labels", "regression": "numbers", "multi-label": "label-sets"}[kind]
    check_task(TASKS.make(kind), TinyTargets(of=targets).load())


def losing(change):
    """Return a task with a change of a regression's losses."""
    return lying(
        Regression, "losses", lambda self, scores, targets: change(Regression().losses(scores, targets), targets)
    )()


test_broken_tasks_are_refused = refuses(
    check,
    [
        (losing(lambda losses, targets: losses / targets.abs().max()), r"Lie.*losses of samples depend on the others"),
        (
            losing(lambda losses, targets: losses.mean()),
            r"Lie.*losses returned numbers of shape \(\).*a tensor of 1 axes",
        ),
        (losing(lambda losses, targets: losses / 0), r"Lie.*losses has the mean inf"),
        (Grows(), r"Grows.*outputs"),
        (Regression(metrics=(Largest(),)), r"metrics: Largest of sums over parts"),
        (Regression(metrics=(Narrow(),)), r"Narrow.sums returned numbers of shape \(\d+,\).*a tensor of 2 axes"),
    ],
)


def test_a_classification_with_more_metrics_passes():
    check_task(
        Classification(metrics=["accuracy", "macro-f1", {"kind": "top-k", "k": 2}]), TinyTargets(of="labels").load()
    )


class Flips(Regression):
    def batch(self, inputs, targets, generator):
        return -inputs, targets


def test_batches_that_nobody_would_make_are_refused():
    with pytest.raises(
        ValidationError, match=r"Flips.batch is never called, since makes_batches is False; allowed: makes_batches"
    ):
        Flips()
