"""Contract checks for people who write their own parts.

Each check puts a part through small synthetic trials and names the fault that it finds::

    from fedsim.testing import check_compute_time, check_selector

    def test_my_selector():
        check_selector(MySelector(cohort=5))

    def test_my_compute_time():
        check_compute_time(MyComputeTime(samples_per_s=50.0))
"""

from fedsim.testing.compute_times import check_compute_time
from fedsim.testing.disciplines import check_discipline
from fedsim.testing.networks import check_network
from fedsim.testing.policies import check_policy
from fedsim.testing.selectors import check_selector

__all__ = ["check_compute_time", "check_discipline", "check_network", "check_policy", "check_selector"]
