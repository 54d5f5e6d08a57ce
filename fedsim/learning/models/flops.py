"""How many floating-point operations a model costs, counted on the model itself."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedsim.learning.local_training import FORWARD_AND_BACKWARD
from fedsim.learning.models.settings import ModelPart, Shape


def training_flops(model: ModelPart, shape: Shape, classes: int) -> float:
    """Return the floating-point operations of one sample in training: three times those forward.

    Forward they are counted by torch while a blank image passes through a fresh module: two for each multiply-add
    of a dense or convolutional layer; the rest is not counted, as is usual. For the three see
    `fedsim.learning.local_training.FORWARD_AND_BACKWARD`.

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
