"""Noise of privacy that is larger than any update can be, as is known without training."""

from typing import Final

import numpy as np

from fedsim.code_digest import is_builtin
from fedsim.privacy.mechanisms import CalibratedNoise, StatedNoise
from fedsim.scenario.scenario import Scenario
from fedsim.scenario.update_numbers import cohort_of

_LARGE: Final = 1e9
_BITS: Final = 32.0
"""Of a number of a model."""


def drowned(scenario: Scenario, model_bits: float | None) -> tuple[str, ...]:
    """Return a sentence if the noise of the first release exceeds what is learned, even from equal updates."""
    privacy, cohort = scenario.privacy, cohort_of(scenario.selector)
    if privacy is None or privacy.composition is not None or not model_bits:
        return ()
    if not is_builtin(type(privacy.mechanism)) or not is_builtin(type(privacy.budget)):
        return ()
    epsilon, numbers = float(privacy.budget.term(1)), int(model_bits / _BITS)
    none, one = np.zeros(numbers, dtype=np.bool_), np.zeros(numbers, dtype=np.float32)
    one[:1] = _LARGE
    noise, clipping = privacy.applied(), privacy.mechanism
    if not isinstance(noise, StatedNoise) or not isinstance(clipping, CalibratedNoise):
        return ()
    largest = max(
        float(np.square(clipping.clipped(raw, none)).sum()) for raw in (one, np.full(numbers, _LARGE, dtype=np.float32))
    )
    clients = min(cohort, scenario.crowd.clients) if isinstance(cohort, int) else scenario.crowd.clients
    drawn = clients**2 if privacy.where == "server" else clients
    ratio = float(noise.noise_energy(epsilon, none)) / (drawn * largest)
    if not 1.0 < ratio < np.inf:
        return ()
    return (
        f"privacy: noise is larger than what is learned: with epsilon = {epsilon:.3g} in the first round and "
        f"{numbers:,} numbers, the noise in a mean of {clients} updates has at least {ratio:.3g} times the energy of "
        "clipped updates that are all alike; a greater epsilon, a larger cohort or a smaller model lowers it",
    )
