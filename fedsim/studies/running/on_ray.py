"""Runs as tasks of a Ray cluster (extra ``ray``): the tables come back through its object store."""

import logging
import os
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from fedsim.errors import FedsimError
from fedsim.learning.executors.workers.portable import module_path
from fedsim.studies.running.local import Ended
from fedsim.studies.running.records import Done, Task, run_pack


def on_ray(
    packs: Sequence[Sequence[Task]],
    blobs: Mapping[str, bytes],
    options: Mapping[str, Any],
    address: str = "",
    jobs: int | None = None,
) -> Generator[Ended, None, None]:
    """Run packs on a cluster, and yield what has ended; without an address that of ``RAY_ADDRESS``, or this machine."""
    try:
        import ray
    except ImportError:
        raise FedsimError("on: ray is not installed; allowed: pip install 'fedsim-des[ray]'") from None
    begun = not ray.is_initialized()
    if begun:
        ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
    known = {"PYTHONPATH": os.pathsep.join(module_path()), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    task = ray.remote(run_pack).options(num_cpus=1, max_retries=3, runtime_env={"env_vars": known})
    todo, waiting = deque(packs), dict[Any, Sequence[Task]]()
    try:
        while todo or waiting:
            while todo and (jobs is None or len(waiting) < jobs):
                pack = todo.popleft()
                waiting[task.remote({one.arm: blobs[one.arm] for one in pack}, list(pack), dict(options))] = pack
            ready, _ = ray.wait(list(waiting))
            pack = waiting.pop(ready[0])
            try:
                ended: Ended = ray.get(ready[0])
            except ray.exceptions.RayError as error:
                text = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                ended = [(Done(one.run, one.rounds, error=text), b"") for one in pack]
            yield ended
    finally:
        for left in waiting:
            ray.cancel(left, force=True)
        if begun:
            ray.shutdown()
