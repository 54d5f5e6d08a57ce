"""FedBN: batch normalisation stays with the clients."""

from fedsim.arrays import BoolArray
from fedsim.errors import ScenarioError
from fedsim.learning.algorithms.personal import PersonalPart
from fedsim.learning.models.layout import ModelLayout


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
