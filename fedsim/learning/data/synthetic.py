"""FedProx's Synthetic(a, b): made data whose users differ in what they see and in how they label it."""

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.capabilities import USERS
from fedsim.learning.data.datasets import AlwaysThere, Dataset
from fedsim.learning.data.in_files import first_ones, owners, parted
from fedsim.streams import Streams
from fedsim.units import Bound


class Synthetic(AlwaysThere):
    """Synthetic(a, b) of FedProx (Li et al., MLSys 2020, section 5.1): features, softmax labels.

    For user k: ``u_k ~ N(0, a)`` and ``B_k ~ N(0, b)``; weights and biases of its own softmax regression are draws from
    ``N(u_k, 1)``, the mean ``v_k`` of its features has entries from ``N(B_k, 1)``, and its samples are
    ``x ~ N(v_k, diag(j^-1.2))`` with the label of the largest score. As in FedProx's code, a and b are standard
    deviations. Sizes are log-normal(4, 2), rounded down, plus 50; the first nine tenths of each user are for training.
    Draws come from streams of ``seed``, not of the scenario's, so that all of its runs have the same data.

    By this law **no label depends on a**: u_k adds the same number to the score of every class. What makes users differ
    is b, and that each has weights of its own. LEAF's ``data/synthetic`` is another law.

    Attributes
    ----------
    a, b : floats >= 0
        How much the users' models differ by law, without effect on samples and labels; how much their features differ.
    users, features, classes : int
        30, 60 and 10 in FedProx.
    seed : int >= 0
    """

    provides: ClassVar[frozenset[str]] = frozenset({USERS})
    source: ClassVar[str] = "made from its options"
    place: ClassVar[str] = "made when it is loaded"

    a: Annotated[float, Field(ge=0)] = 1.0
    b: Annotated[float, Field(ge=0)] = 1.0
    users: Annotated[int, Field(ge=1, le=1000)] = 30
    features: Annotated[int, Field(ge=1, le=1000)] = 60
    classes: Annotated[int, Field(ge=2, le=1000)] = 10
    seed: Annotated[int, Field(ge=0), Bound(0, 2**63 - 1)] = 0

    def read(self) -> Dataset:
        streams = Streams(self.seed)
        x, y = zip(*(self._user(streams.generator("synthetic", k)) for k in range(self.users)), strict=True)
        train = np.concatenate([first_ones(len(labels), 0.9) for labels in y])
        samples, labels = np.concatenate(x), np.concatenate(y)
        return parted(Path("synthetic"), samples, labels, train, owners(y), classes=self.classes)

    def _user(self, draws: np.random.Generator) -> tuple[NDArray[np.float32], IntArray]:
        size = int(draws.lognormal(4.0, 2.0)) + 50
        shift, mean = draws.normal(0.0, self.a), draws.normal(0.0, self.b)
        weights = draws.normal(shift, 1.0, (self.features, self.classes))
        biases = draws.normal(shift, 1.0, self.classes)
        centre = draws.normal(mean, 1.0, self.features)
        spread = np.arange(1, self.features + 1) ** -0.6  # the standard deviation: variances are j^-1.2
        samples = (centre + spread * draws.standard_normal((size, self.features))).astype(np.float32)
        return samples, (samples @ weights + biases).argmax(axis=1)
