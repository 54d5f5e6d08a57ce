"""Max-pooling before ReLU: the same numbers and gradients, while ReLU has a fraction of the work."""

from torch import nn


def pool_before_relu(module: nn.Module) -> None:
    """Exchange each ReLU and the max-pooling behind it, in sequences of layers alone.

    The maximum of ReLUs is the ReLU of the maximum, bit by bit. So is the gradient: it goes to the first of the largest
    inputs of a window if that is above 0, and else nowhere. A module with a forward pass of its own may use single
    layers of a sequence, and is left alone.
    """
    if type(module) is not nn.Sequential:
        return
    for i in range(len(module) - 1):
        first, second = module[i], module[i + 1]
        if type(first) is nn.ReLU and type(second) is nn.MaxPool2d and not second.return_indices:
            module[i], module[i + 1] = second, first
    for part in module:
        pool_before_relu(part)
