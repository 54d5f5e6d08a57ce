"""What the bits of a result depend on beside the scenario."""

import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import torch


def numerics() -> str:
    """Return the releases of fedsim and of the libraries that compute, and the abilities of the processor."""
    capability = torch.backends.cpu.get_cpu_capability()
    libraries = f"torch {torch.__version__} numpy {np.__version__}"
    return f"fedsim {_release()} {libraries} {platform.machine()} {capability}"


def _release() -> str:
    """Return fedsim's release; a checkout that is not installed has none, and `ARITHMETIC` alone counts."""
    try:
        return version("fedsim-des")
    except PackageNotFoundError:
        return "-"
