"""What a learner and a server hand one another: handles of models and of updates, and how an update is made private."""

from dataclasses import dataclass
from typing import Protocol


class Model(Protocol):
    """A server's model: the digest of its lineage, and its version.

    Examples
    --------
    >>> import numpy as np
    >>> from fedsim.learning import NoLearning
    >>> from fedsim.streams import Streams
    >>> learner = NoLearning().build(clients=3, streams=Streams(0))
    >>> learner.merge([learner.initial(), learner.initial()], np.array([0.5, 0.5])).version
    1
    """

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""
        ...

    @property
    def version(self) -> int:
        """Number of aggregations that led to it, from 0."""
        ...


class Update(Protocol):
    """What one client sends: the difference between its trained model and the model it started from.

    Examples
    --------
    >>> import numpy as np
    >>> from fedsim.learning import Supervised
    >>> from fedsim.streams import Streams
    >>> learner = Supervised(data={"kind": "digits", "train_limit": 100}).build(clients=4, streams=Streams(0))
    >>> one, same, other = learner.updates(learner.initial(), np.array([0, 0, 1]))
    >>> one.digest == same.digest, one.digest == other.digest
    (True, False)
    """

    @property
    def digest(self) -> str:
        """Hash of everything that determines the numbers."""
        ...


@dataclass(frozen=True)
class Release:
    """How an update is made private before it is sent.

    Attributes
    ----------
    epsilon : float
        What this upload costs of the client's budget.
    index : int
        Number of this release among those of the client, from 1; the noise is drawn for (client, index).

    Examples
    --------
    >>> from fedsim.privacy import PrivacyAccountant, UniformBudget
    >>> epsilon, index = PrivacyAccountant(UniformBudget(epsilon=20.0, releases=50), clients=3).charge(0)
    >>> Release(epsilon, index)
    Release(epsilon=0.4, index=1)
    """

    epsilon: float
    index: int
