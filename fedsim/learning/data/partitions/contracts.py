"""The contract of a partition of the training samples, and the kinds that there are.

All draws come from the stream ``"split"``; those that round shares to whole numbers have streams of their own,
``"split-rounding"`` and ``"split-ties"``.
"""

from typing import Annotated, Final, Protocol, cast, runtime_checkable

import numpy as np
from pydantic import Field

from fedsim.answers import AnswerError, Contract, Given, Numbers, in_words
from fedsim.arrays import IntArray
from fedsim.capabilities import LABELS, USERS
from fedsim.errors import ScenarioError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.generators import generators_of
from fedsim.registry import Component, Registry
from fedsim.streams import Streams


class Partition(Protocol):
    """A division of the training samples among clients, as a scenario names it.

    Attributes
    ----------
    requires : ``"users"`` if it divides by users, see `UserPartition`; ``"labels"`` if it looks at labels. One that
        requires none of them is given a label 0 for each sample where the targets of the data set are no labels

    Examples
    --------
    >>> class EveryOther:
    ...     requires = frozenset()
    ...     def assign(self, labels, classes, clients, streams):
    ...         return [np.arange(client, labels.size, clients) for client in range(clients)]
    >>> [part.tolist() for part in EveryOther().assign(np.zeros(6, dtype=np.int64), 1, 2, Streams(0))]
    [[0, 2, 4], [1, 3, 5]]
    """

    @property
    def requires(self) -> frozenset[str]:
        """Names of what other parts of the scenario must provide."""
        ...

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        """Return the samples of each client.

        Parameters
        ----------
        labels : int64 array of shape (N,)
            Label of every training sample, in 0..classes-1.
        classes, clients : int >= 1
        streams : random streams of the run

        Returns
        -------
        one array of distinct sample numbers per client; no sample belongs to two clients. A client with an empty array
        has no samples, which is refused unless the scenario allows it (``learning.allow_empty``). A method
        ``assign_tests`` of the same arguments, about the test set, says on which samples each client is judged.
        """
        ...


class Split(Component):
    """What all divisions of fedsim's own have in common.

    Attributes
    ----------
    test_share : float in [0, 1)
        Share of each client's samples that it does not train on, and on which its models are judged, at least one of
        two. With 0 clients are judged on a part of the test set, which is divided like the training set.
    """

    test_share: Annotated[float, Field(ge=0, lt=1)] = 0.0


class UserPartition(Protocol):
    """A division by the users to whom the samples of the data set belong; it requires ``"users"``."""

    def assign(
        self, labels: IntArray, classes: int, clients: int, streams: Streams, users: IntArray | None = None
    ) -> list[IntArray]:
        """Return the samples of each client, as `Partition.assign` does."""
        ...


def _parts(answer: object, given: Given) -> list[IntArray]:
    """Check one array of distinct sample numbers for each client, none of them in two."""
    clients, samples = given["clients"], given["labels"].size
    if not isinstance(answer, list | tuple) or len(answer) != clients:
        raise AnswerError(in_words(answer), f"a list of {clients} arrays of sample numbers")
    number = Numbers(None, least=0, most=samples - 1, dtype=np.int64)
    parts: list[IntArray] = []
    for client, part in enumerate(answer):
        try:
            parts.append(number(part, given))
        except AnswerError as error:
            raise AnswerError(f"{error.found} for client {client}", error.allowed) from None
        if parts[-1].ndim != 1:
            raise AnswerError(f"{in_words(part)} for client {client}", "arrays of one dimension")
    counted = np.bincount(np.concatenate(parts), minlength=samples)
    if counted.max(initial=0) > 1:
        raise AnswerError(f"sample {int(counted.argmax())} twice", "each sample at most once")
    return parts


@runtime_checkable
class AssignsTests(Partition, Protocol):
    """A division that also says on which samples each client is judged."""

    def assign_tests(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        """Return the samples of the test set on which each client is judged.

        Parameters
        ----------
        labels : of every sample of the test set, shape (N,)
        classes, clients, streams : as of `Partition.assign`
        """
        ...


PARTITION: Final = Contract("split", AssignsTests, {"assign": _parts, "assign_tests": _parts})


def assigned(split: Partition, data: Dataset, clients: int, streams: Streams) -> list[IntArray]:
    checked = PARTITION.checked(split)
    labels, classes = data.labels, data.classes
    if labels is None or classes is None:
        if LABELS in split.requires:
            raise ScenarioError(
                f"learning.split: {PARTITIONS.kind_of(split)!r} divides by labels, and the targets of the data set "
                f"are {data.targets_in_words}; allowed: {', '.join(WITHOUT_LABELS)}, or a data set with labels"
            )
        labels, classes = np.zeros(len(data.train_y), dtype=np.int64), 1
    with generators_of(streams.digest("split")):
        if USERS not in split.requires:
            return checked.assign(labels, classes, clients, streams)
        if data.train_users is None:
            raise ScenarioError("learning.split: it divides by users, and the data set that was read tells none")
        by_user = cast(UserPartition, checked)
        return by_user.assign(labels, classes, clients, streams, data.train_users)


PARTITIONS: Final = Registry(
    "split",
    "fedsim.splits",
    ("assign",),
    {
        "equal": "fedsim.learning.data.partitions.sizes:EqualPartition",
        "natural": "fedsim.learning.data.partitions.natural:NaturalPartition",
        "dirichlet": "fedsim.learning.data.partitions.by_label:DirichletPartition",
        "shards": "fedsim.learning.data.partitions.by_label:ShardsPartition",
        "label-limited": "fedsim.learning.data.partitions.by_label:LabelLimitedPartition",
        "sizes": "fedsim.learning.data.partitions.sizes:SizesPartition",
        "log-normal": "fedsim.learning.data.partitions.sizes:LogNormalPartition",
        "zipf": "fedsim.learning.data.partitions.sizes:ZipfPartition",
        "quantity-skew": "fedsim.learning.data.partitions.by_label:QuantitySkewPartition",
        "file": "fedsim.learning.data.partitions.natural:FilePartition",
    },
)

WITHOUT_LABELS: Final = ("equal", "natural", "sizes", "log-normal", "zipf", "file")
"""Kinds that divide data without labels."""
