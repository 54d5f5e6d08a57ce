"""The executor "ray": actors on a Ray cluster (extra ``ray``), each of which trains by the sequential executor."""

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import numpy as np

from fedsim.errors import FedsimError, PartError
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.evaluation import Evaluation
from fedsim.learning.executors.catalogue import EXECUTORS
from fedsim.learning.executors.contracts import (
    SEQUENTIAL,
    EvaluationJob,
    TrainingJob,
    TrainingResult,
    TrainingSetup,
)
from fedsim.learning.executors.workers.portable import by_value, from_bytes, module_path, portable

GPUS_VARIABLE: Final = "FEDSIM_RAY_GPUS"
"""Share of a GPU that each actor takes, as 0.25; 1 by default with the device ``"cuda"``."""
ACTORS_VARIABLE: Final = "FEDSIM_RAY_ACTORS"
"""Number of actors; by default as many as the cluster has room for."""
_TRIES: Final = 3
_PATIENCE_S: Final = 300.0
_QUEUED: Final = 2
"""Calls that each actor has at a time, so that it never waits for the next."""
_SHARES: Final = 3
"""Part of an actor's share of what is left that one call has, so that all end at about the same time."""


def connected(address: str = "") -> tuple[Any, bool]:
    """Return the module ray, connected to a cluster, and whether this call has connected it.

    Without an address it is the cluster of ``RAY_ADDRESS``, or one of this machine alone.
    """
    try:
        import ray
    except ImportError:
        raise FedsimError("ray: is not installed; allowed: pip install 'fedsim-des[ray]'") from None
    if ray.is_initialized():
        return ray, False
    ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
    return ray, True


def environment() -> dict[str, dict[str, str]]:
    """Return what Ray's workers need to find fedsim and the user's own modules, with one thread each."""
    return {"env_vars": {"PYTHONPATH": os.pathsep.join(module_path()), "OMP_NUM_THREADS": "1"}}


class Known(NamedTuple):
    """What an actor says of itself when it is ready."""

    fingerprint: str
    max_batch: int


class Actor:
    """A process of the cluster; it computes one call after the other."""

    def __init__(self, content: bytes, data: Dataset, device: str) -> None:
        import torch

        torch.set_num_threads(1)
        self._failed = b""
        try:
            setup = replace(from_bytes(content), data=data)
            self._executor = EXECUTORS.load(SEQUENTIAL)(setup, device)
        except Exception as error:
            self._failed = portable(error)

    def known(self) -> Known | bytes:
        return self._failed or Known(self._executor.fingerprint, self._executor.max_batch)

    def train(self, jobs: Sequence[TrainingJob], places: Sequence[int], *models: Any) -> list[TrainingResult] | bytes:
        given = [job._replace(base=models[at]) for job, at in zip(jobs, places, strict=True)]
        return self._computed(lambda: list(self._executor.train(given)))

    def evaluate(self, jobs: Sequence[EvaluationJob], places: Sequence[int], *models: Any) -> list[Evaluation] | bytes:
        given = [replace(job, model=models[at]) for job, at in zip(jobs, places, strict=True)]
        return self._computed(lambda: list(self._executor.evaluate(given)))

    def _computed(self, call: Callable[[], list[Any]]) -> list[Any] | bytes:
        try:
            return call()
        except Exception as error:
            return portable(error)


class RayExecutor:
    """Trains clients by actors of a Ray cluster; data set and models lie in its object store.

    The bits are those of the sequential executor on that device, whatever the number of actors. What an actor had to do
    that is gone with its node is done by another one; a new actor takes its place where there is room.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``, or ``"cuda"`` for a GPU of each actor's node
    gpus : share of a GPU that each actor takes; that of ``FEDSIM_RAY_GPUS``, or else 1 on a GPU and 0 on the CPU
    actors : how many; ``FEDSIM_RAY_ACTORS``, or else as many as the cluster has room for

    Attributes
    ----------
    fingerprint, max_batch : those of the sequential executor on the actors' device

    Raises
    ------
    FedsimError
        If Ray is not installed, an option is not allowed, or no actor finds room.
    """

    fingerprint: str = SEQUENTIAL
    max_batch: int = 256

    def __init__(
        self, setup: TrainingSetup, device: str = "cpu", gpus: float | None = None, actors: int | None = None
    ) -> None:
        if device not in ("cpu", "cuda"):
            raise FedsimError(f"device: {device!r} is not allowed with the executor 'ray'; allowed: 'cpu', 'cuda'")
        share = _number(GPUS_VARIABLE, float(device == "cuda")) if gpus is None else gpus
        count = _number(ACTORS_VARIABLE, 0.0) if actors is None else float(actors)
        if not 0 <= share <= 1 or (share == 0) == (device == "cuda"):
            raise FedsimError(
                f"gpus: {share:g} is not allowed; allowed: 0 with 'cpu', and up to 1, as 0.25, with 'cuda'"
            )
        self.ray, _ = connected()
        room = self.ray.cluster_resources()
        free = room.get("GPU", 0.0) / share if share else room.get("CPU", 1.0)
        content = by_value(
            replace(setup, data=cast(Any, None), expected=None),
            type(setup.model),
            type(setup.algorithm),
            type(setup.task),
        )
        options = {"num_cpus": 0 if share else 1, "num_gpus": share, "runtime_env": environment()}
        self._kind = self.ray.remote(Actor).options(**options)
        self._made_of = (content, self.ray.put(setup.data), device)
        self._turn = threading.RLock()
        self.actors: list[Any] = []
        self.starting = dict[Any, Any]()
        for _ in range(int(count) or max(1, math.floor(free + 1e-9))):
            self._start()
        self.await_one()

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingResult]:
        """Yield what each client learns; results wait in the object store until they are read."""
        return _Call(self, "train", [job._replace(base=_EMPTY) for job in jobs], [job.base for job in jobs]).results()

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> list[Evaluation]:
        bare = [replace(job, model=_EMPTY) for job in jobs]
        return list(_Call(self, "evaluate", bare, [job.model for job in jobs]).results())

    def _start(self) -> None:
        actor = self._kind.remote(*self._made_of)
        self.starting[actor.known.remote()] = actor

    def take(self, ready: Any) -> None:
        """Let an actor that is ready take part, if its results are those of the others."""
        with self._turn:
            actor = self.starting.pop(ready, None)
            if actor is None:
                return
            try:
                known = self.ray.get(ready)
            except self.ray.exceptions.RayError:
                self._start()
                return
            if isinstance(known, bytes):
                raise from_bytes(known)
            if self.actors and known.fingerprint != self.fingerprint:
                raise FedsimError(
                    f"ray: nodes give other bits: {known.fingerprint!r} and {self.fingerprint!r}; allowed: devices of "
                    "one kind"
                )
            self.fingerprint, self.max_batch = known
            self.actors.append(actor)

    def lose(self, actor: Any) -> None:
        with self._turn:
            if actor in self.actors:
                self.actors.remove(actor)
                self._start()

    def await_one(self) -> None:
        """Wait until there is an actor."""
        end = time.monotonic() + _PATIENCE_S
        while not self.actors:
            for ready in self.ray.wait(list(self.starting), timeout=1.0)[0]:
                self.take(ready)
            if time.monotonic() > end:
                room = self.ray.cluster_resources()
                raise FedsimError(
                    f"ray: no actor has found room in {_PATIENCE_S:g} s; the cluster has {room.get('CPU', 0):g} CPUs "
                    f"and {room.get('GPU', 0):g} GPUs; allowed: a smaller share ({GPUS_VARIABLE}), or more nodes"
                )


_EMPTY: Final = np.empty(0, dtype=np.float32)


class _Call:
    """Jobs of one call, in shares that become smaller the less is left; results come in the jobs' order."""

    def __init__(self, executor: RayExecutor, method: str, jobs: Sequence[Any], models: Sequence[Any]) -> None:
        self._executor, self._method, self._jobs, self._ray = executor, method, jobs, executor.ray
        unlike = {id(model): model for model in models}
        places = dict(zip(unlike, range(len(unlike)), strict=True))
        self._places = [places[id(model)] for model in models]
        self._models = [self._ray.put(model) for model in unlike.values()]
        self._todo, self._given = deque[tuple[range, int]](), 0
        self._running, self._done = dict[Any, tuple[range, int, Any]](), dict[int, tuple[range, Any]]()

    def results(self) -> Iterator[Any]:
        at = 0
        while at < len(self._jobs):
            self._hand_out()
            if at not in self._done:
                self._collect()
                continue
            share, call = self._done.pop(at)
            try:
                found = self._ray.get(call)
            except self._ray.exceptions.RayError:
                self._todo.appendleft((share, 1))  # its node is gone with it
                continue
            yield from _read(found, share)
            at = share.stop

    def _hand_out(self) -> None:
        """Give each actor the calls that it may have at a time."""
        actors = list(self._executor.actors)
        for actor in actors * _QUEUED:
            if sum(one is actor for _, _, one in self._running.values()) >= _QUEUED:
                continue
            left = len(self._jobs) - self._given
            if not self._todo and left:
                end = self._given + max(1, left // (_SHARES * len(actors)))
                self._todo.append((range(self._given, end), 1))
                self._given = end
            if self._todo:
                share, tries = self._todo.popleft()
                needed = sorted({self._places[i] for i in share})
                jobs, places = [self._jobs[i] for i in share], [needed.index(self._places[i]) for i in share]
                call = getattr(actor, self._method).remote(jobs, places, *(self._models[i] for i in needed))
                self._running[call] = (share, tries, actor)

    def _collect(self) -> None:
        """Wait for the next call that ends or actor that is ready; what an actor had that is gone is done again."""
        for call in self._ray.wait([*self._running, *self._executor.starting], timeout=1.0)[0]:
            if call not in self._running:
                self._executor.take(call)
                continue
            share, tries, actor = self._running.pop(call)
            try:
                self._ray.get(call)
                self._done[share.start] = (share, call)
            except self._ray.exceptions.RayError as error:
                if tries == _TRIES:
                    raise FedsimError(f"ray: jobs have ended {tries} actors: {_first_line(error)}") from None
                self._todo.appendleft((share, tries + 1))
                self._executor.lose(actor)
        self._executor.await_one()


def _read(found: list[Any] | bytes, share: range) -> list[Any]:
    if not isinstance(found, bytes):
        return found
    error = from_bytes(found)
    if isinstance(error, PartError) and error.at is not None:
        error.at = share[error.at]
    raise error


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    try:
        number = default if not text else float(text)
    except ValueError:
        number = -1.0
    if number < 0 or (variable == ACTORS_VARIABLE and not number.is_integer()):
        raise FedsimError(f"{variable}: {text!r} is not allowed; it must be a number of at least 0")
    return number


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
