"""HeteroFL: sub-models of the first channels train as models of that width of their own, and are averaged by count."""

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
from tests.support.asking import next_model
from tests.support.tiny_images import Tiny

LOCAL = {"epochs": 2, "batch_size": 5, "learning_rate": 0.3}
HETEROFL = {"kind": "heterofl", "widths": [1.0, 0.5, 0.25]}
MODEL = {"hidden": [8]}


def make(make_learner, **settings):
    return make_learner(local=LOCAL, model=MODEL, algorithm=HETEROFL, **settings)


def test_width_one_is_plain_to_the_bit(make_learner):
    own, plain = make(make_learner), make_learner(local=LOCAL, model=MODEL)
    level = np.zeros(3, dtype=np.int64)
    models = [
        next_model(plain, plain.initial(), [0, 1, 2]),
        own.aggregate(own.initial(), own.updates(own.initial(), np.arange(3), level=level), np.full(3, 1 / 3)),
    ]
    assert np.array_equal(plain.vector(models[0]), own.vector(models[1]))


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


def test_each_number_is_the_mean_of_those_that_hold_it(make_learner):
    learner = make(make_learner)
    start, client, level = learner.initial(), np.array([0, 1, 2]), np.array([0, 1, 1])
    updates = learner.updates(start, client, level=level)
    sent = learner.measure(updates, ("update",))["update"].astype(np.float64)
    weights = np.array([0.5, 0.3, 0.2])
    model = learner.aggregate(start, updates, weights)
    part = held(learner._layout, learner._algorithm._narrow[1].shapes)
    expected = np.where(part, weights @ sent, sent[0])
    assert learner.vector(model) - learner.vector(start) == pytest.approx(expected, abs=1e-6)
    alone = learner.aggregate(start, updates[1:], np.array([0.6, 0.4]))
    assert np.array_equal(learner.vector(alone)[~part], learner.vector(start)[~part])
