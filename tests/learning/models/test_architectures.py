import itertools

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from fedsim.learning import CNN3, MLP, MODELS, Dataset, LocalTraining
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor


@pytest.mark.parametrize("wrong", [[0], [2.5], 7])
def test_what_is_no_list_of_widths_is_refused(wrong):
    with pytest.raises(ValidationError):
        MLP.model_validate({"hidden": wrong})


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
