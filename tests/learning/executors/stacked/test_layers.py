"""Every layer of a table computes in "stacked" what it computes one by one, or is not taken by it."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsim import Component
from fedsim.errors import FedsimError
from fedsim.learning import Dataset, ExecutorChoice, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.models.flat_module import build_flat
from tests.support.families import by_default

WORDS, PLACES = 12, 6
LAYERS = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 8)),
    "bilinear": lambda: Twice(nn.Bilinear(64, 64, 8)),
    "conv-1d": lambda: nn.Sequential(nn.Flatten(1, 2), nn.Conv1d(8, 8, 3)),
    "conv-2d": lambda: nn.Conv2d(1, 8, 3, stride=2, padding=1),
    "conv-2d-groups": lambda: nn.Sequential(nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3, groups=4, dilation=2)),
    "conv-transposed": lambda: nn.ConvTranspose2d(1, 3, 3),
    "batch-norm": lambda: nn.Sequential(nn.Conv2d(1, 5, 3), nn.BatchNorm2d(5)),
    "batch-norm-flat": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 9), nn.BatchNorm1d(9)),
    "instance-norm": lambda: nn.Sequential(nn.Conv2d(1, 5, 3), nn.InstanceNorm2d(5, affine=True)),
    "group-norm": lambda: nn.Sequential(nn.Conv2d(1, 6, 3), nn.GroupNorm(3, 6)),
    "layer-norm": lambda: nn.LayerNorm([8, 8]),
    "local-response": lambda: nn.Sequential(nn.Conv2d(1, 6, 3), nn.LocalResponseNorm(2)),
    "max-pool": lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(2)),
    "average-pool": lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2)),
    "upsample": lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Upsample(scale_factor=2, mode="bilinear")),
    "pixel-shuffle": lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.PixelShuffle(2)),
    "prelu": lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.PReLU(4)),
    "activations": lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.SiLU(), nn.Softplus(), nn.Hardswish()),
    "more-activations": lambda: nn.Sequential(nn.Linear(8, 8), nn.ELU(), nn.LeakyReLU(), nn.Softmax(-1), nn.GLU()),
    "dropout": lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3)),
    "dropout-2d": lambda: nn.Sequential(nn.Conv2d(1, 6, 3), nn.Dropout2d(0.4)),
    "dropout-behind-convolutions": lambda: nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.Dropout(0.3), nn.Conv2d(4, 6, 3), nn.Dropout2d(0.3), nn.Conv2d(6, 4, 3)),
        nn.AlphaDropout(0.3),
    ),
    "alpha-dropout": lambda: nn.Sequential(nn.Linear(8, 8), nn.AlphaDropout(0.3)),
    "attention": lambda: nn.Sequential(nn.Flatten(1, 2), nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)),
    "weight-norm": lambda: nn.utils.parametrizations.weight_norm(nn.Conv2d(1, 4, 3)),
    "spectral-norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)),
    "tied": lambda: nn.Sequential(Tied()),
    "lstm": lambda: nn.Sequential(nn.Flatten(1, 2), Last(nn.LSTM(8, 6, batch_first=True))),
    "gru": lambda: nn.Sequential(nn.Flatten(1, 2), Last(nn.GRU(8, 6, batch_first=True))),
}
OF_WORDS = {
    "embedding": lambda: nn.Embedding(WORDS, 5),
    "embedding-padding": lambda: nn.Embedding(WORDS, 5, padding_idx=1),
    "embedding-max-norm": lambda: nn.Embedding(WORDS, 5, max_norm=0.7),
    "embedding-by-frequency": lambda: nn.Embedding(WORDS, 5, scale_grad_by_freq=True),
    "embedding-bag": lambda: nn.EmbeddingBag(WORDS, 5, mode="sum", padding_idx=1),
}
TAKEN = {
    "linear",
    "conv-2d",
    "batch-norm",
    "group-norm",
    "layer-norm",
    "max-pool",
    "dropout",
    "dropout-behind-convolutions",
    "embedding",
    "activations",
    "attention",
}
# In the default tier: layers of each kind, with draws and statistics, and two that are not taken.
FEW = {"linear", "conv-2d", "conv-2d-groups", "batch-norm", "dropout-behind-convolutions", "attention", "gru", "tied"}


class Twice(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.flatten(1), x.flatten(1) * 0.5)


class Last(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0][:, -1]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)
        self.other.weight = self.one.weight

    def forward(self, x):
        return self.other(torch.tanh(self.one(x)))


class Layered(Component):
    """A layer of the table and one that makes three scores of what it gives."""

    name: str

    def build(self, shape, classes):
        words = self.name in OF_WORDS
        layer = (OF_WORDS if words else LAYERS)[self.name]()
        blank = torch.zeros((2, PLACES), dtype=torch.int64) if words else torch.zeros((2, *shape))
        with torch.no_grad():
            width = layer.eval()(blank).flatten(1).shape[1]
        return nn.Sequential(layer, nn.Flatten(), nn.Linear(width, classes)).train()


def data_of(name):
    """Return the same data in any order of tests: batch norm of two samples that are near amplifies rounding."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 96)
    if name in OF_WORDS:
        tokens = rng.integers(0, WORDS, (96, PLACES))
        return Dataset(tokens, labels, tokens[:9], labels[:9], classes=3, vocabulary=WORDS)
    images = rng.normal(size=(96, 1, 8, 8)).astype(np.float32)
    return Dataset(images, labels, images[:9], labels[:9], classes=3)


@pytest.mark.parametrize("name", by_default([*LAYERS, *OF_WORDS], FEW))
def test_a_layer_computes_what_torch_computes_or_is_not_taken(name):
    local = LocalTraining(learning_rate=0.1, batch_size=6, epochs=2, momentum=0.5)
    setup = TrainingSetup(Layered(name=name), data_of(name), local, 1)
    try:
        executor = ExecutorChoice("stacked").build(setup)
    except FedsimError:
        assert name not in TAKEN
        return
    base = build_flat(setup.model, setup.data.shape, 3, 1).layout.initial
    sizes = (12, 7, 9, 2, 12, 8)
    ends = np.cumsum([0, *sizes])

    def jobs():
        rows = [np.arange(*ends[i : i + 2]) for i in range(len(sizes))]
        return [TrainingJob(base, one, 1.0, np.random.default_rng(i)) for i, one in enumerate(rows)]

    found, wanted = executor.train(jobs()), ExecutorChoice().build(setup).train(jobs())
    alone = [executor.train([jobs()[i]])[0] for i in (0, 3, 5)]
    assert [one.difference.tobytes() for one in alone] == [found[i].difference.tobytes() for i in (0, 3, 5)]
    for one, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.difference, right.difference, rtol=1e-3, atol=2e-5)
