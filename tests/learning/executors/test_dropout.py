"""What dropout draws does not depend on how an executor lays numbers out in memory."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.learning import MODELS, Dataset, LocalTraining, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.stacked.executor import StackedExecutor
from fedsim.learning.models.flat_module import build_flat
from fedsim.registry import Component
from tests.support.two_clients import learned


def images(side, channels):
    rng = np.random.default_rng(0)
    samples, labels = rng.integers(0, 256, (12, side, side, channels), dtype=np.uint8), rng.integers(0, 3, 12)
    return Dataset(samples, labels, samples, labels, classes=3, pixel_max=255)


class BehindConvolutions(Component):
    """A module as a user writes it, with each kind of dropout behind a convolution."""

    def build(self, shape, classes):
        return nn.Sequential(
            *(nn.Conv2d(3, 4, 3), nn.Dropout(0.3), nn.Conv2d(4, 6, 3), nn.Dropout2d(0.3)),
            *(nn.Conv2d(6, 4, 3), nn.AlphaDropout(0.3), nn.Flatten(), nn.Linear(16, classes)),
        )


CASES = {
    "fedsampling-cnn": (MODELS.make("fedsampling-cnn"), images(16, 1)),
    "own": (BehindConvolutions(), images(8, 3)),
}


def apart(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES, pytest.param("cnn5", marks=pytest.mark.slow)])
def test_a_stack_learns_what_one_by_one_is_learned(case):
    model, data = CASES.get(case) or (MODELS.make("cnn5"), images(32, 3))
    setup = TrainingSetup(model, data, LocalTraining(batch_size=4, learning_rate=0.05), 3)
    one, other = (learned(kind(setup), setup) for kind in (SequentialExecutor, StackedExecutor))
    assert np.abs(one).max() > 1e-4
    # Another mask moves a coordinate by as much as the update itself.
    assert apart(other, one) < 1e-3


def test_text_cnn_drops_what_lies_in_the_order_of_its_filters():
    """The mask is that of the convolution's own output, which recorded results have."""
    model = MODELS.make({"kind": "text-cnn", "embedding": 5, "filters": 4, "dropout": 0.5})
    module = build_flat(model, (7, 5), 3, 0).module
    torch.manual_seed(1)
    found = module[2].train()(torch.ones(2, 7, 4))
    torch.manual_seed(1)
    assert torch.equal(found.transpose(1, 2), nn.functional.dropout(torch.ones(2, 4, 7), 0.5))
