"""Losses and counts of scores, in operations that torch maps over clients."""

import torch
from torch import Tensor
from torch.nn import functional


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    return -functional.log_softmax(scores, dim=-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def binary_cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Return ``log(1 + e^s) - t s`` for each score s and target t."""
    return functional.softplus(scores) - targets.to(scores.dtype) * scores


def one_hot(labels: Tensor, classes: int) -> Tensor:
    return (labels[:, None] == torch.arange(classes, device=labels.device)).float()


def joined(*parts: Tensor) -> Tensor:
    """Return arrays of n rows side by side."""
    return torch.cat(parts, dim=1)


def in_columns(*columns: Tensor) -> Tensor:
    """Return arrays of shape (n,) as the columns of one."""
    return torch.stack(columns, dim=1)
