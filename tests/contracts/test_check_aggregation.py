"""`check_aggregation` refuses broken rules, each for its own fault, and passes all kinds of fedsim's."""
# ruff: noqa: ARG005 (a rule takes what the contract gives)

from typing import ClassVar

import numpy as np

from fedsim.learning import AGGREGATIONS, Aggregator
from fedsim.testing import check_aggregation
from tests.support.checks import passes, refuses
from tests.support.lies import HonestAggregation, lying, stating

SOUND = {"krum": {"byzantine": 2}, "multi-krum": {"byzantine": 1, "averaged": 6}}


def combining(answer):
    """Return a rule that answers with a function of updates, weights and the number of parameters."""
    return lying(HonestAggregation, "combine", lambda self, *given: answer(*given))()


class GeometricMedian(Aggregator):
    """Some steps of Weiszfeld's, as a user would write it."""

    def combine(self, updates, weights, parameters):
        found = weights @ updates
        for _ in range(50):
            apart = weights / np.maximum(1e-6, np.linalg.norm(updates - found, axis=1))
            found = apart @ updates / apart.sum()
        return found


class Counts(Aggregator):
    calls: ClassVar[list[int]] = []

    def combine(self, updates, weights, parameters):
        self.calls.append(1)
        return np.median(updates, axis=0) + np.float32(1e-6 * len(self.calls))


MEAN = lying(Aggregator, "combine", lambda self, updates, weights, parameters: updates.mean(axis=0))
OWN = [AGGREGATIONS.make({"kind": kind, **SOUND.get(kind, {})}) for kind in AGGREGATIONS.builtin]
test_sound_rules_pass = passes(check_aggregation, [*OWN, GeometricMedian()])
test_broken_rules_are_refused_for_their_fault = refuses(
    check_aggregation,
    [
        (combining(lambda u, w, p: u[0]), "in another order"),
        (combining(lambda u, w, p: u.sum(axis=0)), "than the one that all are"),
        (combining(lambda u, w, p: u.sort(axis=0)), "updates and weights are read-only"),
        (combining(lambda u, w, p: u.mean(axis=0)[:p]), r"float32 of shape \(40,\); float32 of shape \(43,\).*buffers"),
        (combining(lambda u, w, p: u.mean(axis=0) + np.random.rand(u.shape[1])), "global random generator"),  # noqa: NPY002
        (combining(lambda u, w, p: u.mean(axis=0) * np.nan), "finite numbers"),
        (stating(MEAN, adds_up=True)(), "not the weighted mean"),
        (Counts(), "differs when it is repeated"),
        (stating(MEAN, least_updates=2.5)(), "least_updates: 2.5 is not allowed"),
        (object(), "does not derive"),
    ],
)
