"""What is computed: from what is wanted back to what is known, and forward again, in batches of the executor.

The store is asked for a node's numbers before what it is made of is visited, so that the work begins at the nearest
known models. Large batches serve executors that stack trainings or share them among processes, and early use of
results saves memory. So updates that can run go together, from all branches of the lineage, those first that are needed
first; and each is added to its model as soon as its turn has come, and let go of.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import numpy as np

from fedsim.arrays import IntArray, Vector, read_only
from fedsim.learning.aggregation.combining import difference_from
from fedsim.learning.drawn_samples import SampleDraws
from fedsim.learning.executors.contracts import Executor, OptimizerState, StateError, TrainingJob, TrainingResult
from fedsim.learning.generators import generators_of
from fedsim.learning.lineage.asked import OWN, STEPS, Model, Node, Recipe, Result, State, Update, naming
from fedsim.learning.lineage.known import Known
from fedsim.learning.lineage.local_work import LocalWork
from fedsim.learning.steps.contracts import Message
from fedsim.learning.steps.listed import Steps
from fedsim.learning.store.contracts import Record
from fedsim.learning.torch_modes import own_modes
from fedsim.streams import Streams

_FEW: Final = 512
"""Trainings on a line of models without numbers before the store is asked for each further model."""

_MOST: Final = 2**18
"""Trainings that a line may be made of, in about 130 MB; beyond that they are run."""

PRINT: Final = "print"
_BITS: Final = 2**53

WithResult = Callable[[Update], None]
"""Called with an update whose result is in memory, before any model has taken it."""


class Computation:
    """Gives handles their numbers.

    ``when_known`` is called with each model that has been computed, and ``distrust`` when trainings turn out not to
    repeat.
    """

    def __init__(
        self,
        executor: Executor,
        rows: Sequence[IntArray],
        streams: Streams,
        steps: Steps,
        local: LocalWork,
        known: Known,
        own_rules: Sequence[object] = (),
    ) -> None:
        self.own = local.own or bool(own_rules)
        self.executor, self.steps, self.local, self.known, self.trained = executor, steps, local, known, 0
        self.when_known: Callable[[Model], None] = _nothing
        self._afterwards: Callable[[], None] = lambda: None
        self.distrust: Callable[[], None] = lambda: None
        self._found: Callable[[Mapping[Model, Recipe]], None] = _nothing
        self._rows, self._streams = rows, streams
        self._draws = SampleDraws(streams, np.array([part.size for part in rows], dtype=np.int64))
        self._generators = streams.pool("training")

    def verify_by(self, afterwards: Callable[[], None], found: Callable[[Mapping[Model, Recipe]], None]) -> None:
        """Call one when all that was wanted is computed, and one with the models of own rules that the store had."""
        self._afterwards, self._found = afterwards, found

    def vector(self, model: Model) -> Vector:
        """Return the numbers of a model, parameters first and then buffers, shape (d,)."""
        self.compute([model])
        return model.vector

    @own_modes()
    def compute(self, wanted: Sequence[Node], with_result: WithResult | None = None) -> None:
        """Give handles, and all that they are made of and that is not known, their numbers."""
        use = with_result or _nothing
        for node in wanted:
            if isinstance(node, Update) and node.known:
                use(node)
        found: dict[Model, Recipe] | None = {} if self.own else None
        walk = _Walk(_unknown(wanted, self.known, found), wanted, self._made, self._drawing)
        if found:
            self._found(found)
        del found  # it holds models
        try:
            while batch := walk.next(self.executor.max_batch):
                for update in self._run(batch):
                    use(update)
                    walk.done(update)
                    del update  # nothing here has results in memory while others are computed
                del batch
        except StateError:
            self.distrust()  # what other trainings gave before may be wrong too
            raise
        self._afterwards()

    def train_again(self, updates: Sequence[Update]) -> Iterator[Record]:
        """Yield the report of each update, whose base and what its client remembers are known."""
        most = self.executor.max_batch
        for batch in (updates[first : first + most] for first in range(0, len(updates), most)):
            with own_modes(), naming(batch):
                results = list(self.executor.train(self._jobs(batch)))
            for update, result in zip(batch, results, strict=True):
                with naming([update]):
                    yield self._report(self._left(update, result)[0])

    def make_again(self, model: Model, recipe: Recipe) -> Vector | None:
        """Return the numbers that a recipe gives, if the models that it needs are there."""
        needed: list[Node] = [*recipe.models, *(update.base for update in recipe.updates), *recipe.updates]
        if not all(map(self.known.find, needed)):
            return None
        again, trained = Model(model.digest, model.version, recipe), self.trained
        walk = _Walk({**_unknown(recipe.updates, self.known), again: None}, [], _nothing, self._drawing)
        with own_modes():
            while batch := walk.next(self.executor.max_batch):
                for update in self._run(batch):
                    walk.done(update)
        self.trained = trained
        return again.vector

    def bound(self, model: Model, states: Mapping[int, State]) -> None:
        """Keep a line of models without numbers from growing: end it at a stored model; run a very long one."""
        if model.trainings <= _FEW:
            return
        if self.known.find(model):
            for state in states.values():
                self.known.find_state(state)
        elif model.trainings > _MOST:
            self.compute([model])

    def _made(self, model: Model) -> None:
        self.known.put_if_due(model)
        self.when_known(model)

    def _run(self, updates: Sequence[Update]) -> Iterator[Update]:
        """Run trainings, those of one digest once, and yield each update when it has its result."""
        alike: dict[str, list[Update]] = {}
        for update in updates:
            if update.draw is None or update.draw.taken:
                alike.setdefault(update.work_digest, []).append(update)
            else:
                self._give(update, _without_samples(update), {})
                yield update
        first = [same[0] for same in alike.values()]
        reports: dict[str, Record] = {}
        with naming(first):
            results = self.executor.train(self._jobs(first)) if first else ()
            for same, result in zip(alike.values(), results, strict=True):
                self.trained += 1
                with naming([same[0]]):
                    left = self._left(same[0], result)
                    for update in same:
                        reports[update.work_digest] = self._give(update, *left)
                del left, result
                yield from same
        self.known.put_records(reports)

    def _give(self, update: Update, result: TrainingResult, own: OptimizerState) -> Record:
        """Give an update its result, and the client what it remembers from now on; return its report."""
        report = update.report = self._report(result)
        sent, memory = self._sent(update, result.difference)
        update.result = Result(result.difference, sent)
        if update.state is not None:
            update.state.take({**result.state, **own, **memory})
            self.known.note_state(update.client, update.state)
        return report

    def _sent(self, update: Update, difference: Vector) -> tuple[Vector, OptimizerState]:
        """Return what the server receives, shape (d,), and what the client remembers of its message."""
        if self.steps.lossless and update.release is None:
            return difference, {}
        memory = dict(update.memory_of(STEPS))
        with self._drawing(update):
            message = self.steps.client(Message(update.sender, difference, self.local.part(update), memory))
        return message.numbers, {STEPS + name: values for name, values in message.memory.items()}

    def _drawing(self, node: Node) -> AbstractContextManager[None]:
        """Let draws of the user's own rules depend on what is made alone."""
        return generators_of(self._streams.digest("own-rule", *node.keys)) if self.own else nullcontext()

    def _left(self, update: Update, result: TrainingResult) -> tuple[TrainingResult, OptimizerState]:
        """Return a result as the local algorithm and the draw of samples leave it, and the algorithm's state."""
        own: OptimizerState = {}
        if not self.local.plain:
            difference, own = self.local.left(update, result.difference)
            result = result._replace(difference=difference)
        if update.draw is not None and update.draw.scale != 1.0:
            result = result._replace(difference=read_only(result.difference * np.float32(update.draw.scale)))
        return result, own

    def _report(self, result: TrainingResult) -> Record:
        report = {"loss": result.loss, "loss_rms": result.loss_rms}
        return report if self.known.alone else {**report, PRINT: print_of(result.difference)}

    def _jobs(self, updates: Sequence[Update]) -> list[TrainingJob]:
        """Return the jobs of trainings, whose generators serve until the next call."""
        generators = self._generators.generators(
            [
                (one.client, one.base.version, one.repeat) if one.repeat else (one.client, one.base.version)
                for one in updates
            ]
        )
        jobs, of_each = [], zip(updates, generators, self._rows_of(updates), strict=True)
        if self.local.plain:
            for one, rng, rows in of_each:
                jobs.append(TrainingJob(one.base.vector, rows, one.work, rng, _optimizer_state(one)))
            return jobs
        for (one, rng, rows), start in zip(of_each, self.local.starts(updates), strict=True):
            model, offset, anchors = start
            state, rates = _optimizer_state(one), self.local.rates(one)
            jobs.append(TrainingJob(model, rows, one.work, rng, state, offset, dict(anchors), rates))
        return jobs

    def _rows_of(self, updates: Sequence[Update]) -> list[IntArray]:
        """Return the samples of each training: its client's, or those that the client has drawn among them."""
        found = [self._rows[one.client] for one in updates]
        together: dict[tuple[float, int], list[int]] = {}
        for i, one in enumerate(updates):
            if one.draw is not None:
                together.setdefault((one.draw.probability, one.draw.number), []).append(i)
        for (probability, number), places in together.items():
            client = np.array([updates[i].client for i in places])
            for i, drawn in zip(places, self._draws.places(client, probability, number), strict=True):
                found[i] = found[i][drawn]
        return found


def print_of(difference: Vector) -> float:
    """Return the sum of a difference's bits, as a number that a record holds exactly."""
    return float(int(difference.view(np.uint32).sum(dtype=np.uint64)) % _BITS)


def _unknown(wanted: Sequence[Node], known: Known, found: dict[Model, Recipe] | None = None) -> dict[Node, None]:
    """Return handles without numbers and what they are made of, each after what it needs, without recursion.

    Models that the store has are added to ``found``, with their recipes.
    """
    order: dict[Node, None] = {}
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(wanted)]
    while stack:
        node, after = stack.pop()
        if after:
            order[node] = None
        elif not node.known and node not in seen:
            seen.add(node)
            if isinstance(node, Update):
                if node.before is None and (node.base.known or node.base in order):
                    order[node] = None
                    continue
                known.find(node)
            else:
                recipe = node.recipe
                if known.find(node):
                    if found is not None and recipe is not None:
                        found[node] = recipe
                    continue
            stack.append((node, True))
            stack += [(one, False) for one in reversed(node.needs()) if not one.known]
    return order


class _Walk:
    """Handles on their way to their numbers; one that has them is let go of, so that its memory can be freed.

    Each has a way of its own: a generator that yields what it waits for, and is resumed when that has its numbers.
    """

    def __init__(
        self,
        order: dict[Node, None],
        wanted: Sequence[Node],
        made: Callable[[Model], None],
        drawing: Callable[[Node], AbstractContextManager[None]],
    ) -> None:
        self._drawing, self._made = drawing, made
        self._wanted = {one for one in wanted if isinstance(one, Update)}
        self._ready: list[tuple[int, Update]] = []  # a heap: what is needed first comes first
        self._takers: Counter[Update] = Counter()
        """How often each update is yet to be added to a model."""
        for node in order:
            if isinstance(node, Model) and node.recipe is not None:
                self._takers.update(node.recipe.updates)
        self._waiting: defaultdict[Node, list[Iterator[Node]]] = defaultdict(list)
        self._going = [self._way(rank, node) for rank, node in enumerate(order)]

    def next(self, most: int) -> list[Update]:
        """Make the models that can be made; take out the next updates that can run."""
        self._go_on()
        if len(self._ready) > most:
            return [heapq.heappop(self._ready)[1] for _ in range(most)]
        ready, self._ready = sorted(self._ready), []
        return [update for _, update in ready]

    def done(self, update: Update) -> None:
        self._going += self._waiting.pop(update, ())
        if update.result is not None and not self._takers[update] and update not in self._wanted:
            update.result = None
        self._go_on()

    def _go_on(self) -> None:
        while self._going:
            way = self._going.pop()
            if (needed := next(way, None)) is not None:
                self._waiting[needed].append(way)

    def _way(self, rank: int, node: Node) -> Iterator[Node]:
        """Let an update run once it can, or make a model, which can begin before all of its updates are there."""
        while missing := [one for one in _before(node) if not one.known]:
            yield missing[0]
        if isinstance(node, Update):
            heapq.heappush(self._ready, (rank, node))
            return
        yield from self._growth(node)
        self._made(node)
        self._going += self._waiting.pop(node, ())

    def _growth(self, model: Model) -> Iterator[Update]:
        """Add the updates of a model in their order, each as soon as it has a result; then make the model."""
        recipe = model.recipe
        if recipe is None:
            raise RuntimeError(f"model {model.digest} of version {model.version} is made of nothing")
        if recipe.begin is None:
            with self._drawing(model):
                model.take(*recipe.end(None))
            return
        start = recipe.models[0]
        with naming(round_number=model.version):
            with self._drawing(model):
                total = recipe.begin()
            for update, weight in zip(recipe.updates, recipe.weights, strict=True):
                while (result := update.result) is None:
                    yield update
                sent = result.sent
                if recipe.moved:
                    sent = difference_from(start.vector, update.base.vector, sent)
                total.add(sent, weight)
                self._takers[update] -= 1
                if not self._takers[update]:
                    del self._takers[update]
                    update.result = None
                del result, sent  # nothing here has results in memory while others are computed
            with self._drawing(model):
                model.take(*recipe.end(total))


def _before(node: Node) -> Sequence[Node]:
    if isinstance(node, Update):
        return node.needs()
    return () if node.recipe is None else node.recipe.models


def _nothing(_: object) -> None:
    return


def _optimizer_state(update: Update) -> OptimizerState:
    if update.before is None:
        return {}
    return {name: values for name, values in update.memory.items() if not name.startswith((STEPS, OWN))}


def _without_samples(update: Update) -> TrainingResult:
    """Return the result of a training without samples, which leaves the client's state as it was."""
    zero = read_only(np.zeros_like(update.base.vector))
    before = {name: values for name, values in update.memory.items() if not name.startswith(STEPS)}
    return TrainingResult(zero, math.nan, math.nan, before)
