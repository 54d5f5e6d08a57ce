"""Models for images; torch is imported when one is built."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr

from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.settings import MODELS, ModelPart, Trains, of_images

if TYPE_CHECKING:
    from torch import nn

Dropout = Annotated[float, Field(ge=0, lt=1)]
"""Share of numbers that become 0 in training."""


class _OfImages(Trains):
    """What models for images of a least size have in common."""

    least: ClassVar[int]

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        return self._network(*of_images(shape, MODELS.kind_of(self), self.least), classes)

    @abstractmethod
    def _network(self, channels: int, height: int, width: int, classes: int) -> "nn.Module": ...


class CNN3(_OfImages):
    """The CIFAR-10 network of the PAUSE code: three convolutions, four dense layers, batch normalisation.

    Convolutions 3 x 3 without padding to 32, 64 and 128 channels, each followed by ReLU, 2 x 2 max-pooling and
    batch normalisation; dense layers to 128, 64 and 32, each with ReLU and then batch normalisation; a dense
    layer onto the classes. 170,474 parameters on CIFAR-10. The dropout layers that the code declares but never
    applies are left out.

    Examples
    --------
    >>> sum(one.numel() for one in CNN3().build((3, 32, 32), 10).parameters())
    170474
    >>> CNN3().build((1, 8, 8), 10)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fedsim.errors.ScenarioError: learning.model: cnn3 needs images of at least 22 x 22 pixels, ...
    """

    least: ClassVar[int] = 22
    _ratio: float = PrivateAttr(1.0)

    def narrowed(self, ratio: float) -> ModelPart:
        narrow = self.model_copy()
        narrow._ratio = ratio
        return narrow

    def _network(self, channels: int, height: int, width: int, classes: int) -> "nn.Module":
        from torch import nn

        layers: list[nn.Module] = []
        for filters in (math.ceil(whole * self._ratio) for whole in (32, 64, 128)):
            # The maximum of ReLUs is the ReLU of the maximum: pooling first leaves ReLU a quarter of the work.
            layers += [nn.Conv2d(channels, filters, 3), nn.MaxPool2d(2), nn.ReLU(inplace=True), nn.BatchNorm2d(filters)]
            channels, height, width = filters, (height - 2) // 2, (width - 2) // 2
        dense = [math.ceil(whole * self._ratio) for whole in (128, 64, 32)]
        return _dense(layers, channels * height * width, dense, classes, after=nn.BatchNorm1d)


class CNN5(_OfImages):
    """The deeper CIFAR-10 network of the PAUSE code, of its later runs: five convolutions, three dense layers.

    Convolutions 3 x 3 without padding to 32, 32, 64 and 64 channels and one of 4 x 4 to 128, each with ReLU; 2 x 2
    max-pooling after the second, fourth and fifth; batch normalisation after the first, third and fourth, as the last
    of a layer; dense layers to 64 and 32 with ReLU and one onto the classes, with dropout before each. 207,754
    parameters on CIFAR-10.

    Attributes
    ----------
    dropout : float in [0, 1)
    """

    least: ClassVar[int] = 32

    dropout: Dropout = 0.2

    def _network(self, channels: int, height: int, width: int, classes: int) -> "nn.Module":
        from torch import nn

        layers: list[nn.Module] = []
        for number, (filters, kernel) in enumerate(((32, 3), (32, 3), (64, 3), (64, 3), (128, 4)), 1):
            layers.append(nn.Conv2d(channels, filters, kernel))
            height, width = height - kernel + 1, width - kernel + 1
            if number in (2, 4, 5):
                layers.append(nn.MaxPool2d(2))
                height, width = height // 2, width // 2
            layers.append(nn.ReLU(inplace=True))
            if number in (1, 3, 4):
                layers.append(nn.BatchNorm2d(filters))
            channels = filters
        return _dense(layers, channels * height * width, (64, 32), classes, dropout=self.dropout)


class FedSamplingCNN(_OfImages):
    """The image network of the FedSampling code (Qi et al., IJCAI 2023): two convolutions, four dense layers, dropout.

    Convolutions 5 x 5 without padding to 32 and 128 channels, without activation, each with 2 x 2 max-pooling and
    dropout; three dense layers to 512 with ReLU and dropout, and one onto the classes. 1,709,566 parameters on EMNIST's
    62 classes. The code divides pixels by 255; here they lie in [-1, 1] as for all models.

    Attributes
    ----------
    dropout : float in [0, 1)
    """

    least: ClassVar[int] = 16

    dropout: Dropout = 0.2

    def _network(self, channels: int, height: int, width: int, classes: int) -> "nn.Module":
        from torch import nn

        layers: list[nn.Module] = []
        for filters in (32, 128):
            layers += [nn.Conv2d(channels, filters, 5), nn.MaxPool2d(2), nn.Dropout(self.dropout)]
            channels, height, width = filters, (height - 4) // 2, (width - 4) // 2
        inputs = channels * height * width
        return _dense(layers, inputs, (512, 512, 512), classes, after=lambda _: nn.Dropout(self.dropout))


class _OfTorchvision(_OfImages):
    """What networks of torchvision with a first layer of 3 x 3 and stride 1 have in common."""

    least: ClassVar[int] = 28
    name: ClassVar[str]
    first: ClassVar[str] = "conv1"
    """The first layer, which preserves height and width here."""

    def _network(self, channels: int, height: int, width: int, classes: int) -> "nn.Module":
        import torchvision
        from torch import nn

        module: nn.Module = getattr(torchvision.models, self.name)(weights=None, num_classes=classes)
        first: Any = module.get_submodule(self.first)
        stem = nn.Conv2d(channels, first.out_channels, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(stem.weight, mode="fan_out", nonlinearity="relu")  # as torchvision's residual networks
        module.set_submodule(self.first, stem)
        if hasattr(module, "maxpool"):
            module.maxpool = nn.Identity()
        return module


class ResNet18(_OfTorchvision):
    """torchvision's ResNet-18 (He et al. 2016) with a stem for small images.

    The first layer is 3 x 3 with stride 1 instead of 7 x 7 with stride 2, and there is no max-pooling behind it:
    32 x 32 pixels become 4 x 4 places. 11,173,962 parameters on CIFAR-10.
    """

    name: ClassVar[str] = "resnet18"


class ResNet34(_OfTorchvision):
    """torchvision's ResNet-34 (He et al. 2016) with the stem of `ResNet18`; 21,282,122 parameters on CIFAR-10."""

    name: ClassVar[str] = "resnet34"


class MobileNetV2(_OfTorchvision):
    """torchvision's MobileNetV2 (Sandler et al. 2018) with a first layer of stride 1 instead of 2.

    It has no max-pooling; 32 x 32 pixels become 2 x 2 places. 2,236,682 parameters on CIFAR-10.
    """

    name: ClassVar[str] = "mobilenet_v2"
    first: ClassVar[str] = "features.0.0"


class ShuffleNetV2(_OfTorchvision):
    """torchvision's ShuffleNetV2 of width 1 (Ma et al. 2018) with a stem for small images.

    The first layer has stride 1 instead of 2, and there is no max-pooling behind it: 32 x 32 pixels become 4 x 4
    places. 1,263,854 parameters on CIFAR-10.
    """

    name: ClassVar[str] = "shufflenet_v2_x1_0"
    first: ClassVar[str] = "conv1.0"


def _dense(
    layers: "Iterable[nn.Module]",
    inputs: int,
    widths: Iterable[int],
    classes: int,
    *,
    dropout: float | None = None,
    after: "Callable[[int], nn.Module] | None" = None,
) -> "nn.Module":
    """Return layers with dense ones behind them, which have dropout before or another layer after each."""
    from torch import nn

    before = [] if dropout is None else [nn.Dropout(dropout)]
    found = [*layers, nn.Flatten()]
    for outputs in widths:
        found += [*before, nn.Linear(inputs, outputs), nn.ReLU(inplace=True), *([after(outputs)] if after else [])]
        inputs = outputs
    return nn.Sequential(*found, *before, nn.Linear(inputs, classes))
