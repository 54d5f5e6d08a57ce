"""Which batches each client trains on, and at which of the common steps.

A slot trains one client after the other, so that clients with few batches leave no slot idle while others train.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.learning.executors.batches import Batches

IDLE: Final = -1
"""In place of a batch: the slot has none at that step."""


class BatchTable:
    """All batches of some clients, one row each, and a last row for slots that have none."""

    def __init__(self, clients: Sequence[Batches], width: int) -> None:
        sizes = np.concatenate([one.sizes for one in clients])
        self._first = np.cumsum([0, *(one.sizes.size for one in clients)])
        self._sizes, self._first_pass = sizes, [one.first_pass for one in clients]
        # A batch is filled up with its last sample.
        places = (np.cumsum(sizes) - sizes)[:, None] + np.minimum(np.arange(width), sizes[:, None] - 1)
        self.rows = np.concatenate([one.rows for one in clients])[np.concatenate([places, places[:1]])]
        self._real = np.arange(width) < sizes[:, None]
        self.weights = np.zeros(self.rows.shape, dtype=np.float32)
        np.divide(self._real, sizes[:, None], out=self.weights[:-1], casting="unsafe")
        self.losses = np.zeros(self.rows.shape, dtype=np.float32)

    def scores(self) -> list[tuple[float, float]]:
        """Return mean loss and `loss_rms` of each client."""
        losses = np.where(self._real, self.losses[:-1], 0.0).astype(np.float64)
        begins = self._first[:-1]
        means = np.add.reduceat(losses.sum(1), begins) / np.add.reduceat(self._sizes, begins)
        number = np.arange(len(losses)) - np.repeat(begins, np.diff(self._first))
        early = number < np.repeat(self._first_pass, np.diff(self._first))
        squares = np.add.reduceat(np.square(losses).sum(1) * early, begins)
        roots = np.sqrt(squares / np.add.reduceat(self._sizes * early, begins))
        return list(zip(means.tolist(), roots.tolist(), strict=True))


@dataclass(frozen=True)
class Timeline:
    """When each batch is trained on."""

    batch: IntArray
    sizes: IntArray
    starts: dict[int, list[tuple[int, int]]]
    ends: dict[int, list[tuple[int, int]]]


@dataclass
class _Slot:
    """A slot: its client, the client's next batch, and the sizes that follow, the next one last."""

    client: int
    batch: int
    runs: list[tuple[int, int]] = field(default_factory=list)


def plan(sizes: Sequence[IntArray], slots: int, padded_to: int | None) -> Timeline:
    """Return a timeline for clients with batches of these sizes.

    A step shows the model batches of one size. The slots whose next batch has another size wait; the size that most
    slots have next comes first, and of those the largest. Clients with many batches start first.
    """
    first = np.cumsum([0, *map(len, sizes)])
    queue = [(-len(one), client) for client, one in enumerate(sizes)]
    heapq.heapify(queue)
    at_work: dict[int, _Slot] = {}
    pieces: list[NDArray[np.int64]] = []
    shown: list[tuple[int, int]] = []
    starts: dict[int, list[tuple[int, int]]] = {}
    ends: dict[int, list[tuple[int, int]]] = {}
    step = 0
    while queue or at_work:
        for slot in range(slots):
            if slot not in at_work and queue:
                client = heapq.heappop(queue)[1]
                runs = _runs(sizes[client]) if padded_to is None else [(padded_to, len(sizes[client]))]
                at_work[slot] = _Slot(client, int(first[client]), runs)
                starts.setdefault(step, []).append((slot, client))
        size, chosen = _next(at_work)
        length = min(at_work[slot].runs[-1][1] for slot in chosen)
        piece = np.full((length, slots), IDLE)
        piece[:, chosen] = [at_work[slot].batch for slot in chosen] + np.arange(length)[:, None]
        pieces.append(piece)
        shown.append((size, length))
        step += length
        for slot in chosen:
            one = at_work[slot]
            one.batch += length
            left = one.runs.pop()[1] - length
            if left:
                one.runs.append((size, left))
            elif not one.runs:
                ends.setdefault(step - 1, []).append((slot, one.client))
                del at_work[slot]
    return Timeline(np.concatenate(pieces), np.repeat(*np.transpose(shown)), starts, ends)


def _next(at_work: dict[int, _Slot]) -> tuple[int, list[int]]:
    """Return the size of the next step's batches, and the slots that take part."""
    waiting: dict[int, list[int]] = {}
    for slot, one in at_work.items():
        waiting.setdefault(one.runs[-1][0], []).append(slot)
    return max(waiting.items(), key=lambda item: (len(item[1]), item[0]))


def _runs(sizes: IntArray) -> list[tuple[int, int]]:
    """Return sizes as (size, how many in a row), the last ones first."""
    edges = np.flatnonzero(np.diff(sizes)) + 1
    begins = np.concatenate(([0], edges))
    lengths = np.diff(np.concatenate((begins, [sizes.size])))
    return list(zip(sizes[begins].tolist(), lengths.tolist(), strict=True))[::-1]
