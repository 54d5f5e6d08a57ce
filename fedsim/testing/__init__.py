"""Contract checks for parts of your own: each runs small synthetic trials and names the fault that it finds.

In a test::

    from fedsim.testing import check_compute_time, check_selector

    def test_my_selector():
        check_selector(MySelector(cohort=5))

    def test_my_compute_time():
        check_compute_time(MyComputeTime(samples_per_s=50.0))
"""

from fedsim.testing.availability import check_availability
from fedsim.testing.compute_times import check_compute_time
from fedsim.testing.disciplines import check_discipline
from fedsim.testing.executors import check_executor
from fedsim.testing.networks import check_network
from fedsim.testing.policies import check_policy
from fedsim.testing.selectors import check_selector
from fedsim.testing.server_optimizers import check_server_optimizer

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
