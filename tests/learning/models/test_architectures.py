import itertools

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from fedsim.errors import ScenarioError
from fedsim.learning import CNN3, MLP, MODELS, Dataset, LocalTraining, Supervised, TrainingRun
from fedsim.learning.executors.contracts import TrainingSetup
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


def paper_net():
    """Return the CIFAR-10 network in the order that the facts give: ReLU, pooling, normalisation."""
    layers = []
    for inputs, outputs in itertools.pairwise([3, 32, 64, 128]):
        layers += [nn.Conv2d(inputs, outputs, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(outputs)]
    layers.append(nn.Flatten())
    for inputs, outputs in itertools.pairwise([512, 128, 64, 32]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.BatchNorm1d(outputs)]
    return nn.Sequential(*layers, nn.Linear(32, 10))


def test_cnn3_has_the_scores_gradients_and_statistics_of_the_papers_network():
    net, module, images = paper_net(), CNN3().build((3, 32, 32), 10), torch.randn(24, 3, 32, 32)
    net.load_state_dict(module.state_dict())
    found, wanted = module(images), net(images)
    torch.testing.assert_close(found, wanted)
    for one in (found, wanted):
        torch.autograd.backward(one.square().sum())
    for one, other in zip(module.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(module.state_dict(), net.state_dict())


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
    images, labels = np.zeros((2, 32, 32, 3), dtype=np.uint8), np.arange(2)
    data = Dataset(images, labels, images.copy(), labels.copy(), classes=10, pixel_max=255)
    made = []
    for seed, noise in ((1, 0), (1, 9), (2, 0)):
        torch.manual_seed(noise)
        made.append(
            SequentialExecutor(TrainingSetup(MODELS.make(kind), data, LocalTraining(), seed)).flat.layout.initial
        )
    np.testing.assert_array_equal(made[0], made[1])
    assert np.any(made[0] != made[2])
