"""The sums that the full audit compares in whole runs, in the words of its refusals: as they were yesterday."""

import contextlib
import re

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.rounds.audit import audit, carried, energy
from fedsim.rounds.audit.refusal import refuse
from tests.golden import freeze
from tests.support.frozen_answers import check_frozen, plain

SENDER = {"receive_w": 0.05, "transmit_power_dbm": 23.0, "circuit_w": 0.1, "transmit_j_per_bit": 1e-7}
LOST = {"dropout": freeze.DROPOUTS["phase-hazard"]}
RUNS = {
    "dedicated, radio": {
        "network": {**freeze.cell("dedicated", "dedicated"), "access": {"kind": "grant", "inactivity_s": 0.2}},
        "devices": {"energy": {**freeze.BATTERY, **SENDER, "capacity_j": 0.3}, **LOST},
        "rounds": {"count": 4, "policy": {"kind": "deadline", "deadline_s": 0.9}},
    },
    "shared, operations": {
        "network": freeze.cell("multicast", "equal"),
        "devices": {"energy": {**freeze.ENERGIES["by-operations"], "capacity_j": 0.9, "initial_from": 0.3}},
        "rounds": {"count": 4},
    },
    "work runs empty": {
        "network": freeze.LATENCY,
        "devices": {"energy": {**freeze.BATTERY, "compute_w": 1.5, "capacity_j": 1.0}, **LOST},
        "rounds": {"count": 4, "late": "drop"},
    },
    "faults": {"network": freeze.NETWORKS["graph"], "rounds": {"faults": freeze.FAULTS["everything"], "late": "drop"}},
}
NUMBER = re.compile(r"-?\d+\.?\d*(e[-+]?\d+)?")


@pytest.mark.parametrize("case", sorted(RUNS))
def test_the_sums_are_as_before(case, monkeypatch):
    told_of = []

    def noted(broken, wrong, number, records, told):
        texts = []
        for i in range(wrong.size):
            with contextlib.suppress(KeyError):  # a rule about transfers that were cut short knows no others
                texts.append(NUMBER.sub(lambda text: plain(float(text[0])), told(i)))
        if told_of and told_of[-1][1] == texts:
            told_of[-1][0].append(broken)
        else:
            told_of.append([[broken], texts])
        refuse(broken, wrong, number, records, told)

    for module in (audit, carried, energy):
        monkeypatch.setattr(module, "refuse", noted)
    _, tables = freeze.described("accounts", RUNS[case])
    history = simulate(Scenario(**tables))
    accounts = {name: np.array(column) for name, column in history.accounts.to_pydict().items()}
    check_frozen("accounts", case, [told_of, accounts])
