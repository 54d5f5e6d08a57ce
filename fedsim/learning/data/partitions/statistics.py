"""How uneven a division is: samples of each client with each label, and numbers about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.data.datasets import DATASET_PART, Dataset, DatasetPart
from fedsim.learning.data.partitions.contracts import Partition
from fedsim.learning.data.partitions.local_tests import Divided
from fedsim.streams import Streams


@dataclass(frozen=True)
class Division:
    counts: IntArray
    samples: int
    users: int | None = None

    @property
    def sizes(self) -> IntArray:
        return np.asarray(self.counts.sum(axis=1))

    @property
    def gini(self) -> float:
        """Gini coefficient of the sizes: 0 for equal ones, up to 1 - 1/K if one client has all."""
        sizes = np.sort(self.sizes)
        total, clients = int(sizes.sum()), sizes.size
        if total == 0:
            return 0.0
        ranks = np.arange(1, clients + 1)
        return float((2 * ranks - clients - 1) @ sizes / (clients * total))

    @property
    def labels_held(self) -> FloatArray:
        return np.asarray((self.counts[self.sizes > 0] > 0).sum(axis=1), dtype=np.float64)

    @property
    def distances(self) -> FloatArray:
        """Total variation distance of each client's mixture of labels from that of all, in [0, 1), shape (n,)."""
        counts = self.counts[self.sizes > 0].astype(np.float64)
        whole = counts.sum(axis=0) / max(1.0, counts.sum())
        return np.asarray(np.abs(counts / counts.sum(axis=1, keepdims=True) - whole).sum(axis=1) / 2)

    def facts(self) -> dict[str, str]:
        sizes, used = self.sizes, int(self.counts.sum())
        held, apart = self.labels_held, self.distances
        empty = int((sizes == 0).sum())
        about = {
            "clients": f"{sizes.size}, {empty} of them without samples",
            **({} if self.users is None else {"users of the data set": f"{self.users}"}),
            "samples in use": f"{used} of {self.samples}",
            "samples of a client": f"{sizes.min()} to {sizes.max()}, median {np.median(sizes):g}, "
            f"mean {sizes.mean():.4g}",
            "Gini coefficient of the sizes": f"{self.gini:.3f}",
        }
        if used and self.counts.shape[1] > 1:
            about["labels of a client"] = f"{held.min():g} to {held.max():g}, mean {held.mean():.3g}"
            about["distance from the mixture of all"] = (
                f"{apart.min():.3f} to {apart.max():.3f}, mean {apart.mean():.3f}"
            )
        return about


def division_of(
    data: DatasetPart, split: Partition, clients: int, streams: Streams, data_dir: Path | None = None
) -> Division:
    read = DATASET_PART.checked(data).load(data_dir)
    parts = Divided(split, read, clients, streams).rows
    counts = label_counts(read, parts)
    users = None if read.train_users is None else np.unique(read.train_users).size
    if counts is None:
        counts = np.array([[part.size] for part in parts])
    return Division(counts, len(read.train_y), users)


def label_counts(data: Dataset, parts: Sequence[IntArray]) -> IntArray | None:
    """Return the training samples of every client with each label, shape (K, labels); None without labels."""
    labels, classes = data.labels, data.classes
    if labels is None or classes is None:
        return None
    owner = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    labelled = owner * classes + labels[np.concatenate(parts)]
    return np.bincount(labelled, minlength=len(parts) * classes).reshape(len(parts), classes)
