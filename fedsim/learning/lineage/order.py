"""The order in which handles get their numbers: ancestors first, and trainings that are ready together.

Before a node's ancestors are looked at, the store is asked for its numbers, so that the work begins at the nearest
ancestors that are kept. Large batches serve executors that stack trainings or share them among processes; early use of
results saves memory. So trainings that are ready go together, from all branches of the lineage, those first that are
needed first. A model takes each training's result as soon as it is there.
"""

import heapq
from collections.abc import Iterable, Sequence
from typing import Protocol

from fedsim.learning.lineage.handles import ModelHandle, Node, Training


class Worker(Protocol):
    """What gives nodes their numbers."""

    def look_up(self, node: Node) -> bool:
        """Take what is kept of a node's numbers, and of the state before a training; return whether it has them."""
        ...

    def run(self, trainings: Sequence[Training]) -> Iterable[Training]:
        """Run trainings whose parents have their numbers, and give each back when it has its result."""
        ...

    def combine(self, model: ModelHandle) -> None:
        """Give a model its numbers, all parents having had theirs."""
        ...


def materialize(wanted: Sequence[Node], worker: Worker, max_batch: int) -> None:
    """Give nodes and all their ancestors their numbers.

    Parameters
    ----------
    wanted : models and trainings; those that have their numbers cost nothing
    worker : does the work
    max_batch : most trainings in one batch
    """
    waiting = _Waiting(wanted, worker)
    wishes = set(wanted)
    while True:
        waiting.combine()
        batch = waiting.next_trainings(max_batch)
        if not batch:
            return
        for training in worker.run(batch):
            waiting.done(training)
            if training not in wishes:
                training.forget_unless_awaited()
            waiting.combine()
        del training, batch  # nothing here keeps results alive during the next batch


class _Waiting:
    """The nodes without numbers; one that gets them is forgotten, so that it can let go of its memory."""

    def __init__(self, wanted: Sequence[Node], worker: Worker) -> None:
        self._worker = worker
        self._models: list[ModelHandle] = []  # all their parents have numbers
        self._trainings: list[tuple[int, Training]] = []  # a heap: what is needed first comes first
        self._ranks: dict[Node, int] = {}
        self._missing: dict[Node, int] = {}
        self._heirs: dict[Node, list[Node]] = {}
        for rank, node in enumerate(_in_order_of_need(wanted, worker)):
            if isinstance(node, Training):
                if node.ready:
                    self._trainings.append((rank, node))  # ranks grow, and a list in order is a heap
                    continue
                if node.previous is None:
                    self._ranks[node], self._missing[node] = rank, 1
                    self._heirs.setdefault(node.base, []).append(node)
                    continue
            parents = {parent for parent in node.parents() if not parent.materialized}
            self._ranks[node], self._missing[node] = rank, len(parents)
            for parent in parents:
                self._heirs.setdefault(parent, []).append(node)
            if not parents:
                self._release(node)

    def next_trainings(self, most: int) -> list[Training]:
        """Take out the next batch of trainings that can run."""
        count = min(most, len(self._trainings))
        return [heapq.heappop(self._trainings)[1] for _ in range(count)]

    def combine(self) -> None:
        """Give all models their numbers whose parents have theirs."""
        while self._models:
            model = self._models.pop()
            self._worker.combine(model)
            self.done(model)

    def done(self, node: Node) -> None:
        """Take note that a node has its numbers."""
        for heir in self._heirs.pop(node, ()):
            if isinstance(heir, ModelHandle):
                heir.take()
            self._missing[heir] -= 1
            if not self._missing[heir]:
                self._release(heir)

    def _release(self, node: Node) -> None:
        rank = self._ranks.pop(node)
        del self._missing[node]
        if isinstance(node, Training):
            heapq.heappush(self._trainings, (rank, node))
        else:
            self._models.append(node)


def _in_order_of_need(wanted: Sequence[Node], worker: Worker) -> list[Node]:
    """Return those without numbers among nodes and their ancestors, each after its parents, without recursion."""
    order: dict[Node, None] = {}
    seen: set[ModelHandle | Training] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(wanted)]
    while stack:
        node, after_parents = stack.pop()
        if after_parents:
            order[node] = None
        elif not node.materialized and node not in seen:
            seen.add(node)
            if isinstance(node, Training) and (node.ready or (node.previous is None and node.base in order)):
                order[node] = None
            elif not worker.look_up(node):
                stack.append((node, True))
                stack.extend([(parent, False) for parent in reversed(node.parents()) if not parent.materialized])
    return list(order)
