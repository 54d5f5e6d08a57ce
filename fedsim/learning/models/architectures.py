"""The networks behind the models that a scenario can name."""

import itertools
import math
from collections.abc import Sequence

from torch import nn

_KERNEL, _POOL, _WIDE = 3, 2, 5


def mlp(numbers: int, classes: int, hidden: Sequence[int]) -> nn.Module:
    widths = [numbers, *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.Linear(widths[-1], classes))


def cnn3(shape: tuple[int, int, int], classes: int, ratio: float = 1.0) -> nn.Module:
    channels, height, width = shape
    layers: list[nn.Module] = []
    for filters in (math.ceil(width * ratio) for width in (32, 64, 128)):
        # The maximum of ReLUs is the ReLU of the maximum: pooling first leaves ReLU a quarter of the work.
        layers += [
            nn.Conv2d(channels, filters, _KERNEL),
            nn.MaxPool2d(_POOL),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(filters),
        ]
        channels = filters
        height, width = ((side - _KERNEL + 1) // _POOL for side in (height, width))
    layers.append(nn.Flatten())
    inputs = channels * height * width
    for outputs in (math.ceil(width * ratio) for width in (128, 64, 32)):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True), nn.BatchNorm1d(outputs)]
        inputs = outputs
    return nn.Sequential(*layers, nn.Linear(inputs, classes))


def cnn5(shape: tuple[int, int, int], classes: int, dropout: float) -> nn.Module:
    channels, height, width = shape
    layers: list[nn.Module] = []
    for number, (filters, kernel) in enumerate(((32, 3), (32, 3), (64, 3), (64, 3), (128, 4)), 1):
        layers.append(nn.Conv2d(channels, filters, kernel))
        height, width = height - kernel + 1, width - kernel + 1
        if number in (2, 4, 5):
            layers.append(nn.MaxPool2d(_POOL))
            height, width = height // _POOL, width // _POOL
        layers.append(nn.ReLU(inplace=True))
        if number in (1, 3, 4):
            layers.append(nn.BatchNorm2d(filters))
        channels = filters
    layers.append(nn.Flatten())
    inputs = channels * height * width
    for outputs in (64, 32):
        layers += [nn.Dropout(dropout), nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
        inputs = outputs
    return nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(inputs, classes))


def fedsampling_cnn(shape: tuple[int, int, int], classes: int, dropout: float) -> nn.Module:
    channels, height, width = shape
    layers: list[nn.Module] = []
    for filters in (32, 128):
        layers += [nn.Conv2d(channels, filters, _WIDE), nn.MaxPool2d(_POOL), nn.Dropout(dropout)]
        channels, height, width = filters, (height - _WIDE + 1) // _POOL, (width - _WIDE + 1) // _POOL
    layers.append(nn.Flatten())
    inputs = channels * height * width
    for outputs in (512, 512, 512):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True), nn.Dropout(dropout)]
        inputs = outputs
    return nn.Sequential(*layers, nn.Linear(inputs, classes))
