"""The option ``fedsim --version``: what a bug report needs, without importing torch."""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import fedsim

LIBRARIES: Final = (
    *("numpy", "scipy", "simpy", "networkx", "scikit-learn", "pyarrow", "pydantic", "torch", "torchvision"),
    *("safetensors", "dp-accounting", "ray", "gymnasium", "flwr"),
)
"""Packages on which results or files depend; those that are not installed are left out."""
_THREADS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "ATEN_CPU_CAPABILITY")
_CPUINFO: Final = Path("/proc/cpuinfo")
_NVIDIA: Final = Path("/proc/driver/nvidia/version")


def version_lines() -> Iterator[str]:
    """Yield the lines of ``fedsim --version``; nothing is imported for them that a start does not import.

    The first is ``fedsim 0.1.0``. The digest of the code tells an edited checkout from a release. Threads and devices
    are what torch will find: its variables, the instructions of the processor, and the driver of a graphics card.
    """
    yield f"fedsim {fedsim.__version__}"
    yield f"code {code_of(Path(fedsim.__file__).parent)}"
    yield f"python {platform.python_version()} ({platform.python_implementation()})"
    yield f"platform {platform.platform()}"
    yield f"processor {_processors()} of {os.cpu_count()} cores, {instructions()}"
    yield f"libraries {', '.join(_libraries())}"
    yield f"graphics {_graphics()}"
    yield f"variables {', '.join(_variables()) or 'none set'}"
    yield f"cache {_cache()}"


def code_of(folder: Path) -> str:
    """Return the digest of the Python files of a package, 16 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.rglob("*.py")):
        for part in (path.relative_to(folder).as_posix().encode(), path.read_bytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def instructions() -> str:
    """Return which instructions of the processor torch uses: ``"AVX512"``, ``"AVX2"``, or what is known of others."""
    chosen = os.environ.get("ATEN_CPU_CAPABILITY")
    if chosen:
        return chosen.upper()
    found = None
    with suppress(OSError):
        found = re.search(r"^flags\s*:(.*)$", _CPUINFO.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        return f"{platform.machine()}, instructions not known"
    flags = set(found[1].split())
    if {"avx512vl", "avx512bw", "avx512dq", "fma"} <= flags:
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= flags else "DEFAULT"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _libraries() -> Iterator[str]:
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            yield f"{name} {version(name)}"


def _graphics() -> str:
    try:
        first = _NVIDIA.read_text(encoding="utf-8").partition("\n")[0]
    except OSError:
        return "no NVIDIA driver found"
    found = re.search(r"\d+\.\d+(\.\d+)?", first)
    return f"NVIDIA driver {found[0] if found else first}"


def _variables() -> Iterator[str]:
    """Yield what the environment sets of fedsim and torch; a home folder is written as ~."""
    for name in sorted({*_THREADS, *(name for name in os.environ if name.startswith("FEDSIM_"))}):
        if name in os.environ:
            yield f"{name}={_short(os.environ[name])}"


def _cache() -> str:
    from fedsim.errors import StoreError
    from fedsim.user_cache import user_cache

    try:
        place = user_cache()
    except StoreError as error:
        return f"none: {error}"
    return f"{_short(str(place))} ({'there' if place.is_dir() else 'not made yet'})"


def _short(path: str) -> str:
    with suppress(RuntimeError, ValueError):  # there is no home folder, or the path is not in it
        return f"~/{Path(path).relative_to(Path.home()).as_posix()}"
    return path
