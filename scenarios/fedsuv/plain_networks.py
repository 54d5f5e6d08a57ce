"""Networks of torchvision as they are, for images of any size, as FedScale takes them on CIFAR.

The kinds `resnet-18`, `mobilenet-v2` and others of fedsim have another first layer, made for 32 x 32 pixels, and need
four to fifteen times as many operations.
"""

from typing import Literal

import torch
from torch import nn
from torchvision import models

from fedsim import Component
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.settings import of_images


class PlainNetwork(Component):
    """A network of torchvision with its own first layer; images of one channel get a first layer of one channel."""

    network: Literal["resnet18", "resnet34", "mobilenet_v2", "shufflenet_v2_x2_0"]

    def build(self, shape: Shape, classes: int) -> nn.Module:
        """Return a fresh module, or raise `ScenarioError` if samples are no images of at least 16 x 16."""
        channels, _, _ = of_images(shape, self.network, 16)
        module: nn.Module = getattr(models, self.network)(weights=None, num_classes=classes)
        if channels != 3:
            first = next(part for part in module.modules() if isinstance(part, nn.Conv2d))
            first.in_channels = channels
            first.weight = nn.Parameter(torch.empty(first.out_channels, channels, *first.kernel_size))
            first.reset_parameters()
        return module
