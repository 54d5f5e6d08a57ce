"""Images of a training batch, changed at random."""

import torch
from torch import Generator, Tensor
from torch.nn import functional


def moved(images: Tensor, generator: Generator, *, flip: bool, shift: int) -> Tensor:
    """Return images of shape (n, channels, height, width), each mirrored with a chance of one half, and moved."""
    count, _, height, width = images.shape
    if flip:
        mirrored = torch.rand(count, generator=generator) < 0.5
        images = torch.where(mirrored[:, None, None, None], images.flip(3), images)
    if not shift:
        return images
    down, aside = torch.randint(0, 2 * shift + 1, (2, count), generator=generator)
    padded = functional.pad(images, (shift, shift, shift, shift))
    rows = (down[:, None] + torch.arange(height))[:, :, None]
    columns = (aside[:, None] + torch.arange(width))[:, None, :]
    return padded.permute(0, 2, 3, 1)[torch.arange(count)[:, None, None], rows, columns].permute(0, 3, 1, 2)
