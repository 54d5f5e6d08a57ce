"""Which batches each client trains on, and at which of the common steps.

A slot trains one client after the other, so that clients with few batches leave no slot idle while others train.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

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


class Timeline(NamedTuple):
    """Which batch each slot has at each step, and the size of all batches of a step; (slot, client) by steps."""

    batch: IntArray
    sizes: IntArray
    starts: dict[int, list[tuple[int, int]]]
    ends: dict[int, list[tuple[int, int]]]


def plan(sizes: Sequence[IntArray], slots: int, padded_to: int | None) -> Timeline:
    """Return a timeline for clients with batches of these sizes.

    A step shows the model batches of one size. The slots whose next batch has another size wait; the size that most
    slots have next comes first, and of those the largest. Clients with many batches start first.
    """
    first = np.cumsum([0, *map(len, sizes)]).tolist()
    left = [one.tolist() if padded_to is None else [padded_to] * len(one) for one in sizes]
    queue = sorted(range(len(sizes)), key=lambda client: (len(sizes[client]), -client))
    at_work: dict[int, tuple[int, int]] = {}
    batch: list[list[int]] = []
    shown: list[int] = []
    starts: dict[int, list[tuple[int, int]]] = {}
    ends: dict[int, list[tuple[int, int]]] = {}
    while queue or at_work:
        for slot in range(slots) if queue and len(at_work) < slots else ():
            if slot not in at_work and queue:
                client = queue.pop()
                at_work[slot] = client, 0
                starts.setdefault(len(shown), []).append((slot, client))
        waiting: dict[int, list[int]] = {}
        for slot, (client, number) in at_work.items():
            waiting.setdefault(left[client][number], []).append(slot)
        size, chosen = max(waiting.items(), key=lambda item: (len(item[1]), item[0]))
        now = [IDLE] * slots
        for slot in chosen:
            client, number = at_work[slot]
            now[slot] = first[client] + number
            at_work[slot] = client, number + 1
            if number + 1 == len(left[client]):
                ends.setdefault(len(shown), []).append((slot, client))
                del at_work[slot]
        batch.append(now)
        shown.append(size)
    return Timeline(np.array(batch), np.array(shown), starts, ends)
