"""Models for images beside those of the PAUSE figures; torch is imported when one is built."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.settings import Trains, of_images

if TYPE_CHECKING:
    from torch import nn

Dropout = Annotated[float, Field(ge=0, lt=1)]
"""Share of numbers that become 0 in training."""


class CNN5(Trains):
    """The deeper CIFAR-10 network of the PAUSE code, of its later runs: five convolutions, three dense layers.

    Convolutions 3 x 3 without padding to 32, 32, 64 and 64 channels and one of 4 x 4 to 128, each with ReLU; 2 x 2
    max-pooling after the second, fourth and fifth; batch normalisation after the first, third and fourth, as the last
    of a layer; dense layers to 64 and 32 with ReLU and one onto the classes, with dropout before each. 207,754
    parameters on CIFAR-10.

    Attributes
    ----------
    dropout : float in [0, 1)
    """

    dropout: Dropout = 0.2

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        image = of_images(shape, "cnn5", 32)
        from fedsim.learning.models.architectures import cnn5

        return cnn5(image, classes, self.dropout)


class FedSamplingCNN(Trains):
    """The image network of the FedSampling code (Qi et al., IJCAI 2023): two convolutions, four dense layers, dropout.

    Convolutions 5 x 5 without padding to 32 and 128 channels, without activation, each with 2 x 2 max-pooling and
    dropout; three dense layers to 512 with ReLU and dropout, and one onto the classes. 1,709,566 parameters on EMNIST's
    62 classes. The code divides pixels by 255; here they lie in [-1, 1] as for all models.

    Attributes
    ----------
    dropout : float in [0, 1)
    """

    dropout: Dropout = 0.2

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        image = of_images(shape, "fedsampling-cnn", 16)
        from fedsim.learning.models.architectures import fedsampling_cnn

        return fedsampling_cnn(image, classes, self.dropout)


class ResNet18(Trains):
    """torchvision's ResNet-18 (He et al. 2016) with a stem for small images.

    The first layer is 3 x 3 with stride 1 instead of 7 x 7 with stride 2, and there is no max-pooling behind it:
    32 x 32 pixels become 4 x 4 places. 11,173,962 parameters on CIFAR-10.
    """

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        channels, _, _ = of_images(shape, "resnet-18", 28)
        from fedsim.learning.models.vision import resnet

        return resnet(channels, classes, 18)


class ResNet34(Trains):
    """torchvision's ResNet-34 (He et al. 2016) with the stem of `ResNet18`; 21,282,122 parameters on CIFAR-10."""

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        channels, _, _ = of_images(shape, "resnet-34", 28)
        from fedsim.learning.models.vision import resnet

        return resnet(channels, classes, 34)


class MobileNetV2(Trains):
    """torchvision's MobileNetV2 (Sandler et al. 2018) with a first layer of stride 1 instead of 2.

    It has no max-pooling; 32 x 32 pixels become 2 x 2 places. 2,236,682 parameters on CIFAR-10.
    """

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        channels, _, _ = of_images(shape, "mobilenet-v2", 28)
        from fedsim.learning.models.vision import mobilenet

        return mobilenet(channels, classes)


class ShuffleNetV2(Trains):
    """torchvision's ShuffleNetV2 of width 1 (Ma et al. 2018) with a stem for small images.

    The first layer has stride 1 instead of 2, and there is no max-pooling behind it: 32 x 32 pixels become 4 x 4
    places. 1,263,854 parameters on CIFAR-10.
    """

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        channels, _, _ = of_images(shape, "shufflenet-v2", 28)
        from fedsim.learning.models.vision import shufflenet

        return shufflenet(channels, classes)
