"""The order in which handles get their numbers: ancestors first, and trainings that are ready together.

The store is asked for a node's numbers before its ancestors are visited, so that the work begins at the nearest stored
ancestors. Large batches serve executors that stack trainings or share them among processes, and early use of results
saves memory. So trainings that are ready go together, from all branches of the lineage, those first that are needed
first. A model takes each training's result as soon as it is there.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from fedsim.learning.lineage.handles import Cohort, ModelHandle, Node, Training


class Worker(Protocol):
    """What gives nodes their numbers."""

    def look_up(self, node: Node) -> bool:
        """Load a node's stored numbers, or the state before a training; return whether it has them."""
        ...

    def run(self, trainings: Sequence[Training]) -> Iterable[Sequence[Training]]:
        """Run trainings whose parents have their numbers, and yield together those whose results come together."""
        ...

    def add_up(self, model: ModelHandle, cohort: Cohort) -> None:
        """Run the trainings of a cohort that alone makes a model, and add each to it as soon as it has run."""
        ...

    def combine(self, model: ModelHandle) -> None:
        """Give a model its numbers, all parents having had theirs."""
        ...


def materialize(wanted: Sequence[Node], worker: Worker, max_batch: int) -> None:
    """Give nodes and all their ancestors their numbers."""
    if line := _line(wanted, worker):
        first = line[0][1].base
        if not first.materialized:
            materialize([first], worker, max_batch)
        del first
        while line:
            _add_up(*line.popleft(), worker)
        return
    order = _in_order_of_need(wanted, worker)
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


def _add_up(model: ModelHandle, cohort: Cohort, worker: Worker) -> None:
    worker.add_up(model, cohort)
    worker.combine(model)


def _line(wanted: Sequence[Node], worker: Worker) -> deque[tuple[ModelHandle, Cohort]]:
    """Return the models without numbers that descend from one another by a cohort each, up to the one wanted.

    As long as no client's update is asked for by itself, these are all models of a synchronous server.
    """
    found: deque[tuple[ModelHandle, Cohort]] = deque()
    node = wanted[0] if len(wanted) == 1 else None
    while isinstance(node, ModelHandle) and not node.materialized:
        cohort = node.cohort()
        if cohort is None or worker.look_up(node):
            break
        found.appendleft((node, cohort))
        node = cohort.base
    return found


class _Waiting:
    """The nodes without numbers; one that gets them is removed, so that its memory can be freed."""

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
