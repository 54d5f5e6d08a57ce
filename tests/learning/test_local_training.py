import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import nn

from fedsim.learning import MLP, LocalTraining
from fedsim.learning.executors.contracts import EvaluationJob, TrainingJob, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.registry import Component
from tests.support.softmax_regression import cross_entropy, sample_losses, scaled, softmax, split_linear
from tests.support.tiny_images import Tiny

LOCALS = st.builds(
    LocalTraining,
    epochs=st.integers(1, 4),
    batch_size=st.integers(2, 9),
    max_batches=st.none() | st.integers(1, 12),
    short_batch=st.sampled_from(["keep", "skip"]),
)


def walk(local, samples, work, smallest):
    """Return the sizes of all batches of one participation, by doing what the settings say step by step."""
    epoch = []
    left = samples
    while left:
        size = min(left, local.batch_size)
        left -= size
        alone = not epoch
        if size >= smallest and (size == local.batch_size or local.short_batch == "keep" or alone):
            epoch.append(size)
    planned = len((epoch * local.epochs)[: local.max_batches])
    wanted = next(n for n in range(3 * planned + 1) if n + 1e-9 >= work * planned)
    return (epoch * (3 * local.epochs))[: max(1, wanted)]


@given(local=LOCALS, samples=st.integers(2, 40), work=st.floats(0.01, 3.0), smallest=st.sampled_from([1, 2]))
def test_arithmetic_of_work_agrees_with_walking_through_it(local, samples, work, smallest):
    sizes = walk(local, samples, work, smallest)
    assert int(local.batches(samples, work, smallest)) == len(sizes)
    assert float(local.work_samples(samples, work, smallest)) == sum(sizes)


def test_arithmetic_takes_whole_crowds():
    local = LocalTraining(batch_size=10, epochs=2, max_batches=5)
    samples, work = np.array([25, 100, 3]), np.array([1.0, 0.5, 1.0])
    np.testing.assert_array_equal(local.batches(samples, work), [5, 3, 2])
    np.testing.assert_array_equal(local.work_samples(samples, work), [45, 30, 6])


@pytest.mark.parametrize(("work", "batches"), [(0.7, 7), (0.1, 1), (0.3, 3), (0.71, 8), (1e-6, 1), (1.0, 10)])
def test_work_rounds_up_to_whole_batches(work, batches):
    assert int(LocalTraining(batch_size=1).batches(10, work)) == batches


SIZES: list[int] = []
"""Sizes of batches: a list of the module itself would be put back after a training."""


class CountingNet(nn.Module):
    """Softmax regression that notes the size of every training batch."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, classes)

    def forward(self, images):
        SIZES.append(len(images))
        return self.dense(images.flatten(1))


class Counting(Component):
    def build(self, shape, classes):
        return CountingNet(int(np.prod(shape)), classes)


class Normed(Component):
    dropout: float = 0.0

    def build(self, shape, classes):
        inputs = int(np.prod(shape))
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(inputs), nn.Dropout(self.dropout), nn.Linear(inputs, classes))


def task(executor, rows, **changes):
    options = {
        "base": executor.flat.layout.initial,
        "rows": rows,
        "work": 1.0,
        "rng": np.random.default_rng(5),
        **changes,
    }
    return TrainingJob(**options)


@given(local=LOCALS, samples=st.integers(2, 40), work=st.floats(0.01, 1.0))
def test_trainer_does_exactly_the_batches_of_the_arithmetic(local, samples, work):
    executor = SequentialExecutor(TrainingSetup(Counting(), Tiny().load(), local, seed=0))
    job = task(executor, np.arange(samples), work=work)
    SIZES.clear()
    list(executor.train([job]))
    assert walk(local, samples, work, 1) == SIZES


@pytest.mark.parametrize(
    ("work", "up", "down"),
    [(1.0, 1.0, 1.0), (0.7, 0.7, 0.7), (0.71, 0.8, 0.7), (0.05, 0.1, 0.1), (0.99, 1.0, 0.9), (0.3, 0.3, 0.3)],
)
def test_whole_steps_of_ten_batches(work, up, down):
    local = LocalTraining(batch_size=20, epochs=2)
    samples = np.array([100])
    assert local.whole_steps(samples, np.array([work]), up=True).tolist() == [pytest.approx(up)]
    assert local.whole_steps(samples, np.array([work]), up=False).tolist() == [pytest.approx(down)]
    assert local.batches(samples, up) == round(10 * up), "the share stands for itself"
    assert local.batches(samples, down) == round(10 * down)


@pytest.mark.parametrize(
    ("momentum", "proximal", "epochs", "work", "batches"),
    [
        *((momentum, proximal, 2, 1.0, 6) for momentum in (0.0, 0.5) for proximal in (0.0, 0.6)),
        (0.0, 0.0, 1, 1.0, 3),
        (0.0, 0.0, 3, 1 / 9, 1),
    ],
)
def test_sgd_agrees_with_gradients_worked_out_by_hand(tiny, momentum, proximal, epochs, work, batches):
    """With a proximal term the gradient gains proximal * (w - w_start); the losses told do not.

    The root mean square is that of single samples in the first pass.
    """
    local = LocalTraining(learning_rate=0.2, momentum=momentum, proximal=proximal, batch_size=8, epochs=epochs)
    executor = SequentialExecutor(TrainingSetup(MLP(hidden=()), tiny, local, seed=1))
    rows = np.arange(10, 30)
    result = next(executor.train([task(executor, rows, work=work)]))

    rng = np.random.default_rng(5)
    rng.integers(2**63)  # torch's seed comes first, then one permutation per epoch
    weights, bias = split_linear(executor.flat.layout.initial, tiny)
    start, bias_start = weights, bias
    speed, bias_speed, losses = np.zeros_like(weights), np.zeros_like(bias), []
    orders = [rows[rng.permutation(20)] for _ in range(epochs)]
    for batch in [part for order in orders for part in (order[:8], order[8:16], order[16:])][:batches]:
        images, labels = tiny.train_x[batch], tiny.train_y[batch]
        losses += sample_losses(weights, bias, images, labels).tolist()
        # d loss / d scores = (softmax - one-hot) / batch size
        slope = (softmax(scaled(images) @ weights.T + bias) - np.eye(3)[labels]) / len(batch)
        speed = momentum * speed + slope.T @ scaled(images) + proximal * (weights - start)
        bias_speed = momentum * bias_speed + slope.sum(axis=0) + proximal * (bias - bias_start)
        weights, bias = weights - 0.2 * speed, bias - 0.2 * bias_speed
    expected = np.concatenate([weights.ravel(), bias]) - executor.flat.layout.initial
    np.testing.assert_allclose(result.difference, expected, atol=2e-6)
    assert result.loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert result.loss_rms == pytest.approx(np.sqrt(np.mean(np.square(losses[:20]))), rel=1e-5)
    assert result.loss_rms > np.mean(losses[:20])  # Jensen's inequality, strict for losses that differ


@pytest.mark.parametrize("local", [{"optimizer": "adam", "learning_rate": 0.01}, {"momentum": 0.9}])
def test_kept_state_over_two_trainings_equals_one_longer_training(tiny, local):
    once = LocalTraining(batch_size=32, keep_optimizer_state=True, **local)
    twice = once.model_copy(update={"epochs": 2})
    short, long = (SequentialExecutor(TrainingSetup(MLP(), tiny, settings, seed=1)) for settings in (once, twice))
    rows = np.arange(16)
    first = next(short.train([task(short, rows)]))
    middle = short.flat.layout.initial + first.difference
    second = next(short.train([task(short, rows, base=middle, state=first.state)]))
    forgetful = next(short.train([task(short, rows, base=middle)]))
    whole = next(long.train([task(long, rows)])).difference
    # Batches hold all samples, in another order: sums differ by rounding alone.
    np.testing.assert_allclose(first.difference + second.difference, whole, atol=1e-5)
    assert np.abs(first.difference + forgetful.difference - whole).max() > 1e-3


def test_evaluation_agrees_with_numpy(tiny):
    executor = SequentialExecutor(TrainingSetup(MLP(hidden=()), tiny, LocalTraining(), seed=1))
    weights, bias = split_linear(executor.flat.layout.initial, tiny)
    right = (scaled(tiny.test_x) @ weights.T + bias).argmax(axis=1) == tiny.test_y
    found = executor.evaluate([EvaluationJob(executor.flat.layout.initial)])[0]
    assert found.accuracy == pytest.approx(right.mean(), abs=1e-12)
    assert found.loss == pytest.approx(cross_entropy(weights, bias, tiny.test_x, tiny.test_y), rel=1e-5)


def test_dropout_draws_from_the_tasks_own_luck(tiny):
    executor = SequentialExecutor(TrainingSetup(Normed(dropout=0.5), tiny, LocalTraining(batch_size=96), seed=1))
    rows = np.arange(96)
    results = [next(executor.train([task(executor, rows, rng=np.random.default_rng(s))])) for s in (1, 1, 2)]
    np.testing.assert_array_equal(results[0].difference, results[1].difference)
    assert np.abs(results[0].difference - results[2].difference).max() > 1e-4


def test_a_last_batch_of_one_is_left_out_with_batch_normalisation(tiny):
    executor = SequentialExecutor(TrainingSetup(Normed(), tiny, LocalTraining(batch_size=8), seed=1))
    result = next(executor.train([task(executor, np.arange(17))]))
    assert executor.flat.layout.smallest_batch == 2
    assert result.difference[-1] == 2  # batch normalisation's counter: 8 + 8 samples, and not the single one


@pytest.mark.parametrize(
    "wrong",
    [
        {"optimizer": "adam", "momentum": 0.5},
        {"optimizer": "lbfgs"},
        {"learning_rate": 0.0},
        {"epochs": 0},
        {"batch_size": 2.5},
        {"max_batches": 0},
        {"momentum": 1.0},
        {"proximal": -0.1},
        {"decay": 0.1},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        LocalTraining.model_validate(wrong)


def test_training_is_bit_by_bit_that_of_torchs_cross_entropy(tiny, one_thread):
    executor = SequentialExecutor(
        TrainingSetup(MLP(hidden=(7,)), tiny, LocalTraining(learning_rate=0.3, batch_size=20), seed=1)
    )
    result = next(executor.train([task(executor, np.arange(20))]))
    rng = np.random.default_rng(5)
    rng.integers(2**63)
    order = rng.permutation(20)
    vector = torch.from_numpy(executor.flat.layout.initial.copy())
    net = nn.Sequential(nn.Linear(16, 7), nn.ReLU(), nn.Linear(7, 3))
    nn.utils.vector_to_parameters(vector, net.parameters())
    images = torch.from_numpy(tiny.train_x[order]).mul(2.0 / 255).sub(1.0).flatten(1)
    loss = nn.functional.cross_entropy(net(images), torch.from_numpy(tiny.train_y[order]))
    loss.backward()
    slope = torch.cat([parameter.grad.reshape(-1) for parameter in net.parameters() if parameter.grad is not None])
    assert result.loss == loss.item()
    np.testing.assert_array_equal(
        result.difference, vector.add(slope, alpha=-0.3).numpy() - executor.flat.layout.initial
    )
