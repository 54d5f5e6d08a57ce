"""Every part is built from one argument, the run."""

import pytest

from fedsim import Component
from fedsim.devices import COMPUTE_TIMES
from fedsim.errors import ContractError
from fedsim.network import NETWORKS
from fedsim.testing import check_compute_time, check_network


class Placed(Component):
    def build(self, positions_m, streams):
        raise AssertionError


class Counted(Component):
    def build(self, clients, streams, flops_per_sample=None):
        raise AssertionError


@pytest.mark.parametrize(
    ("registry", "check", "part", "named"),
    [
        (NETWORKS, check_network, Placed(), r"it has build\(positions_m, streams\)"),
        (COMPUTE_TIMES, check_compute_time, Counted(), r"it has build\(clients, streams, flops_per_sample\)"),
    ],
)
def test_a_part_that_takes_anything_but_a_run_is_refused(registry, check, part, named):
    said = rf"{named}; allowed: build\(self, run\), which reads run.clients, run.streams"
    with pytest.raises(ContractError, match=said):
        check(part)
    with pytest.raises(ValueError, match=said):
        registry.make(part)
