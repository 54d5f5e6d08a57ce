"""How the learning rate of local training changes with rounds and steps."""

import math
from abc import ABC, abstractmethod
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from fedsim.answers import Contract, Numbers, shaped
from fedsim.arrays import FloatArray
from fedsim.registry import Component, Registry

By = Literal["round", "step"]
"""What is counted: versions of the server's model, or steps within one training; both from 0."""


class Schedule(Component, ABC):
    """A rule of the learning rate; derive from it, add options as fields, and write `factors`.

    Examples
    --------
    >>> class Halving(Schedule):
    ...     def factors(self, version, steps):
    ...         return np.full(steps, 0.5**version)
    >>> Halving().factors(version=2, steps=3).tolist()
    [0.25, 0.25, 0.25]
    >>> SCHEDULES.make({"kind": "decay", "factor": 0.5, "by": "step"}).factors(version=2, steps=3).tolist()
    [1.0, 0.5, 0.25]
    """

    @abstractmethod
    def factors(self, version: int, steps: int) -> FloatArray:
        """Return the learning rate of each step of a training over that of the settings, at least 0, shape (steps,).

        Parameters
        ----------
        version : of the server's model that the training starts from; a synchronous server counts rounds so
        steps : number of batches of the training
        """


class ConstantRate(Schedule):
    """The learning rate of the settings, always."""

    def factors(self, version: int, steps: int) -> FloatArray:
        return np.ones(steps)


class Decay(Schedule):
    """The rate is multiplied by a factor each time when a number of rounds or steps has passed.

    Attributes
    ----------
    factor : float in (0, 1]
    every : int >= 1
    by : ``"round"`` or ``"step"``
    """

    factor: Annotated[float, Field(gt=0, le=1)] = 0.99
    every: Annotated[int, Field(ge=1)] = 1
    by: By = "round"

    def factors(self, version: int, steps: int) -> FloatArray:
        return np.asarray(self.factor ** (_counted(self.by, version, steps) // self.every), dtype=np.float64)


class Cosine(Schedule):
    """The rate falls along half a cosine (Loshchilov and Hutter, "SGDR", ICLR 2017, equation 5, without restarts).

    Attributes
    ----------
    over : int >= 1
        After as many rounds or steps it is at its least, and stays there.
    least : float in [0, 1]
        The least rate, over that of the settings.
    by : ``"round"`` or ``"step"``
    """

    over: Annotated[int, Field(ge=1)] = 100
    least: Annotated[float, Field(ge=0, le=1)] = 0.0
    by: By = "round"

    def factors(self, version: int, steps: int) -> FloatArray:
        share = np.minimum(_counted(self.by, version, steps) / self.over, 1.0)
        return np.asarray(self.least + (1 - self.least) * (1 + np.cos(math.pi * share)) / 2, dtype=np.float64)


def _counted(by: By, version: int, steps: int) -> FloatArray:
    return np.full(steps, float(version)) if by == "round" else np.arange(steps, dtype=np.float64)


SCHEDULE: Final = Contract("schedule", Schedule, {"factors": Numbers(shaped("steps"), least=0)})

SCHEDULES: Final = Registry(
    "schedule",
    "fedsim.schedules",
    ("factors",),
    {
        "constant": "fedsim.learning.schedules:ConstantRate",
        "decay": "fedsim.learning.schedules:Decay",
        "cosine": "fedsim.learning.schedules:Cosine",
    },
    default="constant",
)
