"""FedProx's Synthetic(a, b): made data whose users differ in what they see and in how they label it."""

import functools
from pathlib import Path
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field

from fedsim.capabilities import USERS
from fedsim.learning.data.datasets import AlwaysThere, Dataset
from fedsim.learning.data.in_files import first_ones
from fedsim.streams import Streams
from fedsim.units import Bound

_TRAIN: Final = 0.9
_LEAST: Final = 50
"""Samples that each user has beside those drawn."""


class Synthetic(AlwaysThere):
    """Synthetic(a, b) of FedProx (Li et al., MLSys 2020, section 5.1): features, softmax labels.

    LEAF's own generator, ``data/synthetic``, is another law: it draws clusters of users and has no a and b.

    For user k: ``u_k ~ N(0, a)`` and ``B_k ~ N(0, b)``; weights and biases of its own softmax regression are draws from
    ``N(u_k, 1)``, the mean ``v_k`` of its features has entries from ``N(B_k, 1)``, and its samples are
    ``x ~ N(v_k, diag(j^-1.2))`` with the label of the largest score. Sizes are log-normal(4, 2), rounded down, plus 50.
    As in FedProx's code, a and b are standard deviations.

    By this law **no label depends on a**: u_k adds the same number to the score of every class of a sample, so that the
    largest one stays the largest. Sets that differ in a alone are equal; what makes users differ is b, and that each
    has weights of its own. The option stands here since publications name such sets by both numbers.

    The first nine tenths of each user are
    for training. Draws come from streams of ``seed``, which is not that of the scenario, so that all of its runs have
    the same data.

    Attributes
    ----------
    a : float >= 0
        How much the users' models differ by law; without effect on samples and labels.
    b : float >= 0
        How much their features differ.
    users : int >= 1
        30 in FedProx.
    features : int >= 1
    classes : int >= 2
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

    def load(self, data_dir: Path | None = None) -> Dataset:
        return self.limited(_made(self.model_copy(update={"train_limit": None})))


@functools.lru_cache(maxsize=2)
def _made(of: Synthetic) -> Dataset:
    streams = Streams(of.seed)
    x, y, user, train = [], [], [], []
    spread = np.arange(1, of.features + 1) ** -0.6  # the standard deviation: variances are j^-1.2
    for k in range(of.users):
        draws = streams.generator("synthetic", k)
        size = int(draws.lognormal(4.0, 2.0)) + _LEAST
        shift, mean = draws.normal(0.0, of.a), draws.normal(0.0, of.b)
        weights = draws.normal(shift, 1.0, (of.features, of.classes))
        biases = draws.normal(shift, 1.0, of.classes)
        centre = draws.normal(mean, 1.0, of.features)
        samples = (centre + spread * draws.standard_normal((size, of.features))).astype(np.float32)
        x.append(samples)
        y.append((samples @ weights + biases).argmax(axis=1))
        user.append(np.full(size, k, dtype=np.int64))
        train.append(first_ones(size, _TRAIN))
    samples, labels, owner, chosen = (np.concatenate(parts) for parts in (x, y, user, train))
    return Dataset(
        *(samples[chosen], labels[chosen], samples[~chosen], labels[~chosen]),
        classes=of.classes,
        train_users=owner[chosen],
    )
