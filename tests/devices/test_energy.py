"""Energy: prices, charges that change by themselves, and where a battery runs empty."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy import stats

from fedsim.devices import ENERGIES, Devices
from fedsim.devices.energy import Battery
from fedsim.errors import ScenarioError
from tests.support.bounds import dkw
from tests.support.media import of_crowd
from tests.support.worlds import batteries


def test_none_looks_at_nothing():
    law = ENERGIES.make("none")
    assert of_crowd(law, 10) is None
    assert (law.may_run_empty, law.requires) == (False, frozenset())
    assert Devices().energy == law
    assert not Devices().may_lose_clients
    assert Devices(energy={"kind": "battery", "capacity_j": 1.0, "compute_w": 1.0}).may_lose_clients


def test_defaults_are_the_slopes_of_huang_et_al():
    """51.97 mW at 1 Mbit/s down and 438.39 mW at 1 Mbit/s up are so many joules for a megabit."""
    law = Battery(capacity_j=1.0, compute_w=0.0)
    assert law.receive_j_per_bit * 1e6 == pytest.approx(0.05197)
    assert law.transmit_j_per_bit * 1e6 == pytest.approx(0.43839)
    assert (law.initial_from, law.initial_to, law.idle_w, law.charge_w, law.least_charge) == (1.0, 1.0, 0.0, 0.0, 0.15)


def test_powers_of_transmitters_by_hand():
    """0 dBm is 1 mW, of which an amplifier with 0.35 draws 2.86 mW."""
    law = Battery(capacity_j=1.0, compute_w=0.0, transmit_power_dbm=0.0)
    assert law.transmit_j_per_bit == 0.0
    assert of_crowd(law, 1).prices.transmit_w == pytest.approx(1e-3 / 0.35)
    # 20 and 23 dBm are 100 and 200 mW.
    law = Battery(
        capacity_j=1.0,
        compute_w=0.0,
        transmit_power_dbm=[20.0, 10 * np.log10(200.0).item()],
        amplifier_efficiency=[0.5, 0.25],
        circuit_w={"kind": "choice", "of": [0.3]},
    )
    prices = of_crowd(law, 2).prices
    assert prices.transmit_w == pytest.approx([0.2 + 0.3, 0.8 + 0.3])
    # An allocation of 100 mW to the second client alone.
    assert prices.of(np.array([1])).sending_w(np.array([20.0])) == pytest.approx([0.4 + 0.3])


def test_a_direction_with_a_power_has_no_price_of_a_bit_unless_it_is_given():
    law = Battery(capacity_j=1.0, compute_w=0.0, transmit_power_dbm=23.0, amplifier_efficiency=0.4, circuit_w=0.1)
    assert (law.receive_j_per_bit, law.transmit_j_per_bit) == (5.197e-8, 0.0)
    prices = of_crowd(law, 2).prices
    # 23 dBm are 10 ** 2.3 mW.
    assert prices.transmit_w == pytest.approx(10**2.3 * 1e-3 / 0.4 + 0.1)
    assert prices.receive_w == 0.0
    whole = Battery(capacity_j=1.0, compute_w=0.0, receive_w=1.29, receive_j_per_bit=5.197e-8, transmit_w=[1.0, 2.0])
    assert (whole.receive_j_per_bit, whole.transmit_j_per_bit) == (5.197e-8, 0.0)
    assert of_crowd(whole, 2).prices.transmit_w.tolist() == [1.0, 2.0]
    assert Battery(**law.model_dump(exclude={"kind"})) == law


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"transmit_w": 1.0, "transmit_power_dbm": 23.0}, "both of transmit_w and transmit_power_dbm"),
        ({"compute_w": None}, "neither of compute_j_per_flop and compute_w is given; allowed: exactly one"),
        ({"compute_j_per_flop": 1e-9}, "both of compute_j_per_flop and compute_w"),
        ({"initial_from": 0.9, "initial_to": 0.3}, "initial_from = 0.9 is not allowed"),
        ({"initial_to": 1.1}, "less than or equal to 1"),
        ({"least_charge": 0.0}, "greater than 0"),
        ({"compute_w": -1.0}, "greater than or equal to 0"),
        ({"capacity_j": 0.0}, "greater than 0"),
    ],
)
def test_wrong_batteries_are_refused(options, said):
    with pytest.raises(ValidationError, match=said):
        Battery(**{"capacity_j": 10.0, "compute_w": 1.0, **options})


def test_operations_need_a_learner_that_counts_them():
    law = Battery(capacity_j=10.0, compute_j_per_flop=1e-3)
    assert law.requires == {"flops", "model-bits", "samples"}
    with pytest.raises(ScenarioError, match=r"devices\.energy: compute_j_per_flop needs a learner"):
        of_crowd(law, 3)
    built = of_crowd(law, 3, flops_per_sample=200.0)
    assert built.prices.sample_j == pytest.approx(0.2)
    assert not Battery(capacity_j=10.0, compute_w=1.0, receive_j_per_bit=0.0, transmit_j_per_bit=0.0).requires


@pytest.mark.statistical
def test_initial_charges_are_uniform_and_each_clients_own():
    clients = 20_000
    law = Battery(capacity_j=50.0, initial_from=0.2, initial_to=0.6, compute_w=1.0)
    charge_j = of_crowd(law, clients, 3).charge_j(np.arange(clients), 0.0)
    assert stats.kstest(charge_j, stats.uniform(10.0, 20.0).cdf).statistic < dkw(clients)
    few = of_crowd(law, 7, 3).charge_j(np.arange(7), 0.0)
    np.testing.assert_array_equal(few, charge_j[:7])


def test_charging_worked_by_hand():
    """From 20 J of 100 at 2 W: 60 J are there at 20 s, it is full at 40 s; at -2 W it is empty at 10 s."""
    client = np.array([0])
    up, down = batteries([20.0], gain_w=2.0, least=60.0), batteries([20.0], gain_w=-2.0, least=5.0)
    assert [up.charge_j(client, t)[0] for t in (0.0, 5.0, 20.0, 40.0, 1e6)] == [20, 30, 60, 100, 100]
    assert [down.charge_j(client, t)[0] for t in (0.0, 5.0, 10.0, 1e6)] == [20, 10, 0, 0]
    assert [up.free_s(client, 0.0)[0], down.free_s(client, 0.0)[0], down.free_s(client, 7.6)[0]] == [20, 0, math.inf]
    assert [bool(up.holds_until_s(client, t)[0][0]) for t in (19.9, 20.0, 1e9)] == [False, True, True]
    assert [bool(down.holds_until_s(client, t)[0][0]) for t in (0.0, 7.5, 7.6)] == [True, True, False]
    still = batteries([20.0, 4.0], least=5.0)
    assert still.free_s(np.arange(2), 1e9).tolist() == [0.0, math.inf]
    assert batteries([5.0], least=5.0).free_s(client, 0.0).tolist() == [0.0], "the least charge is enough"


def test_a_client_at_work_neither_charges_nor_can_be_chosen():
    power = batteries([20.0, 30.0], gain_w=1.0, least=5.0, receive=2.0, send=3.0, work_w=4.0, sample=0.5)
    draw = power.begin(np.array([1]), 10.0, (1.5, 1.25), np.array([6.0]), np.array([0.25]))
    assert draw.charge_j.tolist() == [40.0]
    assert draw.cost_j.tolist() == [[3.0], [4.0], [3.75]]
    assert not power.holds_until_s(np.array([1]), 11.0)[0][0]
    assert power.charge_j(np.array([1]), 15.0).tolist() == [40.0]
    power.end(np.array([1]), np.array([28.5]), np.array([20.0]))
    assert power.charge_j(np.array([0, 1]), 22.0).tolist() == [42.0, 30.5]
    assert power.holds_until_s(np.array([1]), 20.0)[0][0]


joules = st.floats(0.0, 100.0)
seconds = st.floats(0.0, 200.0)


@given(joules, st.floats(-3.0, 3.0), seconds, seconds, st.floats(1.0, 100.0))
def test_recharging_in_two_steps_is_recharging_in_one_and_stays_within_the_battery(
    charge_j, gain_w, first_s, then_s, least_j
):
    client = np.array([0])
    whole, steps = (batteries([charge_j], gain_w=gain_w, least=least_j) for _ in range(2))
    at_s, end_s = np.array([first_s]), first_s + then_s
    steps.end(client, steps.charge_j(client, first_s), at_s)
    expected = whole.charge_j(client, end_s)[0]
    assert steps.charge_j(client, end_s)[0] == pytest.approx(expected, abs=1e-9)
    assert expected == pytest.approx(min(100.0, max(0.0, charge_j + gain_w * end_s)), abs=1e-9)
    assert abs(expected - least_j) < 1e-9 or bool(whole.holds_until_s(client, end_s)[0][0]) == (expected > least_j)
