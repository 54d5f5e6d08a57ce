"""Every law of the room answers a fixed series of questions as it did yesterday."""

import numpy as np
import pytest

from fedsim.devices import COMPUTE_TIMES, DROPOUTS, ENERGIES
from fedsim.devices.availability.independent import AVAILABILITIES
from fedsim.devices.energy import NoEnergy
from fedsim.streams import Streams
from tests.golden import freeze
from tests.support.frozen_answers import check_frozen

IDS = np.arange(6)
SOME = np.array([1, 2, 4])
INSTANTS_S = np.array([0.0, 0.4, 3.0, 9.5, 30.0, 31.0, 90.0, 2.0])
DAILY = ("diurnal", "flash", "flash-level")


@pytest.mark.parametrize("case", sorted(freeze.AVAILABILITIES))
def test_availability_as_before(case, frozen_inputs, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    whole = AVAILABILITIES.make(_table(freeze.AVAILABILITIES[case])).build(6, Streams(4))
    found = [whole.kind, whole.retry_s, whole.redraw(1)]
    part = whole.part(SOME)
    for availability, ids in ((whole, IDS), (part, np.arange(SOME.size))):
        tracker = availability.tracker(ids)
        for number, time_s in enumerate(INSTANTS_S * (1000.0 if case in DAILY else 1.0), 1):
            there = ids[availability.available(ids, time_s, number)]
            tasks_s = np.where(there % 3 == 2, np.inf, 1.5 + there)
            found.append([there, availability.next_s(time_s, number), availability.next_s(time_s, number, ids[1:])])
            found.append(availability.leaves_after_s(there, time_s, number, tasks_s))
            found.append(availability.earliest_s(ids, time_s, number))
            found.append([np.sort(tracker.update(time_s, number)), tracker.count])
    check_frozen("devices", f"availability {case}", found)


@pytest.mark.parametrize("case", sorted(freeze.COMPUTES))
def test_compute_times_as_before(case, frozen_inputs, monkeypatch):
    monkeypatch.chdir(frozen_inputs)
    times = COMPUTE_TIMES.make(freeze.COMPUTES[case]).build(6, Streams(4), 2e5)
    samples = np.array([50.0, 1.0, 0.0, 7.5, 300.0, 64.0])
    found = [times.expected_s(samples), *(times.duration_s(IDS, draw, samples) for draw in (1, 2, 7))]
    check_frozen("devices", f"compute {case}", [*found, times.duration_s(SOME, 7, samples[SOME])])


@pytest.mark.parametrize("case", sorted(freeze.DROPOUTS))
def test_dropout_as_before(case):
    law, phases_s = DROPOUTS.make(freeze.DROPOUTS[case]), np.linspace(0.1, 4.0, 18).reshape(3, 6)
    found = [law.time_to_dropout_s(IDS, draw, Streams(4), phases_s) for draw in (1, 2, 3)]
    check_frozen("devices", f"dropout {case}", [law.possible, law.phase_hazards(), *found])


SENDER = {"receive_w": 0.05, "transmit_power_dbm": 23.0, "circuit_w": 0.1, "transmit_j_per_bit": 1e-7}
POWERS = {**freeze.ENERGIES, "radio": {**freeze.BATTERY, **SENDER, "amplifier_efficiency": 0.5, "initial_to": 0.9}}


@pytest.mark.parametrize("case", sorted(POWERS))
def test_batteries_as_before(case):
    law = ENERGIES.make(POWERS[case])
    power = law.build(6, Streams(4), 2e5)
    found = [law.may_run_empty, sorted(law.requires)]
    if isinstance(law, NoEnergy):
        assert power is None
        return
    found += [power.charge_j(IDS, 3.0), *power.charged_s(), power.charged(IDS, 20.0)]
    done = np.array([[1.0, 1.0, 0.5], [1.0, 0.25, 0.0], [0.75, 0.0, 0.0]])
    for number, frequency in enumerate((None, np.array([1.0, 0.5, 0.8]))):
        demand = power.begin(SOME, 5.0 + 9 * number, (3e5, 2e5), np.array([50.0, 9.0, 0.0]), np.arange(3.0), frequency)
        spent_s = np.array([[0.5, 1.0, 0.1], [2.0, 0.3, 0.0], [1.0, 0.0, 0.0]])
        found += [demand, demand.of(np.array([2, 0])), demand.runs_empty(), power.charged(IDS, 6.0)]
        found += [demand.runs_empty(np.where(spent_s == 2.0, np.inf, spent_s)), demand.slack_j(1)]
        for phase in range(3):
            found.append([demand.radio_w(1, phase), demand.per_bit_j(1, phase, 2e5), demand.per_bit_j(0, phase, 0.0)])
            found.append([demand.phase_j(1, phase, 2.0), demand.phase_j(1, phase, np.inf)])
            found.append(demand.left_j(1, phase, spent_s[:, 1]))
        spent_j = demand.spent_j(np.arange(3), done, np.array([False, False, True]), spent_s)
        power.end(SOME, demand.charge_j - spent_j, np.array([6.0, 7.0, 8.0]) + 9 * number)
        found += [spent_j, power.charge_j(IDS, 50.0), *power.charged_s()]
    check_frozen("devices", f"battery {case}", found)


def _table(written):
    return {"kind": written} if isinstance(written, str) else written
