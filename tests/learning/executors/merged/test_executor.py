"""A sum of single steps that is worked out at once is the sum of the steps; what cannot be worked out so is not."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedsim.learning import MLP, Dataset, ExecutorChoice, FedProx, LocalTraining, Plain, TrainingSetup
from fedsim.learning.algorithms.moon import Moon
from fedsim.learning.algorithms.scaffold import Scaffold
from fedsim.learning.executors.contracts import MergedJob, Precision, TrainingJob
from fedsim.learning.executors.merged import steps
from fedsim.learning.executors.merged.executor import MergedExecutor
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.models.sequences import TextCNN
from fedsim.learning.tasks.of_labels import Classification
from fedsim.registry import Component
from fedsim.testing import check_executor
from tests.learning.executors.plain_loop import Centred, Convolutions, Dropping
from tests.support.tiny_images import Tiny

IMAGES = Tiny().load()
TOKENS = np.random.default_rng(0).integers(0, 9, (96, 6))
TEXTS = Dataset(TOKENS, TOKENS[:, 0] % 3, TOKENS[:6], TOKENS[:6, 0] % 3, classes=3, vocabulary=9)
MODELS = {
    "dense": (MLP(hidden=(5,)), IMAGES),
    "dropping channels and numbers": (Dropping(), IMAGES),
    "words, dropped where they lie the other way round": (
        TextCNN(embedding=4, filters=5, hidden=4, pooling=3, dropout=0.4),
        TEXTS,
    ),
}
LOCALS = (
    LocalTraining(learning_rate=0.3, batch_size=12),
    LocalTraining(learning_rate=0.3, batch_size=12, momentum=0.5, weight_decay=0.2, proximal=0.4),
)


@lru_cache
def executors(name: str, local: LocalTraining) -> tuple[MergedExecutor, SequentialExecutor]:
    model, data = MODELS[name]
    setup = TrainingSetup(model, data, local, seed=4)
    return MergedExecutor(setup), SequentialExecutor(setup)


def generators(count: int) -> Callable[[], list[np.random.Generator]]:
    return lambda: [np.random.default_rng([7, client]) for client in range(count)]


def apart(name: str, local: LocalTraining, rows: list[np.ndarray], weights: np.ndarray) -> float:
    """Return by how much the sum misses that of single trainings, as a share of what float32 lets both miss.

    These are 5 digits of the terms, and the last bit of the numbers of the model that each difference is taken of.
    """
    merged, single = executors(name, local)
    base, fresh = single.flat.layout.initial, generators(len(rows))
    jobs = [TrainingJob(base, own, 1.0, rng) for own, rng in zip(rows, fresh(), strict=True)]
    terms = [w * one.difference.astype(float) for one, w in zip(single.train(jobs), weights, strict=True)]
    found = merged.train_sum(MergedJob(base, rows, weights, fresh))
    assert found.shape == base.shape
    last_bit = 2.0**-23 * float(np.abs(base).max()) * float(np.abs(weights).sum())
    return float(np.abs(found - sum(terms)).max()) / (1e-30 + last_bit + 1e-5 * sum(np.abs(one).max() for one in terms))


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(LOCALS),
    st.lists(st.tuples(st.integers(1, 12), st.floats(-2, 2)), min_size=1, max_size=6),
    st.integers(1, 9),
    st.integers(0, 2**32),
)
def test_the_sum_is_that_of_single_trainings(name, local, clients, together, seed):
    """With the draws of each client, wherever a batch of several clients ends."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(96)[:size] for size, _ in clients]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "_TOGETHER", together)
        assert apart(name, local, rows, np.array([weight for _, weight in clients])) <= 1


class Noisy(Component):
    """Draws numbers that are not those of a sample."""

    def build(self, shape: tuple[int, int, int], classes: int) -> nn.Module:
        class Noise(nn.Module):
            def forward(self, values: torch.Tensor) -> torch.Tensor:
                return values + 0.1 * torch.rand(values.shape[1]) if self.training else values

        return nn.Sequential(nn.Flatten(), Noise(), nn.Linear(int(np.prod(shape)), classes))


UNMERGED: dict[str, dict[str, Any]] = {
    "batch normalisation": {"model": Convolutions()},
    "samples that see each other": {"model": Centred()},
    "draws for a batch": {"model": Noisy()},
    "Adam": {"local": LocalTraining(optimizer="adam")},
    "clipped gradients": {"local": LocalTraining(clip_norm=1.0)},
    "a state that is kept": {"local": LocalTraining(momentum=0.5, keep_optimizer_state=True)},
    "corrected gradients": {"algorithm": Scaffold()},
    "a loss of its own": {"algorithm": Moon()},
    "batches that a task makes": {"task": Classification(flip=True)},
}


@pytest.mark.parametrize("parts", UNMERGED.values(), ids=UNMERGED)
def test_what_is_no_sum_over_samples_is_trained_client_by_client(parts):
    given = {"model": MLP(hidden=(4,)), "local": LocalTraining(), **parts}
    setup = TrainingSetup(data=IMAGES, seed=1, **given)
    merged, single = MergedExecutor(setup), SequentialExecutor(setup)
    assert not merged.merges
    if "model" in parts:
        jobs = [[TrainingJob(single.flat.layout.initial, np.arange(9), 1.0, np.random.default_rng(0))] for _ in "12"]
        (found,), (wanted,) = (list(one.train(job)) for one, job in zip((merged, single), jobs, strict=True))
        np.testing.assert_array_equal(found.difference, wanted.difference)


@pytest.mark.parametrize("algorithm", [Plain(), FedProx(mu=0.3)])
def test_a_pull_towards_the_start_is_none_at_the_start(algorithm):
    assert MergedExecutor(TrainingSetup(MLP(hidden=(4,)), IMAGES, LocalTraining(), 1, algorithm=algorithm)).merges


def test_it_keeps_the_contract_under_a_name_of_its_own():
    check_executor("merged")
    setup = TrainingSetup(MLP(hidden=(4,)), IMAGES, LocalTraining(), 1)
    precisions: tuple[Precision, ...] = ("float32", "bfloat16")
    names = [ExecutorChoice.of("merged", None, precision).build(setup).fingerprint for precision in precisions]
    assert names == ["merged", "merged-bfloat16"]
