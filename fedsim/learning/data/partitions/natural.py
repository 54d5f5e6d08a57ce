"""Divisions that are given: the users of a data set, or the clients in a file."""

from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from pydantic import Field

from fedsim.arrays import IntArray
from fedsim.capabilities import USERS
from fedsim.errors import ScenarioError
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import IDS, Table, clients_of, note_order
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


_NONE: Final = -1
_SAMPLES: Final = ("sample", "sample_id", "sample_index", "sample_idx", "index", "idx")


class FilePartition(Split):
    """The client of each training sample stands in a table: CSV with a header, Parquet or NPZ; nothing is unpickled.

    The table has a column ``client`` of whole numbers, -1 for a sample of no client, or of names. With a column
    ``sample`` or ``index``, each row is about the sample of that number, counted from 0 in the order of the data set; a
    sample without a row belongs to no client. Otherwise row i is about sample i, and there is one row for each training
    sample. Other columns are ignored.

    Attributes
    ----------
    path : str
        The file.
    """

    path: InputPath

    def assign(self, labels: IntArray, classes: int, clients: int, streams: Streams) -> list[IntArray]:
        table, owner = self.owners(clients)
        name = table.find(*_SAMPLES)
        if name is not None:
            sample = table.whole(name)
            table.refuse_first(name, sample >= labels.size, f"0 to {labels.size - 1}")
            if np.unique(sample).size < sample.size:
                twice = int(np.flatnonzero(np.bincount(sample) > 1)[0])
                table.refuse(f"{name}: sample {twice} has two rows; allowed: at most one")
            table.note(labels.size - sample.size, f"of {labels.size:,} samples are of no client: they have no row")
        elif owner.size != labels.size:
            table.refuse(
                f"it has {owner.size} rows; there must be one for each of the {labels.size} training samples, or a "
                "column 'sample'"
            )
        else:
            sample = np.arange(labels.size)
            note_order(table, "sample", "sample")
        table.note(int((owner == _NONE).sum()), "samples are of no client: their client is -1")
        of = np.full(labels.size, _NONE, dtype=np.int64)
        of[sample] = owner
        order = np.argsort(of, kind="stable")
        return np.split(order, np.searchsorted(of[order], np.arange(clients + 1)))[1:-1]

    def owners(self, clients: int) -> tuple[Table, IntArray]:
        """Return the table, and the client of each of its rows."""
        table = Table.read(self.path, "learning.split.path")
        name = table.called(*IDS)
        allowed = f"whole numbers from 0 to {clients - 1}, -1 for no client, or names of clients"
        owner = clients_of(table, name, clients, _NONE)
        table.refuse_first(name, owner >= clients if table.is_numeric(name) else owner < 0, allowed)
        return table, owner
