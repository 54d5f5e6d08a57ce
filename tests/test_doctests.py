"""The examples in docstrings hold."""

import doctest
import importlib

import pytest

MODULES = [
    "fedsim.devices.availability.on_off",
    "fedsim.devices.heterogeneity",
    "fedsim.network.radio.spectral_efficiency",
    "fedsim.network.distributions",
    "fedsim.network.topology.max_min",
    "fedsim.network.radio.path_loss",
    "fedsim.history.history",
    "fedsim.scenario.overrides",
    "fedsim.units",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
