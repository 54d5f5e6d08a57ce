"""What the tables say of the releases of a run: noise, sensitivity, clipping norm, and delta."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.privacy.central import NoiseAtServer
from fedsim.privacy.composition import Composition
from fedsim.privacy.mechanisms import MECHANISM, CalibratedNoise, Mechanism


@dataclass(frozen=True)
class ReleaseFacts:
    """What is known of a run's releases; NaN for what a mechanism of the user's own does not state."""

    mechanism: Mechanism
    composition: Composition | None = None
    server: NoiseAtServer | None = None

    def columns(self, epsilon: FloatArray, number: IntArray) -> dict[str, NDArray[Any] | float]:
        """Return the columns of releases by name, each a number or one element per release."""
        found: dict[str, NDArray[Any] | float]
        found = dict.fromkeys(("clipping_norm", "sensitivity", "noise_scale", "delta"), np.nan)
        if isinstance(self.mechanism, CalibratedNoise):
            calibrated = MECHANISM.checked(self.mechanism)
            found |= {"clipping_norm": calibrated.clipping_norm, "delta": np.minimum(number * calibrated.delta, 1.0)}
            if self.server is None:
                # Few costs differ: they are terms of one budget.
                costs, place = np.unique(epsilon, return_inverse=True)
                scale = np.array([calibrated.scale(cost) for cost in costs.tolist()])[place]
                found |= {"sensitivity": calibrated.sensitivity, "noise_scale": scale}
        if self.composition is not None:
            found["delta"] = self.composition.delta
        return found
