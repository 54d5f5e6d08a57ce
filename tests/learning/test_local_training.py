"""Batches of a participation and learning rates by hand; `test_literal_rounds.py` has the trainings themselves."""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from pydantic import ValidationError

from fedsim.learning import LocalTraining
from fedsim.learning.schedules import Cosine, Decay

LOCALS = st.builds(
    LocalTraining,
    epochs=st.integers(1, 4),
    batch_size=st.integers(2, 9),
    steps=st.none() | st.integers(1, 9),
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
    passes = local.epochs if local.steps is None else local.steps
    planned = len((epoch * passes)[: local.steps][: local.max_batches])
    wanted = next(n for n in range(3 * planned + 1) if n + 1e-9 >= work * planned)
    return (epoch * (3 * passes))[: max(1, wanted)]


@given(local=LOCALS, samples=st.integers(2, 40), work=st.floats(0.01, 3.0), smallest=st.sampled_from([1, 2]))
@example(local=LocalTraining(batch_size=1, steps=100), samples=100, work=0.07, smallest=1)  # 7.000000000000001 batches
def test_arithmetic_of_work_agrees_with_walking_through_it(local, samples, work, smallest):
    sizes = walk(local, samples, work, smallest)
    assert int(local.batches(samples, work, smallest)) == len(sizes)
    assert float(local.work_samples(samples, work, smallest)) == sum(sizes)


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
    "wrong",
    [
        {"optimizer": "adam", "momentum": 0.5},
        {"optimizer": "lbfgs"},
        {"learning_rate": 0.0},
        {"momentum": 1.0},
        {"decay": 0.1},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        LocalTraining.model_validate(wrong)


def test_rates_by_hand():
    assert Decay(factor=0.5, every=2).factors(5, 3).tolist() == [0.25] * 3
    assert Decay(factor=0.5, every=2, by="step").factors(5, 5).tolist() == [1, 1, 0.5, 0.5, 0.25]
    assert Cosine(over=4, least=0.2).factors(2, 1) == pytest.approx([0.6])
    steep = [1, 0.5 + 0.25 * 2**0.5, 0.5, 0.5 - 0.25 * 2**0.5, 0, 0]
    assert Cosine(over=4, by="step").factors(9, 6) == pytest.approx(steep)
