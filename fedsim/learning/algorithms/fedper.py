"""FedPer: the last layers stay with the clients."""

from typing import Annotated

import numpy as np
from pydantic import Field

from fedsim.arrays import BoolArray
from fedsim.errors import ScenarioError
from fedsim.learning.algorithms.personal import PersonalPart
from fedsim.learning.models.layout import ModelLayout


class FedPer(PersonalPart):
    """Personal last layers (Arivazhagan et al., "Federated learning with personalization layers", 2019, section 3).

    A client receives and sends all but its last layers, which it keeps from one training to its next. They start from
    those of the first model of the run. As in the paper each client's own model is evaluated, on local test samples.

    Attributes
    ----------
    layers : int >= 1
        How many of the dense or convolutional layers that are executed last are personal, with what follows them.

    Examples
    --------
    >>> from fedsim.learning.models.layout import Entry
    >>> entries = (Entry("first", 0, (2, 2), "float32"), Entry("last", 4, (1, 2), "float32"))
    >>> layout = ModelLayout(np.zeros(6, dtype=np.float32), 6, np.zeros(6, dtype=bool), 1, entries)
    >>> FedPer(layers=1).part(layout).tolist()  # the last layer stays with the client
    [True, True, True, True, False, False]
    """

    layers: Annotated[int, Field(ge=1)] = 1

    def part(self, layout: ModelLayout) -> BoolArray:
        layers = layout.layers
        last = {entry.offset: entry for entry in layers if len(entry.shape) > 1}
        weights = [entry for entry in layers if last.get(entry.offset) is entry]
        if len(weights) <= self.layers:
            raise ScenarioError(
                f"learning.algorithm.layers: {self.layers} is not allowed with a model of {len(weights)} layers that "
                "are trained, each weight counted once; allowed: fewer than its layers"
            )
        first = layers.index(weights[-self.layers])
        shared = np.ones(layout.initial.size, dtype=np.bool_)
        for entry in layers[first:]:
            shared[entry.offset : entry.offset + int(np.prod(entry.shape, dtype=np.int64))] = False
        return shared
