"""Server optimisers in whole runs."""

import numpy as np
import pytest

from fedsim import Scenario, simulate

SCENARIO = """
name = "momentum"
[crowd]
clients = 6
[learning]
data = { kind = "digits", train_limit = 240 }
split = "equal"
model = { kind = "mlp", hidden = [] }
local = { learning_rate = 0.05 }
server = { kind = "fedavgm", momentum = 0.8 }
[network]
kind = "latency"
downlink = { kind = "shifted-exponential", shift_s = 0.01, scale_s = 0.1 }
uplink = { kind = "shifted-exponential", shift_s = 0.01, scale_s = 0.1 }
[rounds]
count = 6
[selector]
kind = "uniform"
cohort = 3
"""
BUFFER = {"rounds.policy": {"kind": "fedbuff", "concurrency": 4, "buffer": 2}}
MIXING = {"rounds.policy": {"kind": "fedasync", "concurrency": 4}}
SAFA = {"rounds.policy": {"kind": "safa", "share": 0.4, "max_wait_s": 1.0}, "selector": "all"}
SCARCE = {"rounds.minimum_updates": 2, "rounds.policy": {"kind": "deadline", "deadline_s": 0.6}}


def losses(scenario: Scenario) -> list[float]:
    return simulate(scenario).evaluations.column("loss").to_pylist()


@pytest.mark.parametrize("changes", [{}, BUFFER, MIXING, SAFA, SCARCE], ids=["all", "buffer", "mixing", "safa", "few"])
def test_runs_of_one_scenario_share_no_state(changes: dict[str, object]) -> None:
    scenario = Scenario.from_toml(SCENARIO).replace(changes)
    first = losses(scenario)
    assert losses(scenario) == first
    plain = losses(scenario.replace({"learning.server": "fedavg"}))
    assert first != plain
    without = losses(scenario.replace({"learning.server.momentum": 0.0}))
    np.testing.assert_allclose(without, plain, rtol=1e-4)
