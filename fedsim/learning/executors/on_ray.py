"""The executor "ray": actors on a Ray cluster (extra ``ray``), each of which trains by the sequential executor."""

import logging
import math
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from fedsim.errors import FedsimError
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.cores import ENVIRONMENT_VARIABLE
from fedsim.learning.executors.workers.portable import from_bytes, module_path
from fedsim.learning.executors.workers.spreading import NO_MODEL, SpreadingExecutor, spread, unlike
from fedsim.learning.executors.workers.worker import Worker, packed

GPUS_VARIABLE: Final = "FEDSIM_RAY_GPUS"
"""Share of a GPU that each actor takes, as 0.25; 1 by default with the device ``"cuda"``."""
ACTORS_VARIABLE: Final = "FEDSIM_RAY_ACTORS"
"""Number of actors; by default as many as the cluster has room for."""
_TRIES: Final = 3
_PATIENCE_S: Final = 300.0
_MOMENT_S: Final = 0.02
_QUEUED: Final = 2
"""Calls that each actor has at a time, so that it never waits for the next, each from a thread of its own."""


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
    alone = dict.fromkeys(("OMP_NUM_THREADS", ENVIRONMENT_VARIABLE), "1")
    return {"env_vars": {"PYTHONPATH": os.pathsep.join(module_path()), **alone}}


class RayExecutor(SpreadingExecutor):
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
        super().__init__(setup)
        self.ray, _ = connected()
        room = self.ray.cluster_resources()
        free = room.get("GPU", 0.0) / share if share else room.get("CPU", 1.0)
        options = {"num_cpus": 0 if share else 1, "num_gpus": share, "runtime_env": environment()}
        self._kind = self.ray.remote(Worker).options(**options)
        self._made_of = (packed(setup, "", "ray"), self.ray.put(setup.data), device)
        self._turn, self._ended = threading.RLock(), False
        self._actors: list[Any] = []
        self._starting = dict[Any, Any]()
        self._asked = int(count) or max(1, math.floor(free + 1e-9))
        for _ in range(self._asked):
            self._start()
        self._ready(0)

    def _computed(self, jobs: Sequence[Any], costs: Sequence[float]) -> list[Any]:
        models, places = unlike(jobs)
        stored, bare = [self.ray.put(model) for model in models], [job._replace(base=NO_MODEL) for job in jobs]

        def there(thread: int, share: Sequence[int]) -> Any:
            needed = sorted({places[i] for i in share})
            asked = [bare[i] for i in share], [needed.index(places[i]) for i in share], *(stored[i] for i in needed)
            for _ in range(_TRIES):
                actor = self._actor(thread)
                try:
                    return self.ray.get(actor.compute.remote(*asked))
                except self.ray.exceptions.RayError as error:
                    ending = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
                    self._lose(actor)
            raise FedsimError(f"ray: jobs have ended {_TRIES} actors: {ending}")

        return spread(costs, _QUEUED * self._asked, there, ready=self._ready, end=self._end)

    def _ready(self, thread: int) -> bool:
        """Return whether there is an actor for a thread, after a moment; wait for the first actor."""
        end = time.monotonic() + _PATIENCE_S
        while thread >= _QUEUED * len(self._actors):
            for known in self.ray.wait(list(self._starting), timeout=_MOMENT_S)[0]:
                self._take(known)
            if self._actors:
                return thread < _QUEUED * len(self._actors)
            if time.monotonic() > end:
                room = self.ray.cluster_resources()
                raise FedsimError(
                    f"ray: no actor has found room in {_PATIENCE_S:g} s; the cluster has {room.get('CPU', 0):g} CPUs "
                    f"and {room.get('GPU', 0):g} GPUs; allowed: a smaller share ({GPUS_VARIABLE}), or more nodes"
                )
        return True

    def _actor(self, thread: int) -> Any:
        while True:
            self._ready(0)
            with self._turn:
                if self._actors:
                    return self._actors[thread % len(self._actors)]

    def _start(self) -> None:
        actor = self._kind.remote(*self._made_of)
        self._starting[actor.known.remote()] = actor

    def _take(self, ready: Any) -> None:
        """Let an actor that is ready take part, if its results are those of the others."""
        with self._turn:
            actor = self._starting.pop(ready, None)
            if actor is None:
                return
            try:
                known = self.ray.get(ready)
            except self.ray.exceptions.RayError:
                self._start()
                return
            if isinstance(known, bytes):
                raise from_bytes(known)
            if self._actors and known[0] != self.fingerprint:
                raise FedsimError(
                    f"ray: nodes give other bits: {known[0]!r} and {self.fingerprint!r}; allowed: devices of one kind"
                )
            self.fingerprint, self.max_batch = known
            self._actors.append(actor)

    def _lose(self, actor: Any) -> None:
        with self._turn:
            if self._ended:
                raise FedsimError("ray: the run was interrupted")
            if actor in self._actors:
                self._actors.remove(actor)
                self._start()

    def _end(self) -> None:
        with self._turn:
            self._ended = True
            for actor in self._actors:
                self.ray.kill(actor)


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    try:
        number = default if not text else float(text)
    except ValueError:
        number = -1.0
    if number < 0 or (variable == ACTORS_VARIABLE and not number.is_integer()):
        raise FedsimError(f"{variable}: {text!r} is not allowed; it must be a number of at least 0")
    return number
