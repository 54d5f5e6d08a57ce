"""What parts of the user's own do on fixed probes: these numbers belong to the identity of every result.

The text of a part does not show what it reads: a file of weights, a constant of a module, a configuration object, an
environment variable. Its numbers do, where the probes exercise it; for the rest what the store gives is verified.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from fedsim.answers import FAILURES, unchecked
from fedsim.answers.opened_files import NOT_TOLD, UNREADABLE, OpenedFiles
from fedsim.arrays import BoolArray
from fedsim.code_digest import is_builtin
from fedsim.foreign import Foreign
from fedsim.identity import copied, identity, user_code
from fedsim.learning.aggregation.contracts import Aggregator
from fedsim.learning.algorithms.contracts import ALGORITHM, Gathered, LocalSteps, LocalTask
from fedsim.learning.compression.compressors import Compressor
from fedsim.learning.executors.chunks import Chunk
from fedsim.learning.executors.contracts import EvaluationJob, TrainingJob, TrainingSetup
from fedsim.learning.generators import own_generators
from fedsim.learning.lineage.asked import digest_of
from fedsim.learning.local_training import LocalTraining
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.server_optimizers.contracts import ServerOptimizer
from fedsim.learning.steps.contracts import Message, Sender, UpdateStep
from fedsim.privacy.central import NoiseAtServer
from fedsim.privacy.mechanisms import Mechanism

_SAMPLES: Final = 8
_BATCH: Final = 4
_ROUNDS: Final = (*range(20), 100, 1000)
_NUMBERS: Final = 12
_MOST_NUMBERS: Final = 100_000
_MOST_UPDATES: Final = 100
_STEPS: Final = 100
_AWAY: Final = 0.05
"""Spread of the noise on the initial numbers, so that layers which begin at zero take part."""


class Behaviour(NamedTuple):
    """A digest of what parts do, empty for fedsim's own; why nothing may be shared, in words."""

    text: str = ""
    untold: str = ""


OF_FEDSIM: Final = Behaviour()


def is_own(part: object) -> bool:
    """Return whether code of the user's own takes part."""
    part = unchecked(part)
    return part is not None and (isinstance(part, Foreign) or not is_builtin(type(part)) or bool(user_code(part)))


def name_of(part: object) -> str:
    part = unchecked(part)
    return part.place if isinstance(part, Foreign) else f"{type(part).__module__}:{type(part).__qualname__}"


def trains_by_own_code(setup: TrainingSetup) -> bool:
    return any(map(is_own, (setup.model, setup.task, setup.algorithm, setup.local)))


def behaviour_of_training(setup: TrainingSetup, layout: ModelLayout, opened: OpenedFiles) -> Behaviour:
    """Return the behaviour of a run's trainings and evaluations, metrics left aside.

    It covers the initial numbers, two short trainings of plain steps from numbers beside them, their loss and that of
    an evaluation, twice over, and the files that have been opened meanwhile.
    """
    local = LocalTraining(learning_rate=0.01, batch_size=_BATCH, epochs=1, schedule=setup.local.schedule)
    task = setup.task.model_copy(update={"metrics": ()})
    tried = replace(setup, local=local, task=copied(task), algorithm=copied(setup.algorithm), expected=None)
    parts = (setup.model, setup.task, setup.algorithm, setup.local.schedule)
    own = "learning: " + ", ".join(name_of(part) for part in parts if is_own(part))
    found, files = _twice(own, lambda: _standard_job(tried, layout), "samples"), opened.contents()
    if found.untold:
        return found
    if opened.outside:
        return Behaviour(uuid.uuid4().hex, opened.untold(own))
    if UNREADABLE in files.values():
        return _untold(f"{own} has read a file that cannot be read again")
    return Behaviour(digest_of("behaviour", found.text, *_bytes(layout.constants), *_bytes(files)))


def behaviour_of_metrics(setup: TrainingSetup, layout: ModelLayout) -> str:
    """Return a digest of what the user's own metrics make of some samples; empty for fedsim's."""
    if not any(map(is_own, setup.task.metrics)):
        return ""
    from fedsim.learning.executors.sequential import SequentialExecutor

    try:
        with own_generators(0):
            (found,) = SequentialExecutor(setup).evaluate([EvaluationJob(_beside(layout), _rows(setup))])
    except FAILURES:  # the run says what fails
        return uuid.uuid4().hex
    return digest_of("metrics", *found.sums, *map(repr, found.metrics.values()))


class TriedRules:
    """What rules of a run are in digests; one of the user's own is tried once, on few and on many numbers.

    ``tensors`` are the sizes of the arrays of trained numbers, and ``clients`` is how many updates there may be.
    """

    def __init__(self, numbers: int, tensors: Sequence[int], clients: int) -> None:
        self._tried_on = [([_NUMBERS - 4, 4], _NUMBERS, 7)]
        if numbers <= _MOST_NUMBERS:
            self._tried_on.append((list(tensors), numbers, min(clients, _MOST_UPDATES)))
        else:
            self._tried_on.append(([_MOST_NUMBERS - 4, 4], _MOST_NUMBERS, 7))
        self._tried: dict[int, tuple[object, Behaviour]] = {}

    def behaviour(self, part: object) -> Behaviour:
        """Return what a rule makes of fixed arrays, twice over."""
        if not is_own(part):
            return OF_FEDSIM
        if id(part) not in self._tried:
            self._tried[id(part)] = part, self._behaviour(part)
        return self._tried[id(part)][1]

    def identity(self, part: object) -> str:
        """Return what stands for a rule in digests: its identity, and for one of the user's own what it does."""
        return f"{identity(part)} {self.behaviour(part).text}" if is_own(part) else identity(part)

    def _behaviour(self, part: object) -> Behaviour:
        tried = copied(unchecked(part))

        def probe() -> Iterator[bytes]:
            with own_generators(0):
                yield from _bytes([list(_probe(tried, *sizes)) for sizes in self._tried_on])

        return _twice(f"learning: {name_of(part)}", probe, "arrays")


def _twice(who: str, probe: Callable[[], Iterator[bytes]], same: str) -> Behaviour:
    try:
        first, again = (digest_of(*probe()) for _ in range(2))
    except FAILURES as failure:  # the run says what fails, with the client and the round
        return _untold(f"{who} fails on a probe ({type(failure).__name__})")
    return Behaviour(first) if first == again else _untold(f"{who} gives other numbers for the same {same}")


def _untold(why: str) -> Behaviour:
    return Behaviour(uuid.uuid4().hex, f"{why}; {NOT_TOLD}")


def _standard_job(setup: TrainingSetup, layout: ModelLayout) -> Iterator[bytes]:
    """Yield the bits of the standard trainings and evaluation, of a model that is built for them."""
    from fedsim.learning.executors.trainer import Trainer

    algorithm = ALGORITHM.checked(setup.algorithm, corrects=setup.algorithm.corrects)
    with own_generators(0):
        trainer, part = Trainer(setup), algorithm.part(layout)
        model, memory, shared = _beside(layout), dict[str, Any](), dict[str, Any]()
        yield trainer.flat.layout.initial.tobytes()
        yield from _bytes([part, algorithm.pull, algorithm.numbers_more(layout)])
        yield from _bytes([algorithm.shift(version) for version in _ROUNDS])
        if is_own(setup.local.schedule):
            yield from _bytes([setup.local.schedule.factors(version, 5) for version in _ROUNDS])
        if algorithm.reweighs:
            weights, counts = np.array([0.2, 0.3, 0.5]), np.array([1, 4, 9])
            yield from _bytes([algorithm.weights(LocalSteps(weights, counts, 0.1 / counts, 0.0, algorithm.pull))])
        for number in range(2):
            steps = int(setup.local.batches(_rows(setup).size, 1.0, layout.smallest_batch))
            task = LocalTask(layout, model, shared, memory, part, steps, setup.local.learning_rate, 3)
            start = algorithm.begin(task)
            rates = None
            if is_own(setup.local.schedule):
                rates = setup.local.learning_rate * setup.local.schedule.factors(number, steps)
            rng = np.random.default_rng(number)
            job = TrainingJob(start.model, _rows(setup), 1.0, rng, {}, start.offset, dict(start.anchors), rates)
            with trainer.turn():
                result = trainer.train(job)
            memory = dict(algorithm.end(task, result.difference))
            yield from _bytes([result.difference, result.loss, result.loss_rms, start, memory])
            yield from _bytes([algorithm.own_model(layout, model, memory)])
            if algorithm.server_keeps:
                update = result.difference.astype(np.float64)
                drift = update * algorithm.drift_weight(steps, setup.local.learning_rate)
                stepped = algorithm.step(Gathered(update, drift, 1, shared, layout, 3))
                shared = dict(stepped.shared)
                yield from _bytes([stepped.update, shared])
        with trainer.turn():
            yield trainer.score(Chunk(model, _rows(setup), 0, _rows(setup).size)).tobytes()


def _beside(layout: ModelLayout) -> Any:
    """Return numbers near the initial ones; buffers stay."""
    moved: BoolArray = np.arange(layout.initial.size) < layout.parameters
    noise = np.random.default_rng(0).normal(scale=_AWAY, size=layout.initial.size) * moved
    return (layout.initial + noise).astype(np.float32)


def _rows(setup: TrainingSetup) -> Any:
    count = len(setup.data.train_y)
    return np.linspace(0, count - 1, min(count, _SAMPLES)).astype(np.int64)


def _probe(part: object, tensors: list[int], size: int, clients: int) -> Iterator[object]:
    """Yield what a rule gives: a server's steps, an aggregation, messages, a release."""
    rng = np.random.default_rng(0)
    one, other = (rng.normal(size=size).astype(np.float32) for _ in range(2))
    if isinstance(part, ServerOptimizer):
        state = part.init(size)
        for _ in range(_STEPS if size == _NUMBERS else 3):
            one, state = part.step(one, other, state)
            yield [one, dict(state)]
    elif isinstance(part, Aggregator):
        many = rng.normal(size=(max(clients, part.least_updates), size)).astype(np.float32)
        yield part.combine(many, np.full(len(many), 1 / len(many)), size - 2)
    elif isinstance(part, Compressor):
        trained = one[: sum(tensors)]
        yield [part.bits(tensors), part.compress(trained, tensors, np.random.default_rng(1))]
    elif isinstance(part, UpdateStep):
        memory = dict[int, Any]()
        senders = [Sender(client, version, 0, None) for version in (0, 3) for client in (0, 1, 2)]
        for sender in senders:
            message = Message(sender, one, None, memory.get(sender.client, {}))
            part.client(message)
            memory[sender.client] = message.memory
            yield [part.acts_on(None), list(part.identity(sender)), message.numbers, dict(message.memory)]
        added = part.server(senders, np.full(len(senders), 1 / len(senders)))
        yield [part.bits(32.0 * size, tensors), added and added()]
    elif isinstance(part, Mechanism):
        exempt = np.arange(size) >= size - 2
        yield part.release(one, 1.0, exempt, np.random.default_rng(1))
        if isinstance(part, NoiseAtServer):
            yield part.aggregate_noise([1.0, 2.0], [0, 1], [0.5, 0.5], exempt, np.random.default_rng(1))


def _bytes(values: Mapping[str, Any] | Sequence[Any]) -> Iterator[bytes]:
    pairs: Iterable[tuple[Any, Any]] = sorted(values.items()) if isinstance(values, Mapping) else enumerate(values)
    for name, value in pairs:
        yield str(name).encode()
        if isinstance(value, np.ndarray):
            yield f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
        elif isinstance(value, Mapping | list | tuple):
            yield from _bytes(value)
        else:
            yield repr(value).encode()
