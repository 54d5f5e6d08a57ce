"""The global random numbers of Python and NumPy, which Flower's strategies and many apps use, from the scenario's seed.

The server has one sequence, and each call of a ClientApp one of its own, named by its client and the number of the
call. So a change of times, cohorts or deadlines leaves the numbers of every call as they are, and two runs of one
scenario are equal.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from fedsim.streams import Streams

Seeder = Callable[[int], object]
"""What seeds another library's global generator with a whole number below 2**32, such as ``torch.manual_seed``."""


class Randomness:
    """Seeds the global generators for a server and for the calls of its clients."""

    def __init__(self, streams: Streams, seeders: Sequence[Seeder] = ()) -> None:
        self._streams, self._seeders = streams, tuple(seeders)

    def of_server(self) -> AbstractContextManager[None]:
        return self._seeded("flower-server")

    def of_client(self, client: int, number: int) -> AbstractContextManager[None]:
        return self._seeded("flower-client", client, number)

    @contextmanager
    def _seeded(self, name: str, *keys: int) -> Iterator[None]:
        """Seed the generators; afterwards those of Python and NumPy are as they were."""
        seed = int(self._streams.generator(name, *keys).integers(2**32))
        of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  # what Flower's strategies use
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        for seeder in self._seeders:
            seeder(seed)
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002
