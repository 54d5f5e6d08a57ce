"""Sub-models train as models of that width of their own; FedRolex's window wraps around."""

import numpy as np
import pytest

from fedsim.learning import (
    CNN3,
    MLP,
    ExecutorChoice,
    LocalTraining,
    Supervised,
    TrainingJob,
    TrainingRun,
    TrainingSetup,
)
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.layout import held
from fedsim.learning.models.narrowing import narrow_models
from fedsim.streams import Streams
from tests.support.tiny_images import Tiny

LOCAL = {"epochs": 2, "batch_size": 5, "learning_rate": 0.3}
HETEROFL = {"kind": "heterofl", "widths": [1.0, 0.5, 0.25]}
MODEL = {"hidden": [8]}


def make(make_learner, **settings):
    return make_learner(local=LOCAL, model=MODEL, algorithm=HETEROFL, **settings)


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_a_sub_model_trains_as_a_model_of_that_width(make_learner, executor):
    table = {"data": Tiny(), "model": MODEL, "local": LOCAL, "algorithm": HETEROFL}
    learner = Supervised.model_validate(table).build(TrainingRun(6, Streams(3), executor=ExecutorChoice(executor)))
    start, client = learner.initial(), 1
    update = learner.updates(start, np.array([client]), level=np.array([1]))
    sent = learner.measure(update, ("update",))["update"][0]
    # The same training by an executor of the perceptron 16-4-3, from the numbers cut by hand.
    data, local = Tiny().load(), LocalTraining(**LOCAL)
    narrow = SequentialExecutor(TrainingSetup(MLP(hidden=(4,)), data, local, 0))
    whole = learner.vector(start)
    four, three = np.arange(4), np.arange(3)
    last = 8 * 17 + (three[:, None] * 8 + four).ravel()
    places = np.concatenate([np.arange(4 * 16), 8 * 16 + four, last, 8 * 17 + 3 * 8 + three])
    rows = learner._rows[client]
    rng = Streams(3).generator("training", client, 0)
    (expected,) = narrow.train([TrainingJob(whole[places], rows, 1.0, rng)])
    assert sent[places] == pytest.approx(expected.difference, abs=1e-6)
    assert not np.delete(sent, places).any()


def test_bits_and_operations_of_each_width_by_hand(make_learner):
    widths = make(make_learner).widths
    numbers = [16 * hidden + hidden + hidden * 3 + 3 for hidden in (8, 4, 2)]
    assert widths.ratio.tolist() == [1.0, 0.5, 0.25]
    assert widths.down_bits.tolist() == widths.up_bits.tolist() == [32.0 * count for count in numbers]
    # Two operations for each multiply-add of 16 x hidden and hidden x 3: they fall with the width, as hidden does.
    assert widths.flops == pytest.approx([1.0, 0.5, 0.25])
    assert make(make_learner, model_bits=100.0).widths.up_bits == pytest.approx(
        [100.0, 100.0 * numbers[1] / numbers[0], 100.0 * numbers[2] / numbers[0]]
    )


def test_cnn3_has_the_counts_of_its_layers():
    """At half the width on CIFAR-10: convolutions 3-16-32-64, dense 256-64-32-16-10, each with normalisation."""
    shape = (3, 32, 32)
    layout = build_flat(CNN3(), shape, 10, 0).layout
    whole, half = narrow_models(CNN3(), layout, shape, 10, 0, (1.0, 0.5))

    def operations(a, b, c, d, e, f):
        convolutions = 30 * 30 * 27 * a + 13 * 13 * 9 * a * b + 4 * 4 * 9 * b * c
        return 2 * (convolutions + 4 * c * d + d * e + e * f + f * 10)

    def parameters(a, b, c, d, e, f):
        layers = 28 * a + (9 * a + 1) * b + (9 * b + 1) * c + (4 * c + 1) * d + (d + 1) * e + (e + 1) * f
        return layers + (f + 1) * 10 + 2 * (a + b + c + d + e + f)

    full, cut = (32, 64, 128, 128, 64, 32), (16, 32, 64, 64, 32, 16)
    assert (whole.parameters, half.parameters) == (parameters(*full), parameters(*cut)) == (170_474, half.parameters)
    assert half.numbers == half.parameters + 2 * sum(cut) + 6  # running means and variances, and counters
    assert half.flops == pytest.approx(operations(*cut) / operations(*full))
    mask = held(layout, half.shapes)
    assert (mask.sum(), mask[: layout.parameters].sum()) == (half.numbers, half.parameters)


def masks(learner, *shifts):
    return [held(learner._layout, learner._algorithm._narrow[1].shapes, shift) for shift in shifts]


def test_every_unit_is_held_alike_and_layers_of_several_widths_roll_on_their_own(make_learner):
    rolling = {"algorithm": {"kind": "fedrolex", "widths": [1.0, 0.5]}}
    counts = sum(mask.astype(int) for mask in masks(make_learner(**rolling, model={"hidden": [4]}), *range(4)))
    assert counts[:64].tolist() == [2] * 64
    assert counts[80:].tolist() == [4] * 3  # biases of the classes
    # Round 5 of layers of 4 and 6 units: windows from 1 and from 5, and the inputs of the second are the first's.
    (mask,) = masks(make_learner(**rolling, model={"hidden": [4, 6]}), 5)
    second = mask[68 : 68 + 24].reshape(6, 4)
    assert np.flatnonzero(second.any(axis=1)).tolist() == [0, 1, 5]
    assert np.flatnonzero(second.any(axis=0)).tolist() == [1, 2]
