"""Numbers of NumPy and texts with a unit are the same scenario as the numbers that they mean, or are refused."""

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas
import pytest
import torch

from fedsim import Scenario, Study
from fedsim.devices.compute import Rate
from fedsim.devices.energy import Battery
from fedsim.errors import ScenarioError
from fedsim.inputs.quantities import in_unit, plain
from fedsim.network.fedscale import FedScaleNetwork
from fedsim.network.radio.fading import Rayleigh
from fedsim.network.topology.mobility import Trace
from fedsim.selectors import Uniform
from fedsim.studies.study import StudyError
from tests.support.short_runs import TIMING

CELL = {
    "network": {"kind": "cell", "uplink": {"bandwidth_hz": 9e4, "transmit_power_dbm": 23.0}},
    "learning": {"kind": "none", "model_bits": 16e6},
    "rounds": {"count": 3, "until_s": 7200.0, "policy": {"kind": "deadline", "deadline_s": 1.0}},
}
SCENARIO = Scenario(
    **CELL,
    name="t",
    crowd={"clients": 6},
    devices={"compute": "zero", "dropout": {"kind": "hazard", "rate_per_s": 0.05}},
    selector={"kind": "cpow-d", "cohort": 2, "samples": 10, "wait_s": 0.5},
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seed", np.int64(0)),
        ("selector.cohort", np.uint8(2)),
        ("selector.cohort", np.array(2, dtype=np.int16)),
        ("rounds.count", np.arange(4)[3]),
        ("rounds.until_s", np.float32(7200)),
        ("network.uplink.transmit_power_dbm", np.full(6, 23.0)),
        ("results.audit", np.False_),
        ("network.uplink.bandwidth_hz", "90 kHz"),
        ("network.uplink.bandwidth_hz", "0.09MHz"),
        ("network.uplink.bandwidth_hz", " 90e3 hz "),
        ("network.uplink.transmit_power_dbm", "23 dBm"),
        ("rounds.policy.deadline_s", "1000 ms"),
        ("seed", torch.tensor(0)),
        ("selector.cohort", torch.tensor(2, dtype=torch.int32)),
        ("network.uplink.transmit_power_dbm", pandas.Series(np.full(6, 23.0))),
        ("network.uplink.transmit_power_dbm", torch.full((6,), 23.0)),
        ("rounds.until_s", "2 h"),
        ("learning.model_bits", "2 MB"),
        ("devices.dropout.rate_per_s", "3 1/min"),
        ("selector.wait_s", "500 ms"),
    ],
)
def test_what_means_the_same_has_the_same_digest(path, value):
    plainly = [23.0] * 6 if isinstance(value, np.ndarray | pandas.Series | torch.Tensor) and value.ndim else None
    expected = SCENARIO if plainly is None else SCENARIO.replace({path: plainly})
    assert SCENARIO.replace({path: value}).digest() == expected.digest()


def test_arrays_are_lists_and_laws_have_the_unit_of_their_field():
    law = {"kind": "log-normal", "median": 9e4, "sigma": 0.5}
    made = SCENARIO.replace({"network.uplink.bandwidth_hz": law})
    assert SCENARIO.replace({"network.uplink.bandwidth_hz": {**law, "median": "90 kHz"}}) == made
    learning = {"data": "digits", "model": {"kind": "mlp", "hidden": [8, 4]}}
    given = {"data": "digits", "model": {"kind": "mlp", "hidden": np.array([8, 4])}}
    assert TIMING.replace({"learning": given}) == TIMING.replace({"learning": learning})


@pytest.mark.parametrize(
    "number", [6100.0, 6100, "6.1 Mbit/s", "762.5 KBps", "6.1 MBPS", np.float32(6100), np.array(6100), Decimal(6100)]
)
def test_what_follows_from_a_number_follows_however_it_is_given(number):
    assert FedScaleNetwork(median_kbps=number) == FedScaleNetwork(median_kbps=6100.0)
    assert FedScaleNetwork(median_kbps=[number]).sigma == 0.0
    assert Rate(samples_per_s="50 samples/s").spread_sigma == Rate(samples_per_s=50.0).spread_sigma == 0.5
    for speed in ("36 km/h", torch.tensor(10.0), np.float32(10)):
        assert Rayleigh(speed_m_per_s=speed, carrier_hz="2 GHz") == Rayleigh(speed_m_per_s=10.0, carrier_hz=2e9)
    battery = {"capacity_j": 1.0, "compute_w": 1.0}
    for power in (0, "0 W", np.zeros(())):
        assert Battery(**battery, receive_w=power) == Battery(**battery)
    assert Battery(**battery, receive_w=np.array([0.1, 0.2])).receive_j_per_bit == 0.0


def test_points_and_grids_may_be_arrays_ranges_and_frames():
    points = Trace(points=np.array([[0, 0, 1, 2], [0, 9, 5, 2]])).points
    assert points == ((0, 0.0, 1.0, 2.0), (0, 9.0, 5.0, 2.0))
    wanted = Study.of(TIMING, grid={"selector.cohort": [1, 2]}, seeds=2)
    for several in (np.arange(1, 3), range(1, 3), pandas.Series([1, 2], index=[7, 8]), torch.tensor([1, 2])):
        assert Study.of(TIMING, grid={"selector.cohort": several}, seeds=2).digest() == wanted.digest()
    for seeds in (np.int64(2), np.arange(2), torch.tensor([0, 1])):
        assert Study.of(TIMING, zipped=pandas.DataFrame({"selector.cohort": [1, 2]}), seeds=seeds) == wanted
    with pytest.raises(StudyError, match=r"seeds: \[2.0\] is not allowed; allowed: whole numbers from 0 on"):
        Study.of(TIMING, seeds=2.0)


def test_a_selector_made_with_numbers_of_numpy_can_be_written_down():
    made = TIMING.replace({"selector": Uniform(cohort=np.int32(3))})
    assert made.digest() == TIMING.digest()
    assert Scenario.from_toml(made.to_toml()) == TIMING


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("network.uplink.bandwidth_hz", "90 furlongs", "a number of Hz, or a text with a unit, such as '90 kHz'"),
        ("network.uplink.bandwidth_hz", "90", "such as '90 kHz'"),
        ("learning.model_bits", "2 mb", "such as '2 MB'"),
        ("network.uplink.transmit_power_dbm", "200 mW", "a number of dBm, or a text with a unit, such as '-3.5 dBm'"),
        ("rounds.count", "3 rounds", "should be a valid integer, such as 3"),
        ("rounds.count", 3.0, "should be a valid integer, such as 3"),
        ("rounds.policy", {"kind": "quorum", "share": "50 %", "max_wait_s": 9.0}, r"valid number, such as 0\.5$"),
        ("rounds.policy", {"kind": "quorum", "share": "5e-1", "max_wait_s": 9.0}, r"valid number, such as 0\.5$"),
        ("seed", "007", "should be a valid integer, such as 7$"),
        ("name", 5, 'should be a valid string, such as "5"'),
        ("name", date(2024, 3, 1), 'should be a valid string, such as "2024-03-01"'),
        ("results.audit", "yes", "should be a valid boolean, such as true"),
        ("rounds.policy.deadline_s", timedelta(seconds=5), "should be a valid number$"),
        ("rounds.policy.deadline_s", np.array([1.0, 2.0]), "should be a valid number"),
        ("network.uplink.bandwidth_hz", pandas.Series([1.0] * 6, index=[5, 4, 3, 2, 1, 0]), r"its index is \[5, 4, 3"),
        ("selector.wait_s", "half an hour", "should be a valid number"),
    ],
)
def test_what_means_nothing_is_refused_with_an_example(path, value, words):
    with pytest.raises(ScenarioError, match=rf"{path}.*: .*{words}"):
        SCENARIO.replace({path: value})


@pytest.mark.parametrize(
    ("text", "unit", "wanted"),
    [
        ("1.5 km", "m", 1500.0),
        ("36 km/h", "m/s", 10.0),
        ("5 Mbit/s", "bit/s", 5e6),
        ("5 mbps", "bit/s", 5e6),
        ("5 MB/s", "kbit/s", 4e4),
        ("1 MiB", "bit", 8388608.0),
        ("0.1 ms", "s", 1e-4),
        ("20 µs", "s", 2e-5),
        ("1 Wh", "J", 3600.0),
        ("-3 dB", "dB", -3.0),
        ("2 GHZ", "Hz", 2e9),
    ],
)
def test_units(text, unit, wanted):
    assert in_unit([text, 1], unit, "loss_db") == [wanted, 1]


@pytest.mark.parametrize(("text", "unit"), [("1 mb", "bit"), ("1 Mw", "W"), ("5 mb/s", "bit/s")])
def test_letters_of_another_size_that_may_mean_two_units_are_refused(text, unit):
    with pytest.raises(ValueError, match="allowed: a number of"):
        in_unit(text, unit, "")


def test_what_is_no_number_stays_what_it_is():
    part = object()
    assert plain(part) is part
    assert plain([np.int8(1), (np.float16(0.5), "a")]) == [1, (0.5, "a")]
