"""How many floating-point operations a model costs, counted on the model itself."""

from typing import TYPE_CHECKING

import torch
from torch.utils.flop_counter import FlopCounterMode

if TYPE_CHECKING:
    from fedsim.learning.models import ModelPart, Shape

FORWARD_AND_BACKWARD = 3


def training_flops(model: "ModelPart", shape: "Shape", classes: int) -> float:
    """Return the floating-point operations of one sample in training: three times those forward.

    Forward they are counted by torch while a blank image passes through a fresh module: two for each multiply-add
    of a dense or convolutional layer; the rest is not counted, as is usual. The backward pass computes the gradient
    with respect to a layer's inputs and its weights, two products of the same size (Kaplan et al., "Scaling laws
    for neural language models", 2020, section 2.1).

    Parameters
    ----------
    model : settings of the model
    shape : channels, height, width of an image
    classes : number of classes
    """
    with torch.random.fork_rng(devices=[]):
        module = model.build(shape, classes).eval()
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        module(torch.zeros((1, *shape)))
    return float(FORWARD_AND_BACKWARD * counter.get_total_flops())
