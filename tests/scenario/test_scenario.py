"""A scenario as a value: TOML both ways, digest, overrides, plug-ins by name, object and entry point."""

import importlib.metadata
import re
import sys
import threading
from typing import ClassVar

import pytest

from fedsim import Component
from fedsim.errors import ScenarioError
from fedsim.network import NETWORKS
from fedsim.rounds import Deadline, WaitForAll
from fedsim.scenario import Scenario
from fedsim.selectors.pause.pause import Pause

TABLES = {
    "name": "small",
    "crowd": {"clients": 10},
    "learning": {"local": {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 10}},
    "network": {"kind": "pause-two-speed"},
    "devices": {"compute": "zero"},
    "rounds": {"count": 2},
    "selector": {"kind": "uniform", "cohort": 3},
}


class EveryOther:
    """Selects clients 0, 2, 4 ...: written with nothing but NumPy."""

    def __init__(self, step: int = 2) -> None:
        self.step = step

    def select(self, view, rng):
        return view.client[:: self.step]

    def observe(self, reports):
        pass


class Secretive(EveryOther):
    """Keeps its argument where nobody can read it."""

    def __init__(self, step: int) -> None:
        self._hidden = step
        self.seen = []

    def select(self, view, rng):
        self.seen.append(view.round)
        return view.client[:: self._hidden]


class Open(EveryOther):
    """Takes options of any name."""

    def __init__(self, step: int = 2, **more: int) -> None:
        self.step, self.more = step, more


class Doubled(EveryOther):
    """Makes another attribute of its argument."""

    def __init__(self, step: int = 2) -> None:
        self.step = 2 * step


class Slow(Component):
    """A network of the user's."""

    seconds: float = 3.0
    requires: ClassVar[frozenset[str]] = frozenset()

    def build(self, run):
        return NETWORKS.make({"kind": "latency", "downlink": "zero", "uplink": "zero"}).build(run)


def test_digest_tells_scenarios_apart_and_defaults_do_not():
    scenario = Scenario(**TABLES)
    assert scenario.replace({"seed": 1}).digest() != scenario.digest()
    assert scenario.replace({"selector.cohort": 4}).digest() != scenario.digest()
    assert scenario.digests([1, 0]) == [scenario.replace({"seed": 1}).digest(), scenario.digest()]
    assert Scenario(**{**TABLES, "seed": 0}).digest() == scenario.digest()


def test_a_scenario_is_frozen():
    with pytest.raises(Exception, match="frozen"):
        Scenario(**TABLES).seed = 3


def test_replace_opens_parts_on_the_way():
    scenario = Scenario(**TABLES)
    changed = scenario.replace({"rounds.policy.kind": "deadline", "rounds.policy.deadline_s": 2.5})
    assert changed.rounds.policy == Deadline(deadline_s=2.5)
    assert scenario.rounds.policy == WaitForAll()
    assert changed.replace({"rounds.policy.deadline_s": 3.0}).rounds.policy == Deadline(deadline_s=3.0)
    assert changed.replace({"learning.local.learning_rate": 0.5}).learning.local.learning_rate == 0.5


def test_a_new_kind_keeps_the_options_it_has_too():
    pause = Scenario(**{**TABLES, "selector": {"kind": "pause", "cohort": 4, "alpha": 1.0, "beta": 2.0, "gamma": 3.0}})
    uniform = pause.replace({"selector.kind": "uniform"})
    assert (uniform.selector.kind, dict(uniform.selector.options)) == ("uniform", {"cohort": 4})
    assert pause.replace({"selector.kind": "all"}).selector.options == {}
    assert pause.replace({"selector.kind": "pause"}).selector == pause.selector


def test_privacy_can_be_set_to_none():
    private = {"budget": {"kind": "geometric", "epsilon": 2.0}, "mechanism": {"kind": "laplace-l1", "clip": 1.0}}
    scenario = Scenario(**{**TABLES, "privacy": private})
    assert scenario.privacy is not None
    assert scenario.replace({"privacy": "none"}).privacy is None
    assert scenario.replace({"privacy.budget.epsilon": 3.0}).privacy.budget.epsilon == 3.0


def test_selector_by_module_and_class():
    place = f"{__name__}:EveryOther"
    scenario = Scenario(**{**TABLES, "selector": {"kind": place, "step": 5}})
    assert scenario.selector.build().step == 5
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    with pytest.raises(ScenarioError, match=r"selector\.stride.*\n?.*step"):
        Scenario(**{**TABLES, "selector": {"kind": place, "stride": 5}})
    with pytest.raises(ScenarioError, match=r"selector\.step: 'five' is not allowed"):
        Scenario(**{**TABLES, "selector": {"kind": place, "step": "five"}})


def test_selector_by_object_is_described_by_its_class_and_arguments():
    scenario = Scenario(**{**TABLES, "selector": EveryOther(3)})
    assert scenario == Scenario(**{**TABLES, "selector": {"kind": f"{__name__}:EveryOther", "step": 3}})
    ours = Scenario(**{**TABLES, "selector": Pause(cohort=3, alpha=1.0, gamma=2.0)})
    assert ours.selector.kind == "pause"
    assert Scenario.from_toml(ours.to_toml()) == ours


def test_an_object_that_cannot_be_described_runs_but_is_not_written():
    selector = Secretive(3)
    scenario = Scenario(**{**TABLES, "selector": selector})
    with pytest.raises(ScenarioError, match="cannot be written as TOML"):
        scenario.to_toml()
    first, second = scenario.selector.build(), scenario.selector.build()
    assert first is not selector
    assert first is not second, "each run has its own copy"
    digests = [Scenario(**{**TABLES, "selector": Secretive(step)}).digest() for step in (3, 3, 7)]
    assert digests[0] == digests[1] != digests[2], "the digest is that of the content"


@pytest.mark.parametrize("selector", [Open(3, first=1), Doubled(3)])
def test_an_object_that_its_named_attributes_do_not_make_again_is_copied(selector):
    built = Scenario(**{**TABLES, "selector": selector}).selector.build()
    assert vars(built) == vars(selector)


def test_an_object_that_can_be_neither_made_again_nor_copied_is_refused():
    selector = Secretive(3)
    selector.lock = threading.Lock()
    with pytest.raises(ScenarioError, match="arguments are not among its attributes, and it cannot be copied"):
        Scenario(**{**TABLES, "selector": selector})


def test_selector_by_entry_point(monkeypatch):
    point = importlib.metadata.EntryPoint("every-other", f"{__name__}:EveryOther", "fedsim.selectors")
    found = importlib.metadata.EntryPoints([point])
    monkeypatch.setattr(sys.modules["fedsim.inputs.plugins"], "_PACKAGES", {})
    monkeypatch.setattr(sys.modules["fedsim.inputs.plugins"], "_installed", lambda _path: found)
    scenario = Scenario(**{**TABLES, "selector": {"kind": "every-other", "step": 3}})
    assert isinstance(scenario.selector.build(), EveryOther)
    assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_a_part_of_the_users_own():
    by_object = Scenario(**{**TABLES, "network": Slow(seconds=4.0)})
    by_name = Scenario(**{**TABLES, "network": {"kind": f"{__name__}:Slow", "seconds": 4.0}})
    assert by_object == by_name
    assert by_object.digest() == by_name.digest()
    with pytest.raises(ScenarioError, match=r"network\.seconds"):
        Scenario(**{**TABLES, "network": {"kind": f"{__name__}:Slow", "seconds": "4"}})


def test_accuracies_are_shares_or_in_per_cent():
    scenario = Scenario(**TABLES)
    target = {"rounds.target": {"at_least": "85 %"}}
    asked = scenario.replace({"results.target_accuracy": "80%", "rounds.target_accuracy": "90 %", **target})
    found = [asked.results.target_accuracy, asked.rounds.target_accuracy, asked.rounds.target.at_least]
    assert found == [0.8, 0.9, 0.85]
    why = r"is not allowed(;| \() ?it is a share of at most 1: 80 % is 0\.8 or '80 %'"
    for path in ("results.target_accuracy", "rounds.target_accuracy", "rounds.target.at_least"):
        with pytest.raises(ScenarioError, match=rf"^{re.escape(path)}: 80 {why}"):
            scenario.replace({path: 80})
    loss = scenario.replace({"rounds.target": {"metric": "loss", "at_most": 1.5}})
    assert loss.rounds.target.at_most == 1.5
