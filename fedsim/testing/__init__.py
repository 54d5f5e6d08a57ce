"""Contract checks for parts of your own: each runs small synthetic trials and names the fault that it finds.

In a test::

    from fedsim.testing import check_compute_time, check_selector

    def test_my_selector():
        check_selector(MySelector(cohort=5))

    def test_my_compute_time():
        check_compute_time(MyComputeTime(samples_per_s=50.0))

Names load when they are first used: importing fedsim.testing loads no part of the simulator.
"""

from typing import TYPE_CHECKING

from fedsim.lazy import on_use

if TYPE_CHECKING:
    from fedsim.testing.aggregation import check_aggregation
    from fedsim.testing.availability import check_availability
    from fedsim.testing.compressor import check_compressor
    from fedsim.testing.compute_time import check_compute_time
    from fedsim.testing.dataset import check_dataset
    from fedsim.testing.discipline import check_discipline
    from fedsim.testing.effect import check_effect
    from fedsim.testing.executor import check_executor
    from fedsim.testing.fading import check_fading
    from fedsim.testing.local_algorithm import check_local_algorithm
    from fedsim.testing.network import check_network
    from fedsim.testing.partition import check_partition
    from fedsim.testing.path_loss import check_path_loss
    from fedsim.testing.policy import check_policy
    from fedsim.testing.selector import check_selector
    from fedsim.testing.server_optimizer import check_server_optimizer
    from fedsim.testing.task import check_task
else:
    __getattr__ = on_use(__name__)

__all__ = [
    "check_aggregation",
    "check_availability",
    "check_compressor",
    "check_compute_time",
    "check_dataset",
    "check_discipline",
    "check_effect",
    "check_executor",
    "check_fading",
    "check_local_algorithm",
    "check_network",
    "check_partition",
    "check_path_loss",
    "check_policy",
    "check_selector",
    "check_server_optimizer",
    "check_task",
]


def __dir__() -> list[str]:
    return sorted(__all__)
