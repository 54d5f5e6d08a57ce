"""The order in which handles get their numbers: ancestors first, and trainings that are ready together.

Large batches serve executors that stack trainings or share them among processes; early use of results saves memory. So
trainings that are ready go together, from all branches of the lineage, those first that are needed first. After each
batch the models are combined whose parents are complete.
"""

import heapq
from collections.abc import Callable, Sequence

from fedsim.learning.lineage.handles import ModelHandle, Training

Node = ModelHandle | Training


def materialize(wanted: Sequence[Node], run: Callable[[Sequence[Training]], None], max_batch: int) -> None:
    """Give nodes and all their ancestors their numbers.

    Parameters
    ----------
    wanted : models and trainings; those that have their numbers cost nothing
    run : runs a batch of trainings whose parents have their numbers
    max_batch : most trainings in one batch
    """
    waiting = _Waiting(wanted)
    while True:
        while waiting.models:
            model = waiting.models.pop()
            model.materialize()
            waiting.done(model)
        batch = waiting.next_trainings(max_batch)
        if not batch:
            return
        run(batch)
        for training in batch:
            waiting.done(training)


class _Waiting:
    """The nodes without numbers; one that gets them is forgotten, so that it can let go of its memory.

    Attributes
    ----------
    models : those whose parents all have their numbers
    """

    def __init__(self, wanted: Sequence[Node]) -> None:
        self.models: list[ModelHandle] = []
        self._trainings: list[tuple[int, Training]] = []  # a heap: what is needed first comes first
        self._ranks: dict[Node, int] = {}
        self._missing: dict[Node, int] = {}
        self._heirs: dict[Node, list[Node]] = {}
        for rank, node in enumerate(_in_order_of_need(wanted)):
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

    def done(self, node: Node) -> None:
        """Take note that a node has its numbers."""
        for heir in self._heirs.pop(node, ()):
            self._missing[heir] -= 1
            if not self._missing[heir]:
                self._release(heir)

    def _release(self, node: Node) -> None:
        rank = self._ranks.pop(node)
        del self._missing[node]
        if isinstance(node, Training):
            heapq.heappush(self._trainings, (rank, node))
        else:
            self.models.append(node)


def _in_order_of_need(wanted: Sequence[Node]) -> list[Node]:
    """Return those without numbers among nodes and their ancestors, each after its parents, without recursion."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack = [(node, False) for node in reversed(wanted)]
    while stack:
        node, after_parents = stack.pop()
        if after_parents:
            order.append(node)
        elif not node.materialized and node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in reversed(node.parents()))
    return order
