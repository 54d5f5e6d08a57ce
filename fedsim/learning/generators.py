"""The generators of a process that code of a user's may draw from: torch's, Python's and NumPy's."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from hashlib import blake2b
from typing import Final

import numpy as np

from fedsim.learning.torch_modes import loaded_torch

ONE_AT_A_TIME: Final = threading.RLock()
"""Of the threads of a process, for all that belongs to the process; one lock, since two could wait for each other."""


@contextmanager
def own_generators(seed: int) -> Iterator[None]:
    """Let all of them begin at a seed, and put them back at the end."""
    with kept_generators(every=True):
        seed_generators(seed, every=True)
        yield


@contextmanager
def generators_of(digest: bytes) -> Iterator[None]:
    """Let all of them begin at what a digest says, and put them back at the end."""
    with own_generators(int.from_bytes(blake2b(digest, digest_size=8).digest()) // 2):
        yield


@contextmanager
def generators_of_run(seed: int) -> Iterator[None]:
    """Let those of the CPU begin at a seed, and put them back at the end; threads of the run may have them between."""
    torch = loaded_torch()
    with ONE_AT_A_TIME:
        of_torch = None if torch is None else torch.get_rng_state()
        of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - user code draws from it
        if torch is not None:
            torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        with ONE_AT_A_TIME:
            if torch is not None:
                torch.set_rng_state(of_torch)
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002


@contextmanager
def torch_generator(seed: int) -> Iterator[None]:
    with kept_generators(every=False):
        seed_generators(seed, every=False)
        yield


@contextmanager
def kept_generators(*, every: bool) -> Iterator[None]:
    """Put torch's generators back at the end, or those of Python and NumPy too, which takes half a millisecond."""
    torch = loaded_torch()
    with ONE_AT_A_TIME:
        known = torch is not None and torch.cuda.is_initialized()
        devices = range(torch.cuda.device_count()) if known else []
        with nullcontext() if torch is None else torch.random.fork_rng(devices=devices):
            if not every:
                yield
                return
            of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - user code draws from it
            try:
                yield
            finally:
                random.setstate(of_python)
                np.random.set_state(of_numpy)  # noqa: NPY002


def seed_generators(seed: int, *, every: bool) -> None:
    torch = loaded_torch()
    if torch is not None:
        torch.default_generator.manual_seed(seed)
        for generator in torch.cuda.default_generators if torch.cuda.is_initialized() else ():
            generator.manual_seed(seed)
    if every:
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
