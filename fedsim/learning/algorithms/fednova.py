"""FedNova: updates are normalised by the local steps behind them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fedsim.arrays import FloatArray
from fedsim.learning.algorithms.contracts import LocalAlgorithm, LocalSteps


class FedNova(LocalAlgorithm):
    """Normalised averaging, so that clients with more steps do not count for more than their samples.

    With the weights p_i, the update ``-eta G_i a_i`` of a client, whose gradients count as often as a_i says, and its
    norm ``|a_i|_1``, the server goes ``-eta tau_eff * sum of p_i G_i a_i / |a_i|_1`` (Wang, Liu, Liang, Joshi and Poor,
    "Tackling the objective inconsistency problem in heterogeneous federated optimization", NeurIPS 2020, section 4).
    For plain SGD of tau steps ``|a|_1`` is tau. For a momentum and for a pull it is the authors' recursion (their code,
    ``distoptim/FedNova.py``): how far steps of gradient 1 go, in units of eta. ``tau_eff`` is the mean of
    ``|a_i|_1``, and of the numbers of steps where there is a pull, as in that code. Clients send plain updates. Running
    statistics are averaged by the samples. The authors' server momentum is ``learning.server = "fedavgm"``.

    Attributes
    ----------
    mu : float >= 0
        Strength of a pull towards the server's model, as of FedProx.

    Examples
    --------
    >>> done = LocalSteps(np.array([0.5, 0.5]), np.array([2, 6]), np.array([0.1, 0.1]), momentum=0.0, pull=0.0)
    >>> FedNova().weights(done).round(6).tolist()  # tau_eff = 4: 0.5 * 4 / 2, and 0.5 * 4 / 6
    [1.0, 0.333333]
    """

    reweighs: ClassVar[bool] = True

    mu: Annotated[float, Field(ge=0)] = 0.0

    @property
    def pull(self) -> float:
        return self.mu

    def weights(self, done: LocalSteps) -> FloatArray:
        columns: Sequence[tuple[int, float]] = list(zip(done.steps.tolist(), done.learning_rate.tolist(), strict=True))
        norms = np.array([_norm(steps, rate * done.pull, done.momentum) for steps, rate in columns])
        total = done.weight.sum()
        if not total > 0:
            return done.weight
        effective = float(done.weight @ (done.steps if done.pull else norms) / total)
        return np.asarray(np.divide(done.weight * effective, norms, out=np.zeros(norms.size), where=norms > 0))


@lru_cache(maxsize=4096)
def _norm(steps: int, pulled: float, momentum: float) -> float:
    """Return how far steps of gradient 1 go, of which each step takes the share ``pulled`` back."""
    moving = far = 0.0
    for _ in range(steps):
        moving = momentum * moving + 1.0 - pulled * far
        far += moving
    return far
