"""Plain local training."""

from fedsim.learning.algorithms.contracts import LocalAlgorithm


class Plain(LocalAlgorithm):
    """Plain steps of the optimiser on the loss of the data, as in FedAvg (McMahan et al., AISTATS 2017, Algorithm 1).

    ``learning.local.proximal`` still counts.

    Examples
    --------
    >>> Plain().pull, Plain().ratios, Plain().remembers  # no pull, the whole model, no memory
    (0.0, (1.0,), False)
    """
