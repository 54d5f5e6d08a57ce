"""`check_aggregation` refuses broken rules, each for its own fault, and passes all kinds of fedsim's."""
# ruff: noqa: ARG005 (a rule takes what the contract gives)

from typing import Any, ClassVar

import numpy as np
import pytest

from fedsim.errors import ContractError
from fedsim.learning import AGGREGATIONS, Aggregator
from fedsim.testing import check_aggregation
from tests.support.lies import HonestAggregation, lying

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


class SaysThatItAdds(Aggregator):
    adds_up: ClassVar[bool] = True

    def combine(self, updates, weights, parameters):
        return updates.mean(axis=0)


class Counts(Aggregator):
    calls: ClassVar[list[int]] = []

    def combine(self, updates, weights, parameters):
        self.calls.append(1)
        return np.median(updates, axis=0) + np.float32(1e-6 * len(self.calls))


class NeedsHalf(Aggregator):
    least_updates: ClassVar[Any] = 2.5

    def combine(self, updates, weights, parameters):
        return updates.mean(axis=0)


@pytest.mark.parametrize("kind", AGGREGATIONS.builtin)
def test_fedsims_own_pass(kind):
    assert check_aggregation(AGGREGATIONS.make({"kind": kind, **SOUND.get(kind, {})})) is None


def test_a_sound_rule_of_ones_own_passes():
    assert check_aggregation(GeometricMedian()) is None


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (combining(lambda u, w, p: u[0]), "in another order"),
        (combining(lambda u, w, p: u.sum(axis=0)), "than the one that all are"),
        (combining(lambda u, w, p: u.sort(axis=0)), "updates and weights are read-only"),
        (
            combining(lambda u, w, p: u.mean(axis=0)[:p]),
            r"float32 of shape \(40,\); floating-point numbers of shape \(43,\).*buffers",
        ),
        (combining(lambda u, w, p: u.mean(axis=0) + np.random.rand(u.shape[1])), "global random generator"),  # noqa: NPY002
        (combining(lambda u, w, p: u.mean(axis=0) * np.nan), "not finite"),
        (SaysThatItAdds(), "not the weighted mean"),
        (Counts(), "differs when it is repeated"),
        (NeedsHalf(), "least_updates: 2.5 is not allowed"),
        (object(), "does not derive"),
    ],
)
def test_broken_rules_are_refused_for_their_fault(broken, fault):
    with pytest.raises(ContractError, match=fault):
        check_aggregation(broken)
