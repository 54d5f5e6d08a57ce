"""Code of the user's own belongs to digests: of scenarios, of run folders, of trainings in a store."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fedsim import Scenario
from fedsim.errors import RunError
from fedsim.identity import identity
from fedsim.learning import MemoryStore
from fedsim.results import run
from fedsim.simulation import Simulation
from tests.support.tiny_images import Tiny

SELECTOR = """
from fedsim.selectors import Cohort

class Last:
    def __init__(self, cohort: int = 2) -> None:
        self.cohort = cohort

    def select(self, view, rng):
        return Cohort(client=view.client[-self.cohort:])

    def observe(self, reports):
        pass
"""
NET = """
from torch import nn
from fedsim.registry import Component

class Net(Component):
    def build(self, shape, classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, classes), nn.ReLU())
"""


def tables(**changed: Any) -> dict[str, Any]:
    return {
        "name": "own",
        "crowd": {"clients": 4},
        "learning": {"kind": "none", "model_bits": 8.0},
        "network": "pause-two-speed",
        "rounds": {"count": 2},
        "selector": "own_code:Last",
        "devices": {"compute": "zero"},
        **changed,
    }


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Return a function that writes a module of the user's anew and loads it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(text: str) -> ModuleType:
        (tmp_path / "own_code.py").write_text(text)
        sys.modules.pop("own_code", None)
        importlib.invalidate_caches()
        return importlib.import_module("own_code")

    yield make
    sys.modules.pop("own_code", None)


def test_an_edited_selector_does_not_overwrite_the_run_of_the_one_before(load: Any, tmp_path: Path) -> None:
    load(SELECTOR)
    first = Scenario(**tables())
    run(first, tmp_path / "out")
    state = json.loads((tmp_path / "out" / "run.json").read_text())
    assert state["code"] == {"selector": first.code()["selector"].text}
    run(Scenario(**tables()), tmp_path / "out")
    load(SELECTOR.replace("-self.cohort:", ": self.cohort"))
    edited = Scenario(**tables())
    assert edited.describe() == first.describe()
    assert edited.digest() != first.digest()
    with pytest.raises(RunError, match="another scenario"):
        run(edited, tmp_path / "out")
    run(edited, tmp_path / "out", replace=True)


def test_scenarios_of_fedsims_own_parts_have_no_code() -> None:
    assert Scenario(**tables(selector="all")).code() == {}


def test_nested_parts_count_too(load: Any) -> None:
    law = "from fedsim.network.distributions import Constant\n\nclass Law(Constant):\n    {}\n"
    network = {"kind": "latency", "downlink": "zero", "uplink": {"kind": "own_code:Law", "value_s": 1.0}}
    digests = []
    for body in ("pass", "def more(self):\n        return 1"):
        load(law.format(body))
        scenario = Scenario(**tables(network=network, selector="all"))
        assert list(scenario.code()) == ["network.uplink"]
        digests.append(scenario.digest())
    assert digests[0] != digests[1]


def test_two_models_of_one_name_share_no_trainings(load: Any) -> None:
    store = MemoryStore()
    learning = {"data": {"kind": "digits", "train_limit": 80}, "model": "own_code:Net"}
    found = []
    for text in (NET, NET, NET.replace("nn.ReLU", "nn.Tanh")):
        load(text)
        simulation = Simulation(Scenario(**tables(selector="all", learning=learning)), store=store)
        history = simulation.run()
        found.append((simulation.context.learner.work.trained, history.evaluations.column("loss").to_pylist()))
    assert [new for new, _ in found] == [8, 0, 8]
    assert found[0] == (8, found[1][1])
    assert found[2][1] != found[0][1]


def test_identities_name_kinds_and_what_has_no_source_counts_for_itself() -> None:
    assert identity(Scenario(**tables(selector="all")).network).startswith("fedsim.networks pause-two-speed {")
    assert identity(Tiny()) == identity(Tiny())

    class Local(Tiny):
        pass

    assert identity(Local()) == identity(Local()) != identity(Tiny())
