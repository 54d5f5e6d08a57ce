"""Links with bands and powers that a selector has allocated, against transfers of the bits that they say."""

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.network import Cell
from tests.support.media import built

CLIENTS = np.array([3, 0, 5])
START_S = np.array([0.0, 0.37, 12.5])


@pytest.mark.parametrize("spread_s", [0.0, 1e-7])
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_bits_that_allocated_links_have_carried_are_those_of_a_transfer_of_that_time(share, spread_s):
    """In the time of a transfer of b bits, a longer one carries b: over the allocated band, not the usual one."""
    cell = Cell(uplink={"bandwidth_hz": 1e6}, delay_spread_s=spread_s, access="none")
    places = np.array([[50.0 * k, 20.0] for k in range(1, 7)])
    links = built(cell, places, 3).allocated(CLIENTS, np.array([2e5, 1.5e6, 4e5]), np.array([10.0, 20.0, 5.0]))
    bits = 3e5
    part_s = links.uplink_s(CLIENTS, 1, START_S, share * bits) - links.delay_s[CLIENTS]
    carried = links.carried_bits(CLIENTS, 1, START_S, part_s, bits, up=True)
    assert carried == pytest.approx(np.full(3, share * bits))


def test_batteries_pay_for_the_bits_of_allocated_bands():
    """The audit compares the energy of uploads that end early with the bits that were carried."""
    tables = {
        "crowd": {"clients": 12, "placement": {"kind": "disc", "radius_m": 60.0}},
        "network": {"kind": "cell", "downlink": {"sharing": "dedicated"}, "uplink": {"sharing": "dedicated"}},
        "learning": {"kind": "none", "model_bits": 3e5, "samples_per_client": 50, "flops_per_sample": 2e5},
        "rounds": {"count": 5, "policy": {"kind": "deadline", "deadline_s": 1.5}},
        "selector": {"kind": "age-based", "cohort": 5},
        "devices": {"energy": {"kind": "battery", "capacity_j": 0.5, "initial_from": 0.2, "compute_w": 0.2}},
        "results": {"audit": True},
    }
    history = simulate(Scenario(name="allocated", seed=58, **tables))
    assert "uplink" in history.participations.column("cut_in").to_pylist()
