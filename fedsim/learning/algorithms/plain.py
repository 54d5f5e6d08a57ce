"""Plain local training, and training with a pull towards the start."""

from typing import Annotated

from pydantic import Field

from fedsim.learning.algorithms.contracts import LocalAlgorithm


class Plain(LocalAlgorithm):
    """Plain steps of the optimiser on the loss of the data, as in FedAvg (McMahan et al., AISTATS 2017, Algorithm 1).

    ``learning.local.proximal`` still counts.

    Examples
    --------
    >>> Plain().pull, Plain().ratios, Plain().remembers  # no pull, the whole model, no memory
    (0.0, (1.0,), False)
    """


class FedProx(LocalAlgorithm):
    """The loss gains ``mu / 2 * |w - w_server|^2``.

    It is equation 2 of Li et al., "Federated optimization in heterogeneous networks", MLSys 2020, which tunes mu over
    0.001, 0.01, 0.1 and 1. It is the same as ``learning.local.proximal``, bit by bit. The paper's other half, partial
    work of slow clients, is the late rule ``partial``.

    Attributes
    ----------
    mu : float >= 0

    Examples
    --------
    >>> FedProx(mu=0.1).pull  # each gradient gains 0.1 (w - w_server)
    0.1
    >>> FedProx(mu=0.1).numbers_more(None), FedProx(mu=0.1).changes_messages  # messages are those of plain training
    (0, False)
    """

    mu: Annotated[float, Field(ge=0)] = 0.01

    @property
    def pull(self) -> float:
        return self.mu
