"""Runs as tasks of a Ray cluster (extra ``ray``): the tables come back through its object store."""

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from fedsim.learning.executors.on_ray import connected, environment
from fedsim.studies.running.records import Done, Ended, Task, run_pack


def on_ray(
    packs: Sequence[Sequence[Task]],
    blobs: Mapping[str, bytes],
    options: Mapping[str, Any],
    address: str = "",
    jobs: int | None = None,
) -> Generator[Ended, None, None]:
    """Run packs on a cluster, and yield what has ended; without an address that of ``RAY_ADDRESS``, or this machine."""
    ray, begun = connected(address)
    task = ray.remote(run_pack).options(num_cpus=1, max_retries=3, runtime_env=environment())
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
