"""FedRolex: the window begins one channel further in every round, and wraps around."""

import numpy as np
import pytest

from fedsim.learning import FedRolex
from fedsim.learning.models.layout import held
from tests.support.asking import next_model

ROLLING = {"kind": "fedrolex", "widths": [1.0, 0.5]}


def trained(learner, model):
    """Return which hidden units a client of half the width has trained, shape (4,)."""
    update = learner.updates(model, np.array([1]), level=np.array([1]))
    sent = learner.measure(update, ("update",))["update"][0]
    first, bias, last = sent[:64].reshape(4, 16), sent[64:68], sent[68:80].reshape(3, 4)
    units = first.any(axis=1)
    assert not bias[~units].any()
    assert not last[:, ~units].any()
    return units


def test_the_window_rolls_by_one_unit_a_round(make_learner):
    settings = {"model": {"hidden": [4]}, "local": {"epochs": 4, "learning_rate": 0.5, "batch_size": 3}}
    learner = make_learner(algorithm=ROLLING, **settings)
    layout, model = learner._layout, learner.initial()
    for version in range(5):
        begins = version % 4
        window = {begins, (begins + 1) % 4}
        # A unit of which no sample makes anything has no gradient; others are not trained at all.
        assert set(np.flatnonzero(trained(learner, model))) <= window
        mask = held(layout, learner._algorithm._narrow[1].shapes, FedRolex().shift(model.version))
        assert set(np.flatnonzero(mask[64:68])) == window
        model = next_model(learner, model, [0])


def masks(learner, *shifts):
    return [held(learner._layout, learner._algorithm._narrow[1].shapes, shift) for shift in shifts]


def test_every_unit_is_held_alike_and_layers_of_several_widths_roll_on_their_own(make_learner):
    counts = sum(mask.astype(int) for mask in masks(make_learner(algorithm=ROLLING, model={"hidden": [4]}), *range(4)))
    assert counts[:64].tolist() == [2] * 64
    assert counts[80:].tolist() == [4] * 3  # biases of the classes
    # Round 5 of layers of 4 and 6 units: windows from 1 and from 5, and the inputs of the second are the first's.
    (mask,) = masks(make_learner(algorithm=ROLLING, model={"hidden": [4, 6]}), 5)
    second = mask[68 : 68 + 24].reshape(6, 4)
    assert np.flatnonzero(second.any(axis=1)).tolist() == [0, 1, 5]
    assert np.flatnonzero(second.any(axis=0)).tolist() == [1, 2]


@pytest.mark.parametrize("widths", [[0.5], [1.0, 1.0], [1.0, 0.25, 0.5]])
def test_widths_fall_from_one(widths):
    with pytest.raises(ValueError, match="they fall, and the first one is"):
        FedRolex(widths=tuple(widths))
