"""What tasks compute by torch, which is imported with the first batch: losses and counts, and moved images.

The operations are some that torch maps over clients.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor


def cross_entropy(scores: "Tensor", labels: "Tensor") -> "Tensor":
    return -scores.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def binary_cross_entropy(scores: "Tensor", targets: "Tensor") -> "Tensor":
    """Return ``log(1 + e^s) - t s`` for each score s and target t."""
    from torch.nn import functional

    return functional.softplus(scores) - targets.to(scores.dtype) * scores


def one_hot(labels: "Tensor", classes: int) -> "Tensor":
    import torch

    return (labels[:, None] == torch.arange(classes, device=labels.device)).float()


def joined(*parts: "Tensor") -> "Tensor":
    import torch

    return torch.cat(parts, dim=1)


def in_columns(*columns: "Tensor") -> "Tensor":
    import torch

    return torch.stack(columns, dim=1)


def moved(images: "Tensor", generator: "Generator", *, flip: bool, shift: int) -> "Tensor":
    """Return images of shape (n, channels, height, width), each mirrored with a chance of one half, and moved."""
    import torch

    count, _, height, width = images.shape
    if flip:
        mirrored = torch.rand(count, generator=generator) < 0.5
        images = torch.where(mirrored[:, None, None, None], images.flip(3), images)
    if not shift:
        return images
    down, aside = torch.randint(0, 2 * shift + 1, (2, count), generator=generator)
    padded = torch.nn.functional.pad(images, (shift, shift, shift, shift))
    rows = (down[:, None] + torch.arange(height))[:, :, None]
    columns = (aside[:, None] + torch.arange(width))[:, None, :]
    return padded.permute(0, 2, 3, 1)[torch.arange(count)[:, None, None], rows, columns].permute(0, 3, 1, 2)
