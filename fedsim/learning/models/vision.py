"""Networks of torchvision for images of 32 x 32 pixels, with another first layer."""

from typing import Final, cast

from torch import nn
from torchvision.models import mobilenet_v2, resnet18, resnet34, shufflenet_v2_x1_0

_RESNETS: Final = {18: resnet18, 34: resnet34}


def resnet(channels: int, classes: int, layers: int) -> nn.Module:
    module = _RESNETS[layers](weights=None, num_classes=classes)
    module.conv1 = _stem(channels, module.conv1.out_channels)
    module.maxpool = nn.Identity()
    return cast(nn.Module, module)


def mobilenet(channels: int, classes: int) -> nn.Module:
    module = mobilenet_v2(weights=None, num_classes=classes)
    module.features[0][0] = _stem(channels, module.features[0][0].out_channels)
    return cast(nn.Module, module)


def shufflenet(channels: int, classes: int) -> nn.Module:
    module = shufflenet_v2_x1_0(weights=None, num_classes=classes)
    module.conv1[0] = _stem(channels, module.conv1[0].out_channels)
    module.maxpool = nn.Identity()
    return cast(nn.Module, module)


def _stem(channels: int, filters: int) -> nn.Conv2d:
    """Return a first layer that preserves height and width, initialised as torchvision's residual networks."""
    layer = nn.Conv2d(channels, filters, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer
