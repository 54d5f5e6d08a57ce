"""The noise of privacy in updates that a selector reads, and what a server knows of it."""

from typing import Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray
from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Reports

Noise = Literal["as-sent", "corrected"]


def stated_energy(reports: Reports, known: BoolArray, name: str) -> FloatArray:
    """Return the expected squared norm of the noise in each update, shape (m,); 0 where none was delivered."""
    energy = np.asarray(reports.measured.get("noise_energy", np.zeros(reports.client.size)), dtype=np.float64)
    if np.isnan(energy[known]).any():
        raise SelectorError(
            f"{name}: noise = 'corrected' needs a privacy mechanism that states its noise",
            "allowed: a mechanism with noise_energy(epsilon, buffers), or noise = 'as-sent'",
        )
    return np.where(known, energy, 0.0)
