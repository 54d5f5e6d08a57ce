"""A part of the model that stays with each client from one training to its next."""

from typing import ClassVar

from fedsim.arrays import BoolArray, Vector
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
