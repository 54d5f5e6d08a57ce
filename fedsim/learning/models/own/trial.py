"""A first look at what a user's own module says, before a run begins."""

import copy

import torch
from torch import Tensor, nn

from fedsim.answers import FAILURES, attributed, failed
from fedsim.errors import FedsimError, PartError
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.inputs import blank


def check_scores(module: nn.Module, name: str, shape: Shape, outputs: int) -> None:
    """Refuse a module that fails on a blank sample, or whose scores are not as many as the task asks for.

    Parameters
    ----------
    module : of the user's own, of which a copy is tried
    name : of the model, for messages
    shape : of a sample
    outputs : numbers along the last axis of the scores

    Raises
    ------
    PartError
        If it is such a module.
    """
    tried = copy.deepcopy(module).eval()
    try:
        with torch.no_grad():
            found = tried(blank(shape))
    except FedsimError:
        raise
    except FAILURES as failure:
        raise attributed(failure) or failed(f"model {name}", "forward", failure) from failure
    allowed = f"allowed: a tensor of shape (n, {outputs}) or (n, ..., {outputs}) for n samples, as the task asks for"
    if not isinstance(found, Tensor):
        raise PartError(f"model {name} gave {type(found).__name__}", allowed)
    if found.shape[:1] != (1,) or (found.shape[-1] != outputs and outputs > 1):
        raise PartError(f"model {name} gave scores of shape {tuple(found.shape)} for one sample", allowed)
