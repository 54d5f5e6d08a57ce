"""Networks of torchvision as they are, for images of any size, as FedScale takes them on CIFAR.

The kinds `resnet-18`, `mobilenet-v2` and others of fedsim have another first layer, made for 32 x 32 pixels, and need
four to fifteen times as many operations.
"""

from typing import TYPE_CHECKING, Literal

from fedsim import Component
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.settings import of_images

if TYPE_CHECKING:
    from torch import nn


class PlainNetwork(Component):
    """A network of torchvision with its own first layer; images of one channel get a first layer of one channel."""

    network: Literal["resnet18", "resnet34", "mobilenet_v2", "shufflenet_v2_x2_0"]

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        """Return a fresh module, or raise `ScenarioError` if samples are no images of at least 16 x 16."""
        channels, _, _ = of_images(shape, self.network, 16)
        from torch import nn
        from torchvision import models

        module: nn.Module = getattr(models, self.network)(weights=None, num_classes=classes)
        if channels != 3:
            _take_channels(module, channels)
        return module


def _take_channels(module: "nn.Module", channels: int) -> None:
    """Replace the first convolution of a network by one for another number of channels."""
    from torch import nn

    name, first = next((name, part) for name, part in module.named_modules() if isinstance(part, nn.Conv2d))
    where, _, last = name.rpartition(".")
    setattr(
        module.get_submodule(where),
        last,
        nn.Conv2d(
            channels,
            first.out_channels,
            first.kernel_size,  # type: ignore[arg-type]
            first.stride,  # type: ignore[arg-type]
            first.padding,  # type: ignore[arg-type]
            bias=False,
        ),
    )
