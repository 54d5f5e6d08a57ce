"""The order in which handles get their numbers: ancestors first, and trainings that are ready together.

Before a node's ancestors are looked at, the store is asked for its numbers, so that the work begins at the nearest
ancestors that are kept. Large batches serve executors that stack trainings or share them among processes; early use of
results saves memory. So trainings that are ready go together, from all branches of the lineage, those first that are
needed first. A model takes each training's result as soon as it is there.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from fedsim.learning.lineage.handles import ModelHandle, Node, Training


class Worker(Protocol):
    """What gives nodes their numbers."""

    def look_up(self, node: Node) -> bool:
        """Take what is kept of a node's numbers, and of the state before a training; return whether it has them."""
        ...

    def run(self, trainings: Sequence[Training]) -> Iterable[Sequence[Training]]:
        """Run trainings whose parents have their numbers, and give each back when it has its result.

        Those whose results come together are given back together.
        """
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
    order = _in_order_of_need(wanted, worker)
    cohorts = _one_after_another(order)
    if cohorts is not None and not any(isinstance(node, Training) for node in wanted):
        del order
        while cohorts:
            _make(*cohorts.popleft(), worker, max_batch)
        return
    waiting = _Waiting(order, worker)
    del order
    wishes = set(wanted)
    while True:
        waiting.combine()
        batch = waiting.next_trainings(max_batch)
        if not batch:
            return
        for together in worker.run(batch):
            waiting.done(together)
            for training in together:
                if training.difference is not None and training not in wishes:
                    training.forget_unless_awaited()
            waiting.combine()
        del training, together, batch  # nothing here keeps results alive during the next batch


def _one_after_another(order: Sequence[Node]) -> deque[tuple[list[Training], ModelHandle]] | None:
    """Return models in their order, with the trainings that each is made of; None where that is not all.

    With a synchronous server each training starts from the model before, or from one with numbers, so that there is
    nothing to put in order.
    """
    found: deque[tuple[list[Training], ModelHandle]] = deque()
    trainings: list[Training] = []
    before = None
    for node in order:
        if isinstance(node, ModelHandle):
            found.append((trainings, node))
            before, trainings = node, []
        elif (node.previous is None and node.base is before) if found else node.ready:
            trainings.append(node)
        else:
            return None
    return None if trainings else found


def _make(trainings: Sequence[Training], model: ModelHandle, worker: Worker, max_batch: int) -> None:
    """Give a model its numbers, of trainings that can all run now, first those that are needed first."""
    for first in range(0, len(trainings), max_batch):
        for together in worker.run(trainings[first : first + max_batch]):
            model.take()
            for training in together:
                if training.difference is not None:
                    training.forget_unless_awaited()
    worker.combine(model)


class _Waiting:
    """The nodes without numbers; one that gets them is forgotten, so that it can let go of its memory."""

    def __init__(self, order: Sequence[Node], worker: Worker) -> None:
        self._worker = worker
        self._models: list[ModelHandle] = []  # all their parents have numbers
        self._trainings: list[tuple[int, Training]] = []  # a heap: what is needed first comes first
        self._ranks: dict[Node, int] = {}
        self._missing: dict[Node, int] = {}
        self._heirs: dict[Node, list[Node]] = {}
        # Trainings that wait for a model alone, as all do whose optimiser begins anew; in the order of their ranks.
        self._starters: dict[ModelHandle, list[tuple[int, Training]]] = {}
        base, starters = None, self._trainings
        for rank, node in enumerate(order):
            if isinstance(node, Training) and node.previous is None:
                if node.base is not base:
                    base = node.base
                    # Ranks grow, and a list in order is a heap.
                    starters = self._trainings if base.materialized else self._starters.setdefault(base, [])
                starters.append((rank, node))
                continue
            parents = {parent: None for parent in node.parents() if not parent.materialized}
            self._ranks[node], self._missing[node] = rank, len(parents)
            for parent in parents:
                if parent in self._heirs:
                    self._heirs[parent].append(node)
                else:
                    self._heirs[parent] = [node]
            if not parents:
                self._release(node)

    def next_trainings(self, most: int) -> list[Training]:
        """Take out the next batch of trainings that can run."""
        ready = self._trainings
        if len(ready) <= most:
            self._trainings = []
            return [training for _, training in sorted(ready)]
        return [heapq.heappop(ready)[1] for _ in range(most)]

    def combine(self) -> None:
        """Give all models their numbers whose parents have theirs."""
        while self._models:
            model = self._models.pop()
            self._worker.combine(model)
            self.done([model])

    def done(self, nodes: Sequence[Node]) -> None:
        """Take note that nodes have their numbers."""
        come: dict[Node, int] = {}
        heirs = self._heirs
        for node in nodes:
            for heir in heirs.pop(node, ()):
                come[heir] = come.get(heir, 0) + 1
            if self._starters and isinstance(node, ModelHandle):
                self._begin(self._starters.pop(node, ()))
        for heir, count in come.items():
            if isinstance(heir, ModelHandle):
                heir.take()
            self._missing[heir] -= count
            if not self._missing[heir]:
                self._release(heir)

    def _begin(self, starters: Sequence[tuple[int, Training]]) -> None:
        """Let trainings run, whose ranks ascend."""
        if self._trainings:
            for each in starters:
                heapq.heappush(self._trainings, each)
        else:
            self._trainings.extend(starters)

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
    # A node, whether its parents are in order, and those of its parents that come with it, right before it.
    stack: list[tuple[Node, bool, Sequence[Node]]] = [(node, False, ()) for node in reversed(wanted)]
    while stack:
        node, after_parents, beside = stack.pop()
        if after_parents:
            order.update(dict.fromkeys(beside))
            order[node] = None
        elif not node.materialized and node not in seen and node not in order:
            seen.add(node)
            if isinstance(node, Training) and node.ready:
                order[node] = None
            elif not worker.look_up(node):
                others, beside = _parents(node)
                stack.append((node, True, beside))
                stack.extend([(parent, False, ()) for parent in reversed(others)])
    return list(order)


def _parents(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the parents without numbers that must come before a node, and the trainings that wait for the first alone.

    With a synchronous server these are all trainings of a model, where each optimiser begins anew.
    """
    others: list[Node] = []
    beside: list[Node] = []
    first, *_ = parents = node.parents()
    for parent in parents:
        if isinstance(parent, ModelHandle):
            if not parent.materialized:
                others.append(parent)
        elif parent.difference is None:
            (beside if parent.base is first and parent.previous is None else others).append(parent)
    return others, beside
