"""The generators of a process that code of a user's may draw from: torch's, Python's and NumPy's."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def own_generators(seed: int) -> Iterator[None]:
    """Let all of them begin at a seed, and put them back at the end."""
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - user code draws from it
    try:
        with torch_generator(seed):
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002


@contextmanager
def torch_generator(seed: int) -> Iterator[None]:
    """Let torch's generators begin at a seed, and put them back at the end."""
    known = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpus = range(torch.cuda.device_count()) if known else []
    with torch.random.fork_rng(devices=gpus):
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            torch.cuda.default_generators[gpu].manual_seed(seed)
        yield
