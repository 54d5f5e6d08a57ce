import functools
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import Field

from fedsim.errors import ScenarioError
from fedsim.learning import Release
from fedsim.learning.lineage.asked import digest_of
from fedsim.registry import Component
from fedsim.streams import Streams
from tests.support.asking import even, losses, next_model, one_update
from tests.support.tiny_images import Tiny

ADAM = {"optimizer": "adam", "learning_rate": 0.01, "keep_optimizer_state": True}


def rounds(learner, cohorts):
    return functools.reduce(lambda model, cohort: next_model(learner, model, cohort), cohorts, learner.initial())


class Marking(Component):
    """A mechanism whose release can be told from the update: scaled by epsilon, noise in what is not exempt."""

    width: Annotated[float, Field(gt=0)] = 1.0

    def release(self, update, epsilon, buffers, rng):
        noise = rng.normal(0.0, self.width, update.size)
        return np.where(buffers, update, epsilon * update + noise).astype(np.float32)


def test_only_updates_that_are_used_are_ever_trained(make_learner):
    learner = make_learner()
    model = learner.initial()
    asked = [one_update(learner, model, client) for client in range(6)]
    delivered = [asked[1], asked[4]]
    following = learner.aggregate(model, delivered, even(2))
    assert learner.work.trained == 0
    assert learner.evaluate(following).accuracy > 0
    assert learner.work.trained == 2
    learner.evaluate(following)
    losses(learner, delivered)
    assert learner.work.trained == 2
    losses(learner, asked[:2])
    assert learner.work.trained == 3


def test_optimiser_state_follows_delivered_updates_only(make_learner):
    delivered, with_late = make_learner(local=ADAM), make_learner(local=ADAM)
    found = []
    for learner in (delivered, with_late):
        model = rounds(learner, [[0], [1]])
        if learner is with_late:
            losses(learner, [one_update(learner, model, 0)])  # trained, but never aggregated
        model = next_model(learner, next_model(learner, model, [1]), [0])
        found.append((model.digest, learner.vector(model).tobytes()))
    assert found[0] == found[1]
    forgetful = make_learner(local={**ADAM, "keep_optimizer_state": False})
    assert forgetful.vector(rounds(forgetful, [[0], [1], [1], [0]])).tobytes() != found[0][1]


def test_privacy_is_applied_to_the_raw_update_with_its_own_luck(make_learner):
    learner = make_learner(mechanism=Marking())
    model = learner.initial()
    raw = learner.aggregate(model, [one_update(learner, model, 2)], np.ones(1))
    released = learner.aggregate(model, [one_update(learner, model, 2, Release(0.5, 7))], np.ones(1))
    base, plain, private = (learner.vector(m).astype(np.float64) for m in (model, raw, released))
    noise = Streams(3).generator("privacy-noise", 2, 7).normal(0.0, 1.0, base.size)
    np.testing.assert_allclose(private - base, 0.5 * (plain - base) + noise, atol=1e-5)


@given(parts=st.lists(st.text() | st.binary() | st.integers() | st.floats(allow_nan=False) | st.none(), max_size=4))
def test_ingredients_cannot_flow_into_one_another(parts):
    assert digest_of(*parts) == digest_of(*parts)
    assert digest_of(*parts, "a", "b") != digest_of(*parts, "ab")
    assert digest_of(*parts, "1") != digest_of(*parts, 1)


def test_clients_too_small_for_batch_normalisation_are_refused(make_learner):
    one_each = {"data": Tiny(samples=3, side=22), "model": "cnn3"}
    with pytest.raises(ScenarioError, match=r"client 0 has 1 sample.*at least 2"):
        make_learner(clients=3, **one_each)
    with pytest.raises(ScenarioError, match="batch_size: 1 is not allowed"):
        make_learner(clients=1, local={"batch_size": 1}, **one_each)
