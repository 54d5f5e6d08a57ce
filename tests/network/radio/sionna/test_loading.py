"""Sionna is named where it is missing, before anything runs, and is imported by nothing else."""

import sys

import numpy as np
import pytest

from fedsim import Scenario
from fedsim.errors import ScenarioError
from fedsim.network.radio.sionna.loading import own_draws, part_of_sionna
from tests.support.pages import ROOT

QUICKSTART = Scenario.load(ROOT / "scenarios" / "quickstart.toml")


@pytest.mark.parametrize(
    ("field", "kind"),
    [("network.fading", "sionna-tdl"), ("network.fading", "sionna-cdl"), ("network.rate", "sionna-phy")],
)
def test_without_sionna_a_scenario_says_how_to_install_it(field, kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "sionna", None)
    with pytest.raises(ScenarioError, match=rf"{field}: .*kind = '{kind}' .*pip install 'fedsim-des\[sionna\]'"):
        QUICKSTART.replace({field: kind})


def test_own_draws_are_the_same_and_leave_no_trace():
    pytest.importorskip("sionna", reason="the extra 'sionna' is not installed")
    generator = part_of_sionna("phy", "config").torch_rng("cpu")
    before, seeds = generator.get_state().numpy().copy(), []
    for _ in range(2):
        with own_draws():
            seeds.append(generator.initial_seed())
    assert seeds[0] == seeds[1]
    np.testing.assert_array_equal(generator.get_state().numpy(), before)
