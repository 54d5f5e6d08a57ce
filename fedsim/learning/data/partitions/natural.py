"""The users of a data set as clients."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.capabilities import USERS
from fedsim.errors import ScenarioError
from fedsim.learning.data.partitions.contracts import Split
from fedsim.streams import Streams


class NaturalPartition(Split):
    """Each client is a user of the data set, such as a writer or a speaker, and has all samples of this user.

    Where there are more users than clients, some of them become clients; samples of the others are left over. Where
    there are fewer, the last clients have no samples.

    Attributes
    ----------
    choose : ``"random"``, ``"largest"`` or ``"first"``
        Which users become clients: drawn at random, those with most samples (of equal ones the first), or the first
        ones. The first of them is client 0.
    min_samples : int >= 1
        Users with fewer training samples are left out (21 and 32 in FedScale's configurations).
    """

    requires: ClassVar[frozenset[str]] = frozenset({USERS})

    choose: Literal["random", "largest", "first"] = "random"
    min_samples: Annotated[int, Field(ge=1)] = 1

    def count(self, users: IntArray) -> int:
        """Return how many users have samples enough to become clients."""
        return int(np.count_nonzero(np.unique(users, return_counts=True)[1] >= self.min_samples))

    def assign(
        self, labels: IntArray, classes: int, clients: int, streams: Streams, users: IntArray | None = None
    ) -> list[IntArray]:
        if users is None:
            raise ScenarioError("learning.split: 'natural' divides by users, and none are given")
        order = np.argsort(users, kind="stable")
        _, starts = np.unique(users[order], return_index=True)
        by_user = [part for part in np.split(order, starts[1:]) if part.size >= self.min_samples]
        chosen = np.arange(len(by_user))
        if self.choose == "random":
            chosen = streams.generator("split").permutation(chosen)
        elif self.choose == "largest":
            chosen = np.argsort([-part.size for part in by_user], kind="stable")
        parts = [by_user[user] for user in chosen[:clients].tolist()]
        return [*parts, *(order[:0] for _ in range(clients - len(parts)))]
