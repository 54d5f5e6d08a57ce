"""The executor "processes": this process and workers of one thread each, which give the bits of the sequential one."""

import itertools
import pickle
import weakref
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final

from fedsim.learning.executors.contracts import TrainingSetup, check_cpu
from fedsim.learning.executors.cores import worker_count
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.spreading import NO_MODEL, SpreadingExecutor, spread, unlike
from fedsim.learning.executors.workers import pool, worker
from fedsim.learning.executors.workers.segments import Segment

_NUMBERS: Final = itertools.count()
_DATA: Final[dict[int, Segment]] = {}


class ProcessesExecutor(SpreadingExecutor):
    """Trains clients in this process and in workers, which are started once and serve all runs of this process.

    The bits are those of the sequential executor, whatever the number of processes. The data set and models lie in
    shared memory. Calls may come from several threads.

    Parameters
    ----------
    setup : TrainingSetup
    device : ``"cpu"``

    Attributes
    ----------
    fingerprint, max_batch : those of the sequential executor
    workers : how many processes take part

    Raises
    ------
    FedsimError
        If another device is asked for, or the model cannot be sent.
    """

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        check_cpu("processes", device)
        super().__init__(setup)
        self.workers, own = worker_count(), SequentialExecutor(setup)
        self.fingerprint, self.max_batch, self._trainer = own.fingerprint, own.max_batch, own.trainer
        content = worker.packed(setup, own.print, "processes")
        # Its data are shared by all setups that have them.
        if id(setup.data) not in _DATA:
            _DATA[id(setup.data)] = Segment(setup.data)
            weakref.finalize(setup.data, _DATA.pop, id(setup.data), None)
        self._held = Segment(pickle.PickleBuffer(content)), _DATA[id(setup.data)]
        self._sent = worker.Sent(next(_NUMBERS), *(one.shared for one in self._held))

    def _computed(self, jobs: Sequence[Any], costs: Sequence[float]) -> list[Any]:
        """Return the results of all jobs; this process takes jobs too, from the short end."""
        models, places = unlike(jobs)
        segment = Segment(models if self.workers > 1 else ())
        bare = [job._replace(base=NO_MODEL) for job in jobs]

        def there(share: Sequence[int]) -> Any:
            asked = self._sent, [bare[i] for i in share], [places[i] for i in share], segment.shared
            return pool.pool(self.workers - 1).submit(worker.compute, *asked)

        def here(index: int) -> Any:
            return self._trainer.compute(jobs[index], index)

        with self._trainer.turn():
            if self.workers == 1:
                return [here(index) for index in range(len(jobs))]
            try:
                return spread(costs, self.workers, there, here, pool.end)
            except BrokenProcessPool as error:
                raise pool.lost(error) from None
