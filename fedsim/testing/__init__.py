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

from fedsim.lazy import names_of, on_use

if TYPE_CHECKING:
    from fedsim.testing.aggregation import check_aggregation as check_aggregation
    from fedsim.testing.availability import check_availability as check_availability
    from fedsim.testing.compressor import check_compressor as check_compressor
    from fedsim.testing.compute_time import check_compute_time as check_compute_time
    from fedsim.testing.dataset import check_dataset as check_dataset
    from fedsim.testing.discipline import check_discipline as check_discipline
    from fedsim.testing.effect import check_effect as check_effect
    from fedsim.testing.executor import check_executor as check_executor
    from fedsim.testing.fading import check_fading as check_fading
    from fedsim.testing.local_algorithm import check_local_algorithm as check_local_algorithm
    from fedsim.testing.network import check_network as check_network
    from fedsim.testing.partition import check_partition as check_partition
    from fedsim.testing.path_loss import check_path_loss as check_path_loss
    from fedsim.testing.policy import check_policy as check_policy
    from fedsim.testing.selector import check_selector as check_selector
    from fedsim.testing.server_optimizer import check_server_optimizer as check_server_optimizer
    from fedsim.testing.task import check_task as check_task
else:
    __getattr__ = on_use(__name__)


def __dir__() -> list[str]:
    return names_of(__name__)
