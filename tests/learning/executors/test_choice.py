"""Which executor computes a run, and that results are kept apart where their bits may differ."""

import json

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import ContractError, FedsimError
from fedsim.learning import ExecutorChoice, ExecutorUsed, TrainingSetup
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.results import run
from fedsim.simulation import Simulation
from tests.support.short_runs import LEARNING

SEQUENTIALLY = {"kind": "sequential", "device": "cpu", "precision": "float32", "fingerprint": "sequential"}


class Alike(SequentialExecutor):
    """The same bits in small batches."""

    max_batch = 1
    made = 0

    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        super().__init__(setup)
        self.device = device
        type(self).made += 1


class Nameless(SequentialExecutor):
    fingerprint = ""


class Batchless(SequentialExecutor):
    max_batch = 0


def losses(**options):
    history = simulate(Scenario.from_toml(LEARNING), **options)
    return list(history.evaluations.column("loss").to_pylist())


def test_the_environment_names_executor_and_device_of_runs_that_name_none(monkeypatch):
    monkeypatch.setenv("FEDSIM_EXECUTOR", f"{__name__}:Alike")
    before = Alike.made
    expected = losses(executor="sequential")
    assert Alike.made == before
    assert losses() == expected
    assert Alike.made == before + 1
    assert ExecutorChoice.of().device == "cpu"
    monkeypatch.setenv("FEDSIM_DEVICE", "cuda:7")
    assert (ExecutorChoice.of().device, ExecutorChoice.of(device="cpu").device) == ("cuda:7", "cpu")


def test_an_executor_is_told_its_device_and_the_run_folder_has_the_same_choice(tmp_path):
    seen = []

    def make(setup, device):
        seen.append(device)
        return Alike(setup, device)

    run(Scenario.from_toml(LEARNING), tmp_path / "out", executor=make, device="somewhere")
    assert seen == ["somewhere"]


def test_a_folder_says_that_its_run_was_fast(tmp_path):
    said = []
    for _ in range(2):
        run(Scenario.from_toml(LEARNING), tmp_path / "out", executor="sequential", fast=True, tell=said.append)
    assert "was finished before, with --fast" in said[-1]


@pytest.mark.parametrize(
    ("executor", "kind"), [("sequential", "sequential"), (Alike, f"{__name__}:Alike"), (f"{__name__}:Alike",) * 2]
)
def test_a_run_says_which_executor_computes_it_and_can_be_run_by_the_same_again(executor, kind):
    used = Simulation(Scenario.from_toml(LEARNING), executor=executor).executor_used
    assert used == ExecutorUsed(kind, "cpu", "float32", "sequential")
    read = ExecutorUsed.from_json(json.loads(json.dumps(used.to_json())))
    assert read == used
    assert ExecutorChoice.again(read).kind == kind


def test_a_run_about_timing_only_has_no_executor():
    scenario = Scenario.from_toml(
        LEARNING.partition("[learning]")[0] + '[learning]\nkind = "none"\nsamples_per_client = 10'
    )
    assert Simulation(scenario).executor_used is None


@pytest.mark.parametrize(
    "table", [None, [], {"kind": "sequential"}, {**SEQUENTIALLY, "device": 1}, {**SEQUENTIALLY, "fast": 1}]
)
def test_a_damaged_description_is_refused(table):
    with pytest.raises(FedsimError, match="it must be a table of the texts kind, device, precision, fingerprint"):
        ExecutorUsed.from_json(table)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"executor": "sequentail"}, FedsimError, r"executor: there is no executor 'sequentail' \(did you mean"),
        ({"executor": "nowhere:Executor"}, FedsimError, "executor: 'nowhere:Executor' cannot be loaded"),
        ({"device": "cuda:99"}, FedsimError, "device: 'cuda:99' is not allowed; torch finds"),
        ({"device": "abacus", "executor": "auto"}, FedsimError, "(?s)'auto' finds none for the device 'abacus'.*'cpu'"),
        ({"precision": "float16"}, FedsimError, "precision: 'float16' is not allowed; it must be one of float32, bfl"),
        ({"executor": Nameless}, ContractError, "Nameless.fingerprint: '' is not allowed"),
        ({"executor": Batchless}, ContractError, "Batchless.max_batch: 0 is not allowed"),
    ],
)
def test_wrong_choices_are_refused_in_words(options, error, message):
    with pytest.raises(error, match=message):
        losses(**options)
