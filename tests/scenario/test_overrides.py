"""Changed kinds: what they keep of the options before, and that they say so."""

import pytest
from typer.testing import CliRunner

from fedsim import Scenario
from fedsim.cli import app
from fedsim.network import NETWORKS

CELL_TOML = """
name = "preset"
learning = { kind = "none", model_bits = 1e5, samples_per_client = 10 }
crowd = { clients = 8 }
rounds = { count = 1 }
selector = { kind = "uniform", cohort = 2 }
network = { kind = "cell", fading = "none", uplink = { bandwidth_hz = 9e4, transmit_power_dbm = 20.0 } }
"""


@pytest.mark.parametrize("before", ["cell", "urban-macro"])
def test_a_preset_keeps_no_option_of_another_cell(before):
    text, said = CELL_TOML.replace('"cell"', f'"{before}"'), []
    found = Scenario.from_toml(text, values={"network.kind": "5g-midband"}, tell=said.append)
    assert found.network == NETWORKS.make("5g-midband")
    assert said == [f"network.kind=5g-midband: removed of '{before}': fading, uplink"]
    # Options that follow change the preset.
    more = {"network.kind": "5g-midband", "network.uplink.noise_figure_db": 7.0}
    uplink = Scenario.from_toml(text, values=more).network.uplink
    assert (uplink.bandwidth_hz, uplink.noise_figure_db) == (1e7, 7.0)


def test_what_another_kind_keeps_is_told():
    said = []
    found = Scenario.from_toml(CELL_TOML, values={"selector.kind": "fastest"}, tell=said.append)
    assert found.selector.options["cohort"] == 2
    assert said == ["selector.kind=fastest: kept of 'uniform': cohort"]
    Scenario.from_toml(CELL_TOML, values={"selector.kind": "uniform", "network.kind": "cell"}, tell=said.append)
    assert len(said) == 1, "nothing changes"


def test_a_preset_in_the_place_of_a_cell_stands_alone_in_python_too():
    found = Scenario.from_toml(CELL_TOML).replace({"network.kind": "nb-iot"})
    assert found.network == NETWORKS.make("nb-iot")


def test_the_terminal_tells_what_a_preset_removes(tmp_path):
    file = tmp_path / "cell.toml"
    file.write_text(CELL_TOML)
    told = CliRunner().invoke(app, ["check", str(file), "--set", "network.kind=5g-midband"])
    assert told.exit_code == 0
    assert "fedsim: network.kind=5g-midband: removed of 'cell': fading, uplink" in told.output
