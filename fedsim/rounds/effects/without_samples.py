"""Clients without samples have nothing to do, and are never selected."""

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.tracking import AvailabilityTracker, PlainTracker
from fedsim.rounds.effects.contract import NEVER, BesidePhases


class WithoutSamples(BesidePhases):
    def __init__(self, works: BoolArray) -> None:
        self._works = works

    def free_s(self, client: IntArray, time_s: float) -> FloatArray:
        return np.where(self._works[client], time_s, NEVER)

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        return PlainTracker(lambda ids, *_: self._works[ids], client, "run")
