"""Local test samples: on which samples the models of each client are judged.

A client's own test samples are held out of its training samples (``learning.split.test_share``), are those that a split
of the user's own says, or are a part of the test set, which is divided as the training set is. No two clients share
one. Streams: ``("client-test", client)`` what is held out; ``("client-test",)`` the division of the test set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from fedsim.arrays import IntArray
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.partitions.contracts import PARTITION, AssignsTests, Partition, Split, assigned
from fedsim.streams import Streams


@dataclass(frozen=True)
class LocalTests:
    """Rows of each client, as `Dataset.taken` reads them."""

    rows: Sequence[IntArray]
    held_out: bool

    @cached_property
    def samples(self) -> IntArray:
        return np.array([part.size for part in self.rows], dtype=np.int64)

    @property
    def without(self) -> str:
        """A sentence on clients without local test samples; nothing where all have some."""
        none = int(np.count_nonzero(self.samples == 0))
        if not none:
            return ""
        return (
            f"learning.split: {none:,} of {self.samples.size:,} clients have no local test samples, and do not count "
            "in evaluations; test_share holds samples out"
        )

    @cached_property
    def digests(self) -> list[str]:
        return [blake2b(part.tobytes(), digest_size=16).hexdigest() for part in self.rows]


class Divided:
    """The training samples of each client, and its local test samples."""

    def __init__(self, split: Partition, data: Dataset, clients: int, streams: Streams) -> None:
        self._split, self._data, self._streams = split, data, streams
        self.rows: list[IntArray] = assigned(split, data, clients, streams)
        self._held: list[IntArray] | None = None
        if isinstance(split, Split) and split.test_share:
            parts = [self._parted(client, part, split.test_share) for client, part in enumerate(self.rows)]
            self.rows, self._held = [kept for kept, _ in parts], [held for _, held in parts]

    def restricted(self, leave_out: Callable[[Dataset, list[IntArray]], tuple[Dataset, list[IntArray]]]) -> Dataset:
        """Leave out samples that a task does not count, and return the data without them in the test set."""
        whole = self._data
        self._data, self.rows = leave_out(whole, self.rows)
        if self._held is not None:
            _, self._held = leave_out(whole, self._held)
        return self._data

    @cached_property
    def tests(self) -> LocalTests:
        if self._held is not None:
            return LocalTests(self._held, held_out=True)
        if isinstance(self._split, AssignsTests):
            labels, classes = self._labels(self._data.test_y)
            rows = PARTITION.checked(self._split).assign_tests(labels, classes, len(self.rows), self._streams)
        else:
            rows = self._as_the_training_set()
        return LocalTests([~part for part in rows], held_out=False)

    def _parted(self, client: int, part: IntArray, share: float) -> tuple[IntArray, IntArray]:
        """Return the rows that a client trains on, and those that it holds out: of two rows or more at least one."""
        wanted = min(max(round(share * part.size), 1), max(0, part.size - 1))
        held = np.sort(self._streams.generator("client-test", client).permutation(part.size)[:wanted])
        return np.delete(part, held), part[held]

    def _as_the_training_set(self) -> list[IntArray]:
        """Return rows of the test set: of each label, to each client in proportion to its training samples of it."""
        rng, clients = self._streams.generator("client-test"), len(self.rows)
        place = np.argsort(rng.permutation(clients))
        owner = np.repeat(np.arange(clients), [part.size for part in self.rows])
        of_training, _ = self._labels(self._data.train_y)
        of_training = of_training[np.concatenate(self.rows)]
        order = np.lexsort((place[owner], of_training))
        owner, of_training = owner[order], of_training[order]
        labels, classes = self._labels(self._data.test_y)
        test = rng.permutation(labels.size)
        test = test[np.argsort(labels[test], kind="stable")]
        starts, ends = (np.searchsorted(of_training, np.arange(classes), side) for side in ("left", "right"))
        of = np.full(labels.size, -1, dtype=np.int64)
        for label in range(classes):
            rows, owners = test[labels[test] == label], owner[starts[label] : ends[label]]
            if rows.size and owners.size:
                # Evenly over the samples of all clients, one after the other: proportions, to within one row.
                of[rows] = owners[((np.arange(rows.size) + 0.5) * owners.size / rows.size).astype(np.int64)]
        by_client = np.argsort(of, kind="stable")
        return np.split(by_client, np.searchsorted(of[by_client], np.arange(clients + 1)))[1:-1]

    def _labels(self, targets: IntArray) -> tuple[IntArray, int]:
        """Return labels and their number; one label for all where targets are none."""
        classes = self._data.classes
        return (np.zeros(len(targets), dtype=np.int64), 1) if classes is None else (targets, classes)
