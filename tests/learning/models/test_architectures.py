import itertools

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from fedsim.errors import ScenarioError
from fedsim.learning import CNN3, MLP, MODELS, Dataset, LocalTraining, Supervised, TrainingRun
from fedsim.learning.executors.contracts import TrainingJob, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.models.flat_module import FlatModule
from fedsim.streams import Streams


def parameters(module):
    return sum(p.numel() for p in module.parameters())


def test_hidden_widths_may_be_a_list_as_in_toml():
    model = MODELS.make({"kind": "mlp", "hidden": [4]})
    assert parameters(model.build((1, 2, 3), 5)) == 6 * 4 + 4 + 4 * 5 + 5
    for wrong in ([0], [2.5], 7):
        with pytest.raises(ValidationError):
            MLP.model_validate({"hidden": wrong})


def test_images_too_small_for_the_convolutions_are_refused():
    assert CNN3().build((1, 22, 22), 10)(torch.zeros(2, 1, 22, 22)).shape == (2, 10)
    with pytest.raises(ScenarioError, match="at least 22 x 22 pixels, these have 8 x 8"):
        Supervised.model_validate({"model": "cnn3"}).build(TrainingRun(10, Streams(0)))


class PaperNet(nn.Module):
    """The CIFAR-10 network in the order that the facts give: ReLU, pooling, normalisation."""

    def __init__(self) -> None:
        super().__init__()
        widths = [3, 32, 64, 128]
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3) for a, b in itertools.pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in widths[1:])
        dense = [512, 128, 64, 32]
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(dense))
        self.dense_norms = nn.ModuleList(nn.BatchNorm1d(b) for b in dense[1:])
        self.last = nn.Linear(32, 10)

    def forward(self, images):
        hidden = images
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            hidden = norm(nn.functional.max_pool2d(torch.relu(convolution(hidden)), 2))
        hidden = hidden.flatten(1)
        for dense, norm in zip(self.dense, self.dense_norms, strict=True):
            hidden = norm(torch.relu(dense(hidden)))
        return self.last(hidden)


def colour_images():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, 10, 24)
    return Dataset(images, labels, images.copy(), labels.copy(), classes=10, pixel_max=255)


def load_paper_net(net, module):
    """Copy numbers by layer: both networks have the same layers with numbers, in another order."""
    kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Linear, nn.BatchNorm1d)
    for kind in kinds:
        mine = [layer for layer in net.modules() if isinstance(layer, kind)]
        theirs = [layer for layer in module.modules() if isinstance(layer, kind)]
        for a, b in zip(mine, theirs, strict=True):
            a.load_state_dict(b.state_dict())


def test_training_cnn3_agrees_with_an_ordinary_module_buffers_included():
    data = colour_images()
    local = LocalTraining(learning_rate=0.05, batch_size=24, epochs=3)
    executor = SequentialExecutor(TrainingSetup(CNN3(), data, local, seed=3))
    net = PaperNet()
    load_paper_net(net, executor.flat.module)
    task = TrainingJob(executor.flat.layout.initial, np.arange(24), 1.0, np.random.default_rng(0))
    result = next(executor.train([task]))

    images = torch.from_numpy(data.train_x.transpose(0, 3, 1, 2) / 127.5 - 1).float()
    labels = torch.from_numpy(data.train_y.copy())
    sgd = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(3):
        sgd.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        sgd.step()
    trained = CNN3().build(data.shape, 10)
    flat = FlatModule(trained)
    flat.load(executor.flat.layout.initial + result.difference)
    expected = PaperNet()
    load_paper_net(expected, trained)
    for name, value in net.state_dict().items():
        # Sums over 24 x 30 x 30 numbers in another order, then two more steps from there.
        torch.testing.assert_close(expected.state_dict()[name].float(), value.float(), atol=1e-4, rtol=1e-3)


class Oddities(nn.Module):
    """Everything a module can hold: a tied weight, a frozen one, and buffers of several sorts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.tied = nn.Linear(3, 3, bias=False)
        self.tied.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("table", torch.arange(4))
        self.register_buffer("scratch", torch.ones(5), persistent=False)

    def forward(self, x):
        self.seen += 1
        return self.tied(self.norm(self.first(x))) * self.frozen.sum()


def test_vector_holds_parameters_then_buffers_and_the_masks_say_which():
    module = Oddities()
    names = [name for name, _ in module.named_parameters()]
    flat = FlatModule(module)
    # weight 9, bias 3, norm 3 + 3; seen 1, running mean 3 and variance 3, counter 1
    assert flat.vector.numel() == 18 + 8
    assert names == ["frozen", "first.weight", "first.bias", "norm.weight", "norm.bias"]
    assert flat.layout.parameters == 18
    assert flat.layout.constants["frozen"].tolist() == [1, 1]
    assert flat.layout.exempt.tolist() == [False] * 12 + [True] * 6 + [True] * 8
    assert flat.layout.smallest_batch == 2
    np.testing.assert_array_equal(flat.layout.initial, flat.vector.detach().numpy())


def test_loading_moves_every_number_and_training_writes_into_the_vector():
    flat = FlatModule(Oddities())
    flat.load(np.arange(26, dtype=np.float32))
    module = flat.module
    assert module.frozen.tolist() == [1, 1]
    assert module.first.weight.flatten().tolist() == list(range(9))
    assert module.tied.weight is module.first.weight
    assert module.seen.item() == 18
    assert module.norm.num_batches_tracked.item() == 25
    module.train()
    torch.autograd.backward(module(torch.randn(4, 3)).sum())
    assert flat.vector[18] == 19
    assert flat.vector[25] == 26
    assert flat.parameters.grad[:9].abs().sum() > 0


@pytest.mark.parametrize("kind", ["mlp", "cnn3"])
def test_initial_weights_come_from_the_seed_alone(kind):
    data = colour_images()
    made = []
    for seed, noise in ((1, 0), (1, 9), (2, 0)):
        torch.manual_seed(noise)
        made.append(
            SequentialExecutor(TrainingSetup(MODELS.make(kind), data, LocalTraining(), seed)).flat.layout.initial
        )
    np.testing.assert_array_equal(made[0], made[1])
    assert np.any(made[0] != made[2])
