"""Contract checks for people who write their own parts.

`check_selector` puts a selector through rounds with a small synthetic server and says what is wrong with it::

    from fedsim.testing import check_selector

    def test_my_selector():
        check_selector(MySelector(cohort=5))
"""

from fedsim.testing.disciplines import check_discipline
from fedsim.testing.networks import check_network
from fedsim.testing.selectors import check_selector

__all__ = ["check_discipline", "check_network", "check_selector"]
