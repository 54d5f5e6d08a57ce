"""The examples in docstrings hold."""

import doctest
import importlib

import pytest

MODULES = [
    "fedsim.devices.onoff",
    "fedsim.devices.spread",
    "fedsim.network.capacity",
    "fedsim.network.laws",
    "fedsim.network.maxmin",
    "fedsim.network.propagation",
    "fedsim.rounds.history",
    "fedsim.scenario.overrides",
    "fedsim.units",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
