"""Contract checks for parts of your own: each runs small synthetic trials and names the fault that it finds.

In a test::

    from fedsim.testing import check_compute_time, check_selector

    def test_my_selector():
        check_selector(MySelector(cohort=5))

    def test_my_compute_time():
        check_compute_time(MyComputeTime(samples_per_s=50.0))

Names load when they are first used: importing fedsim.testing loads no part of the simulator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedsim.testing.availability import check_availability
    from fedsim.testing.compute_times import check_compute_time
    from fedsim.testing.disciplines import check_discipline
    from fedsim.testing.executors import check_executor
    from fedsim.testing.networks import check_network
    from fedsim.testing.policies import check_policy
    from fedsim.testing.selectors import check_selector
    from fedsim.testing.server_optimizers import check_server_optimizer

_PLACES = {
    "check_availability": "fedsim.testing.availability",
    "check_compute_time": "fedsim.testing.compute_times",
    "check_discipline": "fedsim.testing.disciplines",
    "check_executor": "fedsim.testing.executors",
    "check_network": "fedsim.testing.networks",
    "check_policy": "fedsim.testing.policies",
    "check_selector": "fedsim.testing.selectors",
    "check_server_optimizer": "fedsim.testing.server_optimizers",
}

__all__ = [
    "check_availability",
    "check_compute_time",
    "check_discipline",
    "check_executor",
    "check_network",
    "check_policy",
    "check_selector",
    "check_server_optimizer",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fedsim.testing' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
