"""How many processes train, without torch."""

import os
import sys
from typing import Final

from fedsim.errors import FedsimError

ENVIRONMENT_VARIABLE: Final = "FEDSIM_WORKERS"
"""Number of processes that train, that of the run included; by default one for each core that it may use."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def worker_count() -> int:
    asked = os.environ.get(ENVIRONMENT_VARIABLE)
    if not asked:
        return usable_cores()
    if not asked.isdecimal() or int(asked) < 1:
        raise FedsimError(f"{ENVIRONMENT_VARIABLE}: {asked!r} is not allowed; it must be a whole number, at least 1")
    return int(asked)
