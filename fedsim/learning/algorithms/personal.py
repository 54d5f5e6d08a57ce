"""A part of the model stays with each client from one training to its next: FedPer and FedBN."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import BoolArray, Vector
from fedsim.errors import ScenarioError
from fedsim.learning.algorithms.contracts import LocalAlgorithm, LocalTask, Memory, Start
from fedsim.learning.models.layout import ModelLayout


class PersonalPart(LocalAlgorithm):
    """What has a `part` shares it alone; all other numbers start from those of the first model of the run."""

    remembers: ClassVar[bool] = True
    changes_messages: ClassVar[bool] = True
    personal: ClassVar[bool] = True

    def begin(self, task: LocalTask) -> Start:
        return Start(self.own_model(task.layout, task.model, task.memory))

    def own_model(self, layout: ModelLayout, model: Vector, memory: Memory) -> Vector:
        if not memory:
            return model
        own = model.copy()
        own[self._own(layout)] = memory["personal"]
        return own

    def end(self, task: LocalTask, difference: Vector) -> Memory:
        personal = self._own(task.layout)
        before = task.memory["personal"] if task.memory else task.model[personal]
        return {"personal": before + difference[personal]}

    def _own(self, layout: ModelLayout) -> BoolArray:
        shared = self.part(layout)
        if shared is None:
            raise NotImplementedError(f"{type(self).__name__}.part")
        return ~shared


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


class FedBN(PersonalPart):
    """Local batch normalisation (Li, Jiang, Zhang, Kamp and Dou, "FedBN", ICLR 2021, Algorithm 1).

    A client receives and sends all but the weights, biases and running statistics of batch normalisation, which it
    keeps from one training to its next.

    Examples
    --------
    >>> import numpy as np
    >>> layout = ModelLayout(np.zeros(4, dtype=np.float32), 3, np.array([False, True, True, True]), 2)
    >>> FedBN().part(layout).tolist()  # one weight, then a scale, a shift and a mean
    [True, False, False, False]
    """

    def part(self, layout: ModelLayout) -> BoolArray:
        if not layout.exempt.any():
            raise ScenarioError(
                "learning.algorithm: 'fedbn' keeps batch normalisation with the clients, and this model has none; "
                "allowed: a model with it, such as cnn3"
            )
        return ~layout.exempt
