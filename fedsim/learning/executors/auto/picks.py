"""The fastest executor for each kind of trainings, in the user's cache.

One JSON file for each kind of trainings, in the folder ``executors``. The first calibration to write a file decides for
all later runs, so that two runs of one scenario have the same executor.
"""

import hashlib
import json
import math
import os
import platform
import tempfile
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import numpy as np

from fedsim.identity import identity
from fedsim.learning.executors.contracts import Expected, TrainingSetup
from fedsim.learning.executors.processes import worker_count
from fedsim.learning.tasks.scores import own_task
from fedsim.user_cache import user_cache

Key = Mapping[str, object]
"""What the speed of executors depends on, by name; plain values."""


def key_of(setup: TrainingSetup, expected: Expected, device: str) -> Key:
    """Return what the speed of executors depends on; sizes of cohorts and of clients as powers of two."""
    return {
        "processor": _processor(),
        "workers": worker_count(),
        "device": _device_name(device),
        "torch": version("torch"),
        "fedsim": version("fedsim-des"),
        "precision": setup.precision,
        "model": identity(setup.model),
        "local": identity(setup.local),
        **({"task": identity(setup.task)} if own_task(setup.task) else {}),
        "shape": list(setup.data.shape),
        "classes": setup.outputs,
        "cohort": _magnitude(expected.cohort),
        "samples": _magnitude(float(np.median(expected.samples))),
    }


def read(key: Key, kinds: Collection[str]) -> str | None:
    """Return the kind that was picked, or None; warn of a file that cannot be used."""
    path = _path(key)
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["key"] == dict(key) and kept["pick"] in kinds:
            return str(kept["pick"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        _warn(f"{path} cannot be read ({error}); executors are compared again")
        return None
    _warn(f"{path} does not say which executor is the fastest; executors are compared again")
    return None


def keep(key: Key, pick: str, updates_per_s: Mapping[str, float], kinds: Collection[str]) -> str:
    """Store a pick and return it, or that of another process which was earlier; warn if it cannot be stored."""
    path = _path(key)
    table = {"pick": pick, "updates_per_s": dict(updates_per_s), "key": dict(key)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".part") as part:
            part.write(json.dumps(table, indent=1))
            part.flush()
            with suppress(FileExistsError):
                os.link(part.name, path)
                return pick
            with warnings.catch_warnings(action="ignore"):
                earlier = read(key, kinds)
            if earlier is None:
                path.write_text(json.dumps(table, indent=1), encoding="utf-8")
            return earlier or pick
    except OSError as error:
        _warn(f"{path} cannot be written ({error}); the next run compares executors again")
        return pick


def _path(key: Key) -> Path:
    digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=12).hexdigest()
    return user_cache() / "executors" / f"{digest}.json"


def _magnitude(number: float) -> int:
    return round(math.log2(max(number, 1)))


def _processor() -> str:
    """Return the name of the processor, on Linux that of the first core."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _device_name(device: str) -> str:
    import torch

    if device.startswith("cuda") and torch.cuda.is_available():
        return f"{device} {torch.cuda.get_device_name(device)}"
    return device


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)
