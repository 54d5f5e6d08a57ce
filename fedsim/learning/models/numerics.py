"""What the bits of a result depend on beside the scenario and fedsim's own code."""

import platform

import numpy as np
import torch


def numerics() -> str:
    """Return the releases of the libraries that compute, and the abilities of the processor."""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__} numpy {np.__version__} {platform.machine()} {capability}"
