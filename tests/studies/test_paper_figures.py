"""The figures of PAUSE and the tables of FedSUV: the settings of their runs, their numbers by hand, their commands."""

import itertools
import math
from importlib import import_module

import numpy as np
import pytest
import torch
from paper_runs import runs

from fedsim import Scenario
from fedsim.testing import check_selector
from tests.support.study_commands import SCENARIOS, command
from tests.support.views import rng, view_of

ON_DIGITS = (
    *("--set", "learning.data=digits", "--set", 'learning.model={kind = "mlp", hidden = [8]}'),
    *("--set", "crowd.clients=20", "--scale", "0.01", "--workers", "1", "--executor", "sequential"),
)


@pytest.fixture
def pause(monkeypatch):
    monkeypatch.syspath_prepend(SCENARIOS / "pause")
    return import_module("figure_experiments")


@pytest.fixture
def fedsuv(monkeypatch):
    monkeypatch.syspath_prepend(SCENARIOS / "fedsuv")
    return import_module("fedsuv_tasks")


@pytest.fixture
def measures(fedsuv):
    return import_module("measures")


# K, m, budget, Delta f, rounds, alpha, beta, gamma, zeta, iterations of SA, seed: from the authors' scripts and logs.
SETTINGS = {
    "fig2": (30, 5, 40.0, 0.012, 300, 100.0, 2.0, 5.0, 1.0, 1000, 1),
    "fig4": (30, 5, 100.0, 0.012, 400, 20.0, 2.0, 40.0, 1.0, 1000, 1),
    "fig6": (300, 15, 20.0, 0.003, 300, 20.0, 1.0, 10.0, 3.0, 3000, 0),
    "fig8": (300, 15, 10.0, 0.004, 500, 10.0, 2.0, 10.0, 4.0, 4000, 3),
}


def scenario(experiment, method, seed=0):
    return experiment.base.replace({"seed": experiment.base.seed + seed, **experiment.methods[method]})


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_pause_are_those_of_the_authors_runs(name, pause):
    (experiment,) = (one for one in pause.EXPERIMENTS if one.name == name)
    found = scenario(experiment, "sa-pause").describe()
    selector, privacy = found["selector"], found["privacy"]
    assert SETTINGS[name] == (
        *(found["crowd"]["clients"], selector["cohort"], privacy["budget"]["epsilon"]),
        *(privacy["mechanism"]["delta_f"], found["rounds"]["count"]),
        *(selector["alpha"], selector["beta"], selector["gamma"], selector["zeta"], selector["iterations"]),
        found["seed"],
    )
    assert (privacy["budget"]["eta"], found["rounds"]["until_s"], selector["tau_min_s"]) == (0.04, 600.0, 0.05)
    kappas = [scenario(experiment, method).describe()["selector"]["kappa"] for method in ("sa-pause", "sa-pause-30")]
    assert kappas == [70.0, 30.0]


def test_every_figure_of_pause_has_its_baselines(pause):
    assert [(one.accuracy, one.leakage) for one in pause.EXPERIMENTS] == [(2, 3), (4, 5), (6, 7), (8, 9)]
    for experiment in pause.EXPERIMENTS:
        kinds = {name: scenario(experiment, name).describe()["selector"]["kind"] for name in experiment.methods}
        assert kinds["clustered"] == "clustered-size"
        assert (kinds["all"], kinds["all-open"], kinds["fastest"]) == ("all", "all", "fastest")
        assert scenario(experiment, "all-open").privacy is None
        equal = scenario(experiment, "all").describe()["learning"]["split"]["kind"] == "equal"
        assert ("random" not in experiment.not_in_paper) is equal  # section V-A
        assert ("pause" not in experiment.not_in_paper) is (experiment.name in {"fig2", "fig4"})


def test_the_network_of_section_v_for_mnist(pause):
    """Convolutions 80 + 1,168 + 4,640, their normalisations 16 + 32 + 64, dense layers 1,056 + 528 + 170."""
    module = import_module("paper_models").PaperMnist().build((1, 28, 28), 10)
    assert sum(part.numel() for part in module.parameters()) == 7754


# Learning rate, local epochs, batch size and clients of Table 1.
TABLE_1 = {
    "cifar10_resnet18": (0.01, 1, 10, 3500),
    "cifar10_mobilenet": (0.01, 1, 10, 3500),
    "cifar100_shufflenet": (0.04, 1, 20, 3500),
    "femnist_resnet18": (0.05, 5, 20, 3500),
    "speech_resnet34": (0.04, 1, 16, 2618),
}


def of_task(fedsuv, task, method, aggregation, local, seed=0):
    base = fedsuv.base_of(task, local)
    return base.replace({"seed": seed, **fedsuv.SERVERS[aggregation], **fedsuv.METHODS[method]})


@pytest.mark.parametrize("task", TABLE_1)
def test_tasks_of_fedsuv_are_those_of_its_first_table(task, fedsuv):
    epochs = of_task(fedsuv, task, "fedavg", "averaging", "epochs").describe()
    steps = of_task(fedsuv, task, "fedsuv", "yogi", "steps", 7).describe()
    local = epochs["learning"]["local"]
    found = local["learning_rate"], local["epochs"], local["batch_size"], epochs["crowd"]["clients"]
    assert found == TABLE_1[task]
    assert local.get("steps") is None
    work = steps["learning"]["local"]
    assert (work["steps"], work["epochs"]) == (TABLE_1[task][1], 1)
    # The file is the row of FedSUV with averaging.
    row = of_task(fedsuv, task, "fedsuv", "averaging", "steps")
    assert Scenario.load(fedsuv.HERE / f"{task}.toml").digest() == row.digest()
    assert steps["selector"]["samples_per_round"] == TABLE_1[task][1] * TABLE_1[task][2]
    assert steps["learning"]["server"]["kind"] == "fedyogi"
    assert steps["seed"] == 7
    for one in (epochs, steps):
        assert one["rounds"]["policy"] == {"kind": "deadline", "deadline_s": 100.0}
        assert one["selector"]["cohort"] == 20


@pytest.mark.parametrize("method", ["fedavg", "safa", "oort", "refl", "fedsuv", "fedsuv-rest"])
def test_every_method_of_fedsuv_makes_a_scenario_in_both_readings(method, fedsuv):
    digests = {
        of_task(fedsuv, "cifar10_mobilenet", method, aggregation, local).digest()
        for aggregation in ("averaging", "yogi")
        for local in ("steps", "epochs")
    }
    assert len(digests) == 4


def test_what_fedsuv_reports_has_a_number_for_each_method(fedsuv):
    methods = [method for method in fedsuv.LABELS if method != "fedsuv-rest"]
    assert set(fedsuv.PAPER) == set(itertools.product(fedsuv.TASKS, fedsuv.SERVERS, methods))
    # Section 6.2: up to 3.54 times as fast with averaging, 2.92 times with Yogi; 130 rounds on CIFAR-100.
    rounds = {key: int(row["rounds"]) for key, row in fedsuv.PAPER.items()}
    speed = {
        of: max(rounds[task, of, "fedavg"] / rounds[task, of, "fedsuv"] for task in fedsuv.TASKS)
        for of in fedsuv.SERVERS
    }
    assert speed == {"averaging": pytest.approx(3.54, abs=0.005), "yogi": pytest.approx(2.92, abs=0.005)}


def test_the_effective_number_of_clients_by_hand(measures):
    """Ten rounds of clients 0, 1, 1, 1 (1 / (1/16 + 9/16) = 1.6), then ten of two clients in turn (2): 1.8."""
    number, client = np.array([1, 2, 3, 10, 11, 20]), np.array([0, 1, 1, 1, 5, 6])
    assert measures.effective_number(number, client) == pytest.approx(1.8)


def test_the_speed_up_over_fedavg_by_hand(measures):
    """FedAvg has the target after 100 and never of 250 rounds: 175 or more over a mean of 50."""
    found = {
        "fedavg": [{measures.TO_TARGET: 100.0}, {measures.TO_TARGET: math.inf}],
        "fedsuv": [{measures.TO_TARGET: rounds} for rounds in (40.0, 60.0)],
    }
    cells = dict(import_module("tables").columns_of("cifar10_mobilenet", "yogi", 250))
    row = runs.Row("fedsuv", found["fedsuv"], found)
    assert cells["speed-up over FedAvg"](row) == "at least 3.50"
    assert cells["speed-up over FedAvg"](row._replace(found={})) == "-"
    never = [{measures.TO_TARGET: math.inf}]
    assert cells["speed-up over FedAvg"](row._replace(runs=never)) == "-"


def test_the_least_involved_are_taken_first(fedsuv):
    selector = import_module("least_involved").LeastInvolved(3)
    view = type("View", (), {"client": np.array([2, 4, 6, 8, 9]), "participations": np.array([1, 0, 2, 0, 1])})
    stream = rng()
    cohorts = {tuple(selector.select(view, stream).client.tolist()) for _ in range(40)}
    assert cohorts == {(2, 4, 8), (4, 8, 9)}


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), [("least_involved", "LeastInvolved"), ("other_features", "EachAnArm")])
def test_selectors_of_the_study_fulfil_the_contract(fedsuv, module, name):
    check_selector(lambda: getattr(import_module(module), name)(3))


@pytest.mark.parametrize(("name", "columns"), [("EachAnArm", []), ("WithoutBandwidth", [1, 3])])
def test_fedsuv_with_other_features_sees_these_alone(fedsuv, name, columns):
    selector = getattr(import_module("other_features"), name)(3)
    features = np.arange(36.0).reshape(9, 4)
    assert selector.select(view_of(9, features=features), rng()).client.size == 3
    np.testing.assert_array_equal(selector._beliefs._features, features[:, columns])


@pytest.mark.parametrize(("network", "parameters"), [("resnet18", 11_181_642), ("mobilenet_v2", 2_236_682)])
def test_networks_are_those_of_torchvision(network, parameters, fedsuv):
    """11,689,512 and 3,504,872 parameters with 1,000 classes (torchvision), less 990 outputs of 512 or 1,280."""
    model = Scenario.load(SCENARIOS / "fedsuv" / "cifar10_resnet18.toml").replace({"learning.model.network": network})
    with torch.device("meta"):
        module, grey = (model.learning.model.build(shape, 10) for shape in ((3, 32, 32), (1, 28, 28)))
    assert sum(part.numel() for part in module.parameters()) == parameters
    first = next(part for part in grey.parameters())
    fewer = 2 * first.numel()  # of the first layer, which has one channel instead of three
    assert sum(part.numel() for part in grey.parameters()) == parameters - fewer


@pytest.mark.slow
def test_figures_of_pause_run_and_are_found_again(tmp_path):
    options = ("--figure", "6", "7", "--methods", "all-open", "sa-pause", "--seeds", "2", "--once", "all-open")
    options = (*options, *ON_DIGITS, "--set", "rounds.count=200")
    first = command("pause/figures.py", tmp_path, *options)
    table = (tmp_path / "out" / "table.md").read_text()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"runs", "table.md", "fig6.png", "fig7.png"}
    assert table.count("\n| ") == 4  # heads, rule, two methods
    seeds = {row["method"]: row["seeds"] for row in import_module("paper_runs.tables").tables_of(table)[0]}
    assert seeds == {"all users, no privacy": "1", "SA-PAUSE": "2"}
    assert table in first
    again = command("pause/figures.py", tmp_path, *options)
    assert again == first
    assert str(tmp_path) not in table


@pytest.mark.slow
def test_tables_of_fedsuv_run(tmp_path):
    changed = ("--set", "rounds.count=200", "--set", "learning.split=equal", "--set", "devices.availability=always")
    command("fedsuv/tables.py", tmp_path, "--task", "cifar10_mobilenet", "--aggregation", "yogi", *ON_DIGITS, *changed)
    table = (tmp_path / "out" / "table.md").read_text()
    for method in ("FedAvg", "SAFA", "Oort", "REFL", "FedSUV"):
        assert table.count(f"\n| {method} |") == 1
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"runs", "table.md", "cifar10_mobilenet-yogi-steps.png"}
