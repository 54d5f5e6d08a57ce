"""The executor "ray": actors on a Ray cluster (extra ``ray``), each of which trains by the sequential executor."""

import logging
import math
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final

from fedsim.errors import FedsimError
from fedsim.learning.executors.contracts import TrainingSetup
from fedsim.learning.executors.cores import ENVIRONMENT_VARIABLE
from fedsim.learning.executors.portable import from_bytes, module_path
from fedsim.learning.executors.spreading import NO_MODEL, SpreadingExecutor, spread, unlike
from fedsim.learning.executors.worker import Worker, packed

GPUS_VARIABLE: Final = "FEDSIM_RAY_GPUS"
"""Share of a GPU that each actor takes, as 0.25; 1 by default with the device ``"cuda"``."""
ACTORS_VARIABLE: Final = "FEDSIM_RAY_ACTORS"
"""Number of actors; by default as many as the cluster has room for."""
_TRIES: Final = 3
_PATIENCE_S: Final = 300.0
_MOMENT_S: Final = 0.02
_QUEUED: Final = 2
"""Calls that each actor has at a time, so that it never waits for the next."""


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
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        if device not in ("cpu", "cuda"):
            raise FedsimError(f"device: {device!r} is not allowed with the executor 'ray'; allowed: 'cpu', 'cuda'")
        share, count = _number(GPUS_VARIABLE, float(device == "cuda")), _number(ACTORS_VARIABLE, 0.0)
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
        self._turn, self._ended = threading.Lock(), False
        self._actors, self._starting = list[Any](), dict[Any, Any]()
        self._free: SimpleQueue[Any] = SimpleQueue()
        """Actors that have room for a call, each as often as it has."""
        self._asked = int(count) or max(1, math.floor(free + 1e-9))
        for _ in range(self._asked):
            self._start()
        self._free.put(self._actor())

    def _computed(self, jobs: Sequence[Any], costs: Sequence[float]) -> list[Any]:
        models, places = unlike(jobs)
        stored, bare = [self.ray.put(model) for model in models], [job._replace(base=NO_MODEL) for job in jobs]

        def there(share: Sequence[int]) -> Any:
            needed = sorted({places[i] for i in share})
            asked = [bare[i] for i in share], [needed.index(places[i]) for i in share], *(stored[i] for i in needed)
            for _ in range(_TRIES):
                actor = self._actor()
                try:
                    found = self.ray.get(actor.compute.remote(*asked))
                except self.ray.exceptions.RayError as error:
                    ending = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
                    self._lose(actor)
                else:
                    self._free.put(actor)
                    return found
            raise FedsimError(f"ray: jobs have ended {_TRIES} actors: {ending}")

        takers = _QUEUED * self._asked
        with ThreadPoolExecutor(takers) as threads:
            return spread(costs, takers, lambda share: threads.submit(there, share), end=self._end)

    def _actor(self) -> Any:
        """Return an actor that has room for a call, as soon as there is one."""
        end = time.monotonic() + _PATIENCE_S
        while not self._ended and (self._actors or time.monotonic() < end):
            with self._turn:
                for known in self.ray.wait([*self._starting], timeout=0)[0] if self._starting else ():
                    self._take(known)
            with suppress(Empty):
                actor = self._free.get(timeout=_MOMENT_S)
                if actor in self._actors:
                    return actor
        room = self.ray.cluster_resources()
        raise FedsimError(
            f"ray: no actor has found room in {_PATIENCE_S:g} s; the cluster has {room.get('CPU', 0):g} CPUs "
            f"and {room.get('GPU', 0):g} GPUs; allowed: a smaller share ({GPUS_VARIABLE}), or more nodes"
        )

    def _start(self) -> None:
        actor = self._kind.remote(*self._made_of)
        self._starting[actor.known.remote()] = actor

    def _take(self, ready: Any) -> None:
        """Let an actor that is ready take part, if its results are those of the others."""
        actor = self._starting.pop(ready)
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
        for _ in range(_QUEUED):
            self._free.put(actor)

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
