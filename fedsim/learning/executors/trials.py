"""What is tried before a run: whether model, task and data fit, and whether trainings by a user's own code repeat."""

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsim.answers import FAILURES, attributed, in_a_line
from fedsim.code_digest import is_builtin
from fedsim.errors import FedsimError, ScenarioError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.executors.chunks import Chunk
from fedsim.learning.executors.contracts import StateError, TrainingJob, TrainingResult, TrainingSetup
from fedsim.learning.executors.objective import Objective
from fedsim.learning.executors.own_code import named_faults
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.generators import seed_generators
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.inputs import Inputs
from fedsim.learning.models.own.trial import content_of
from fedsim.learning.models.settings import MODELS, own_name
from fedsim.learning.tasks.contracts import TASKS
from fedsim.learning.tasks.of_labels import Classification

_SAMPLES: Final = 12
_STEPS: Final = 2
_AGAIN: Final = 8, 128
"""After how many trainings a standard one is repeated at first, and at last."""
_OF_A_BATCH: Final = 2
"""Samples whose scores are tried: a row for a batch of one would pass for that of the sample."""
_TOGETHER: Final = 200
"""Samples that are tried at once."""


def check_fit(setup: TrainingSetup) -> None:
    """Refuse a task whose loss or metrics cannot be made of the model's scores, or whose loss has no gradient.

    A model of the user's own is tried on the smallest and the largest tokens too: mapped over clients, torch does not
    check indices, and an embedding that is too small would read the numbers of another client.
    """
    width = setup.scores.width
    known = type(setup.task) is Classification and all(is_builtin(type(one)) for one in setup.task.metrics)
    if known and own_name(setup.model) is None:
        return
    data, objective = setup.data, Objective(setup)
    module = build_flat(setup.model, data.shape, setup.outputs, setup.seed).module.eval()
    with torch.no_grad(), named_faults(setup):
        for samples in _extremes(data) if own_name(setup.model) is not None else ():
            module(Inputs(data).of(torch.from_numpy(samples)))
        scores = module(Inputs(data).of(torch.from_numpy(data.train_x[:_OF_A_BATCH].copy()))).float()
        targets = torch.from_numpy(data.train_y[:_OF_A_BATCH].copy())
        fits = (
            f"learning.task: {TASKS.kind_of(setup.task)!r} does not fit learning.model = "
            f"{MODELS.kind_of(setup.model)!r}, whose scores of a sample have the shape {tuple(scores.shape[1:])} where "
            f"its targets have {tuple(targets.shape[1:])}"
        )
        try:
            found = objective.sums(scores, targets)
            widths = objective.widths(scores, targets, setup.outputs)
        except FedsimError:
            raise
        except FAILURES as failure:
            raise attributed(failure) or ScenarioError(f"{fits} ({in_a_line(str(failure))})") from failure
    for name, (given, declared) in widths.items():
        if given != declared:
            raise ScenarioError(
                f"learning.task.metrics: {name}: sums of {given} numbers for each sample are not allowed; allowed: "
                f"{declared}, as its width says"
            )
    if tuple(found.shape) != (len(targets), width):
        raise ScenarioError(f"{fits}: loss and metrics give {tuple(found.shape[1:])} sums, and {width} are declared")
    if not is_builtin(type(setup.task)):
        # The contract of a task refuses losses without a gradient, of which nothing would be learned.
        objective.losses(scores.clone().requires_grad_(), targets)


def _extremes(data: Dataset) -> Iterator[NDArray[Any]]:
    """Yield samples with the smallest and the largest whole number at each place."""
    for samples in (data.train_x, data.test_x) if data.form in ("tokens", "tensors") else ():
        if samples.dtype.kind in "iu":
            inner = tuple(range(1, samples.ndim)) if samples.ndim > 2 else ()
            rows = np.unique([samples.max(inner).argmax(0), samples.min(inner).argmin(0)])
            yield from (samples[rows[start : start + _TOGETHER]] for start in range(0, rows.size, _TOGETHER))


def standard_jobs(trainer: Trainer) -> list[TrainingJob]:
    """Return two jobs of two steps on samples from all over the data; the last batch is a short one, where some are."""
    local, layout, count = trainer.setup.local, trainer.flat.layout, len(trainer.setup.data.train_y)
    full = local.batch_size
    size = min(_SAMPLES if full > _SAMPLES else full + max(1, full // 2), count)
    work = _STEPS / max(1, int(local.batches(size, 1.0, layout.smallest_batch)))
    rows = np.linspace(0, count - 1, size).astype(np.int64)
    every = (rows, rows[::-1].copy())
    return [TrainingJob(layout.initial, one, work, np.random.default_rng(place)) for place, one in enumerate(every)]


def checked_print(trainer: Trainer) -> str:
    """Return a digest of what standard jobs give; refuse what gives other numbers in another order of clients.

    It is empty where no code of a user's takes part. A training is repeated now and then, so that no late state passes.
    """
    if trainer.sandbox is None or not int(trainer.setup.local.batches(_SAMPLES, 1.0, 2)):
        return ""
    try:
        with trainer.turn():
            found, again = _print(trainer), _print(trainer, turned=True)
    except StateError:
        raise
    except (FedsimError, *FAILURES):
        return ""  # the first training fails too, and names its client
    if found != again:
        raise _changed(trainer)
    rechecks = _rechecks(trainer, found)
    trainer.then = lambda: next(rechecks, None)
    return found


def _rechecks(trainer: Trainer, wanted: str) -> Iterator[None]:
    """Repeat a standard training after 8, 16, 32, 64 and then each 128 trainings, for each of which it is resumed."""
    left, most = _AGAIN
    while True:
        for _ in range(left - 1):
            yield
        left = min(2 * left, most)
        if _print(trainer) != wanted:
            raise _changed(trainer)
        yield


def _print(trainer: Trainer, *, turned: bool = False) -> str:
    """Return a digest of what the standard jobs give, in their order or the other way round, and of an evaluation."""
    step, rows = -1 if turned else 1, np.arange(min(_SAMPLES, len(trainer.setup.data.train_y)))
    trained = [trainer.train(job) for job in standard_jobs(trainer)[::step]][::step]
    bits = [one.difference.tobytes() + np.array([one.loss, one.loss_rms]).tobytes() for one in trained]
    scored = trainer.score(Chunk(trainer.flat.layout.initial, rows, 0, rows.size)).tobytes()
    return hashlib.blake2b(b"".join(bits) + scored, digest_size=16).hexdigest()


def _changed(trainer: Trainer) -> StateError:
    name = own_name(trainer.setup.model) or type(trainer.setup.task).__name__
    return StateError(
        f"model {name}: the same training gave other numbers after another client's; something outside of the "
        "module takes part, such as a global, a clock or an object that cannot be copied",
        "allowed: a model, a task and an algorithm whose results depend on numbers, samples and generators",
    )


def check_same(name: str, found: str, wanted: str) -> None:
    """Refuse a module of another process that has another print."""
    if wanted and found != wanted:
        raise StateError(
            f"model {name}: it computes other numbers in a process of its own",
            "allowed with the executor 'processes': models that each process makes alike; or choose 'sequential'",
        )


def check_alike(
    trainer: Trainer,
    executor: str,
    how: str,
    train: Callable[[Sequence[TrainingJob]], Sequence[TrainingResult]],
    tolerance: float = 0.0,
) -> None:
    """Refuse a module with a state that an executor would not keep, or to which its trainings give other numbers.

    Such an executor records what a step calls. The tolerance is relative to the largest change of a number.
    """
    allowed = f"allowed with the executor {executor!r}: modules without a state beside their numbers"
    if changed := _kept_beside(trainer):
        raise FedsimError(f"learning.model: a pass changes {changed}; {allowed}; any with 'sequential'")
    found = train(standard_jobs(trainer))
    with trainer.turn():
        wanted = [trainer.train(job) for job in standard_jobs(trainer)]
    for one, right in zip(found, wanted, strict=True):
        apart, most = (float(np.abs(array).max()) for array in (one.difference - right.difference, right.difference))
        same = one.difference.tobytes() == right.difference.tobytes()
        if not (same or (tolerance and apart <= tolerance * (most + 1e-6))):
            much = f"{apart:.1e} where a training changes numbers by up to {most:.1e}"
            raise FedsimError(f"learning.model: {how} by {much}; {allowed}; any with 'sequential'")


def _kept_beside(trainer: Trainer) -> str:
    """Return what a training changes beside numbers and torch's generator, in words; empty if nothing.

    Tensors that passes leave to look at do not count: where a later step takes them up, its numbers are others.
    """
    if trainer.sandbox is None:
        return ""
    parts = trainer.setup.task, trainer.setup.algorithm
    before = [content_of(one) for one in parts]
    (job, _), (again, _) = standard_jobs(trainer), standard_jobs(trainer)
    seed = trainer.drawing.batches(again).seed
    with trainer.turn(), trainer.sandbox.noting() as changed:
        trainer.train(job)
        drawn = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002 - user code draws from it
        seed_generators(seed, every=True)
        seeded = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002
    if kept := [name for name, value in changed if not _is_shown(value)]:
        return f"the attribute {kept[0]}"
    for one, known in zip(parts, before, strict=True):
        if content_of(one) != known:
            return f"the state of {type(one).__name__}"
    return "" if drawn == seeded else "the generators of Python or NumPy"


def _is_shown(value: Any) -> bool:
    """Return whether a value is a tensor, or a table or list of some."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, Tensor) or (bool(inner) and all(map(_is_shown, inner)))
