"""SCAFFOLD: control variates of the clients and of the server correct the drift of local steps."""

from typing import ClassVar

import numpy as np

from fedsim.arrays import Vector
from fedsim.learning.algorithms.contracts import Gathered, LocalAlgorithm, LocalTask, Memory, Start, Stepped
from fedsim.learning.models.layout import ModelLayout


class Scaffold(LocalAlgorithm):
    """Each gradient gains ``c - c_i`` (Karimireddy et al., "SCAFFOLD", ICML 2020, Algorithm 1 and equations 3 to 5).

    After its K steps with learning rate eta a client sets ``c_i <- c_i - c + (x - y_i) / (K eta)``, the paper's option
    II, and the server ``c <- c + (1 / N) * sum of the changes of c_i``. All of them start at zero. The server's model
    moves as the server optimiser does, whose weights here are those of the samples; the paper's are equal.

    A model and a control variate go down, and an update and a change of control variate go up: twice the bits of the
    parameters. The server reads the change out of the update and the number of steps, as these determine it. With a
    learning rate that changes from step to step, eta is its mean. Option II supposes plain SGD without weight decay.

    Examples
    --------
    >>> Scaffold().drift_weight(steps=10, learning_rate=0.05)  # 1 / (K eta)
    2.0
    """

    corrects: ClassVar[bool] = True
    remembers: ClassVar[bool] = True
    server_keeps: ClassVar[bool] = True
    changes_messages: ClassVar[bool] = True

    def numbers_more(self, layout: ModelLayout) -> int:
        return layout.parameters

    def begin(self, task: LocalTask) -> Start:
        if not task.shared and not task.memory:
            return Start(task.model)
        zero = np.zeros(task.layout.parameters, dtype=np.float32)
        return Start(task.model, task.shared.get("control", zero) - task.memory.get("control", zero))

    def end(self, task: LocalTask, difference: Vector) -> Memory:
        parameters = task.layout.parameters
        before, common = (kept.get("control", np.zeros(parameters)) for kept in (task.memory, task.shared))
        drift = difference[:parameters] * self.drift_weight(task.steps, task.learning_rate)
        return {"control": (np.subtract(before, common, dtype=np.float64) - drift).astype(np.float32)}

    def drift_weight(self, steps: int, learning_rate: float) -> float:
        """Return ``1 / (K eta)``; 0 for a learning rate of 0, with which no model moves."""
        return 1.0 / (steps * learning_rate) if learning_rate > 0 else 0.0

    def step(self, gathered: Gathered) -> Stepped:
        parameters = gathered.layout.parameters
        before = gathered.shared.get("control", np.zeros(parameters)).astype(np.float64)
        changes = -gathered.count * before - gathered.drift[:parameters]
        return Stepped(gathered.update, {"control": (before + changes / gathered.clients).astype(np.float32)})
