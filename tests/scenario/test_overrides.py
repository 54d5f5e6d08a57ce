"""Changed kinds: what they keep of the options before, and that they say so."""

import numpy as np
import pytest
from torch import nn
from typer.testing import CliRunner

from fedsim import Scenario
from fedsim.cli import app
from fedsim.errors import ScenarioError
from fedsim.learning import MODELS
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
    in_python = Scenario.from_toml(text).replace({"network.kind": "5g-midband"})
    assert found.network == in_python.network == NETWORKS.make("5g-midband")
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


def test_the_terminal_tells_what_a_preset_removes(tmp_path):
    file = tmp_path / "cell.toml"
    file.write_text(CELL_TOML)
    told = CliRunner().invoke(app, ["check", str(file), "--set", "network.kind=5g-midband"])
    assert told.exit_code == 0
    assert "fedsim: network.kind=5g-midband: removed of 'cell': fading, uplink" in told.output


class Rows:
    """Samples of four numbers, as a dataset of torch has them."""

    def __init__(self, n=20, scale=1.0):
        self.n, self.scale = n, scale

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if index >= self.n:
            raise IndexError(index)
        return np.full(4, self.scale * index), index % 2


def one_layer(width=3, bias=True):
    return nn.Sequential(nn.Linear(4, width, bias=bias), nn.Linear(width, 2))


HERE = "tests.scenario.test_overrides"
OWN = {
    "name": "own",
    "crowd": {"clients": 3},
    "network": "pause-two-speed",
    "rounds": {"count": 1},
    "selector": {"kind": "uniform", "cohort": 2},
}
OWN_LEARNING = {"data": {"kind": f"{HERE}:Rows", "n": 30}, "model": {"kind": f"{HERE}:one_layer", "width": 5}}


@pytest.mark.parametrize("part", ["named", "handed"])
@pytest.mark.parametrize(
    ("change", "data", "model"),
    [
        ({"data.n": 50}, {"n": 50}, {"width": 5}),
        ({"data.scale": 2.0}, {"n": 30, "scale": 2.0}, {"width": 5}),
        ({"model.width": 7}, {"n": 30}, {"width": 7}),
        ({"model.bias": False}, {"n": 30}, {"width": 5, "bias": False}),
        ({"model.kind": f"{HERE}:one_layer"}, {"n": 30}, {"width": 5}),
        ({"data.kind": f"{HERE}:Rows", "data.n": 9}, {"n": 9}, {"width": 5}),
    ],
)
def test_options_of_classes_and_functions_are_replaced(part, change, data, model):
    """The same as in a scenario that is written with them."""
    paths = {f"learning.{path}": value for path, value in change.items()}
    tables = {"data": {"kind": f"{HERE}:Rows", **data}, "model": {"kind": f"{HERE}:one_layer", **model}}
    wanted = Scenario(**OWN, learning=tables)
    before = Scenario(**OWN, learning=OWN_LEARNING)
    found = before.replace(paths) if part == "handed" else Scenario.from_toml(before.to_toml(), values=paths)
    assert found == wanted
    assert found.digest() == wanted.digest()


def test_another_kind_takes_the_place_of_a_function_and_of_an_object():
    said = []
    before = Scenario(**OWN, learning=OWN_LEARNING)
    Scenario.from_toml(before.to_toml(), values={"learning.model.kind": "mlp"}, tell=said.append)
    assert said == [f"learning.model.kind=mlp: removed of '{HERE}:one_layer': width"]
    handed = before.replace({"learning.model": nn.Linear(4, 2)})
    for found in (before, handed):
        assert found.replace({"learning.model.kind": "mlp"}).learning.model == MODELS.make("mlp")


def test_an_object_has_no_options_to_replace():
    handed = Scenario(**OWN, learning={**OWN_LEARNING, "data": (np.zeros((9, 4)), np.arange(9))})
    with pytest.raises(
        ScenarioError, match=r"^learning.data.n: an object of .* allowed: another value of learning.data"
    ):
        handed.replace({"learning.data.n": 5})


def test_options_that_a_function_does_not_have_are_refused_after_a_change_too():
    with pytest.raises(ScenarioError, match=r"one_layer has no parameter 'wdth'; allowed: width, bias"):
        Scenario(**OWN, learning=OWN_LEARNING).replace({"learning.model.wdth": 4})
