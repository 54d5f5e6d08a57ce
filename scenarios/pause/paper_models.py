"""MNIST's network as PAUSE's section V-A has it: three convolutions, then three dense layers of at most 32 neurons."""

from torch import nn

from fedsim import Component
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.settings import of_images

CHANNELS = (8, 16, 32)
"""The paper does not say how many; they double as those of its CIFAR-10 network."""
DENSE = (32, 16)


class PaperMnist(Component):
    """Three convolutions 3 x 3, each with ReLU, pooling and batch normalisation as for CIFAR-10; dense 32-16-10."""

    def build(self, shape: Shape, classes: int) -> nn.Module:
        """Return a fresh module, or raise `ScenarioError` if samples are no images of at least 22 x 22."""
        inputs, height, width = of_images(shape, "PaperMnist", 22)
        layers: list[nn.Module] = []
        for outputs in CHANNELS:
            layers += [nn.Conv2d(inputs, outputs, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(outputs)]
            inputs, height, width = outputs, (height - 2) // 2, (width - 2) // 2
        layers.append(nn.Flatten())
        inputs *= height * width
        for outputs in DENSE:
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
            inputs = outputs
        return nn.Sequential(*layers, nn.Linear(inputs, classes))
