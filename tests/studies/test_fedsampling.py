"""The experiments of FedSampling: settings of the paper, methods, lines of figures by hand, and the command."""

import csv
import gzip
from importlib import import_module

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.errors import DataError
from fedsim.learning.data.datasets import Dataset
from tests.support.study_commands import SCENARIOS, command


@pytest.fixture
def experiments(monkeypatch):
    monkeypatch.syspath_prepend(SCENARIOS / "fedsampling")
    return import_module("fedsampling_experiments")


@pytest.mark.parametrize("name", ["fig3", "fig4", "fig5", "fig6"])
def test_settings_are_those_of_section_4(name, experiments):
    """K 2048, M 300, epsilon 3, learning rate 0.05, average size 2 and sigma 4, or 300 samples of one label."""
    found = experiments.scenario_of(
        name, "fedsampling", next(iter(experiments.EXPERIMENTS[name].settings)), 3
    ).describe()
    assert (found["selector"]["samples"], found["learning"]["local"]["learning_rate"], found["seed"]) == (2048, 0.05, 3)
    plain = Scenario.load(SCENARIOS / "fedsampling" / f"{name}.toml").describe()
    assert (plain["selector"]["threshold"], plain["selector"]["epsilon"]) == (300, 3.0)
    split = plain["learning"]["split"]
    if name == "fig5":
        assert (split, plain["crowd"]["clients"]) == ({"kind": "shards", "test_share": 0.0, "shards": 1}, 60_000 // 300)
    else:
        assert (split["sigma"], split["mean_samples"]) == (4.0, 2.0)


def test_every_method_makes_a_scenario_of_its_own(experiments):
    found = {method: experiments.scenario_of("fig3", method, "all", 0) for method in experiments.LABELS}
    assert len({one.digest() for one in found.values()}) == 11
    kinds = {method: one.describe()["selector"]["kind"] for method, one in found.items()}
    assert kinds["fedyogi"] == "uniform"
    assert kinds["fedyogi-weighted"] == "weighted"
    assert found["fedadam"].describe()["learning"]["server"]["kind"] == "fedadam"
    assert found["fedavg"].describe()["rounds"]["weights"]["kind"] == "uniform"
    assert found["fedavg"].describe()["selector"]["cohort"] == 1024
    assert found["centralization"].describe()["learning"]["local"]["batch_size"] == 2048
    for data in experiments.FILE["data"]:
        assert experiments.scenario_of("table1", "fedsampling", "all", 0, data)
    # Centralised training is the same however samples are divided.
    assert len({experiments.scenario_of("fig4", "centralization", sigma).digest() for sigma in "1234"}) == 1


def test_the_method_has_the_papers_numbers(experiments):
    """Section 4.2: baselines decline against centralised training, FedSampling does not."""
    found = {key: float(row["accuracy"]) for key, row in import_module("results").PAPER.items()}
    for data in {data for data, _ in found}:
        best = max(found[data, method] for _, method in found if method.startswith(("fedavg", "fedy", "feda")))
        assert best < found[data, "fedsampling"]
        assert abs(found[data, "fedsampling"] - found[data, "centralization"]) < 1.0


def test_lines_of_settings_by_hand(experiments):
    lines_of = import_module("fedsampling_figures").lines_of
    found = {"1-m10 fedsampling": [70.0, 72.0], "3-m10 fedsampling": [75.0]}
    assert lines_of(found) == {"M = 10": {1.0: [70.0, 72.0], 3.0: [75.0]}}
    assert lines_of({"4 fedavg": [60.0]}) == {"FedAvg": {4.0: [60.0]}}


def test_bars_begin_at_nothing(experiments):
    figure = import_module("fedsampling_figures").figure_of(
        experiments.EXPERIMENTS["table1"], {"all fedavg": [82.0, 84.0]}
    )
    assert figure.axes[0].get_ylim() == (0.0, 100.0)


def test_the_validation_set_is_the_end_of_the_training_set(experiments, monkeypatch):
    module = import_module("validation_set")
    whole = Dataset(
        np.zeros((10_003, 2), np.float32), np.arange(10_003) % 2, np.ones((1, 2), np.float32), np.zeros(1, int)
    )
    monkeypatch.setattr(module.FashionMNIST, "load", lambda *_: whole)
    found = module.WithValidation().load()
    assert (len(found.train_x), found.test_y.tolist()) == (3, whole.train_y[3:].tolist())


def test_ag_news_is_read_as_mind(experiments, tmp_path):
    agnews = import_module("agnews")
    source = tmp_path / "test.csv.gz"
    with gzip.open(source, "wt", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, quoting=csv.QUOTE_ALL)
        writer.writerows([str(1 + i % 4), f"title {i}\twith tab", "line\nof text"] for i in range(20))
    file = agnews.converted(source, tmp_path)
    assert file.read_text().splitlines()[1] == "N2\tsports\t-\ttitle 1 with tab line of text"
    scenario = experiments.scenario_of("table1", "fedsampling", "all", 0).replace({"rounds.count": 1})
    history = simulate(scenario.replace({"crowd.clients": 10, "learning.split": "equal"}), data_dir=tmp_path)
    assert np.isfinite(history.metric("macro-f1")).all()
    (tmp_path / "bad.csv").write_text('"1","only a title"\n')
    file.unlink()
    with pytest.raises(DataError, match="line 1 has 2 cells"):
        agnews.converted(tmp_path / "bad.csv", tmp_path)


@pytest.mark.slow
def test_the_command_runs_and_finds_its_runs_again(tmp_path):
    options = ("fig5", "fig6", "--set", "learning.data=digits", "--set", "crowd.clients=30", "--scale", "0.005")
    options = (*options, "--set", "selector.samples=60", "--workers", "1", "--executor", "sequential", "--seeds", "2")
    first = command("fedsampling/results.py", tmp_path, *options)
    table = (tmp_path / "out" / "table.md").read_text()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "runs",
        "table.md",
        "fig5-here.png",
        "fig6-here.png",
    }
    assert table.count("| FedSampling |") == 1 + 9
    assert table in first
    assert command("fedsampling/results.py", tmp_path, *options, "--thin") == first.replace(
        "--seeds 2", "--seeds 2 --thin"
    )
    again = command("fedsampling/results.py", tmp_path, *options, "--thin")
    assert (tmp_path / "out" / "table.md").read_text() == table.replace("--seeds 2", "--seeds 2 --thin")
    assert again
    assert not list((tmp_path / "out").rglob("tables.arrows"))
    assert str(tmp_path) not in table


def test_a_row_of_estimates_of_exact_answers(experiments):
    """Epsilon 60 and sizes below M: N is exact, and K of it are drawn in every round."""
    row = import_module("estimates").row_of(np.full(50, 4), 20, 100, 60.0, 5)
    assert row[3:] == ["0", "0 %", "20, 20, 20"]


def test_longer_steps_are_the_last_of_each_fifty_rounds(experiments):
    """5,202 samples in place of 2,048 are a step 2.54 times as long."""
    longer = import_module("longer_steps").LongerSteps
    factor = np.array([longer(rounds=5).factors(version, 2) for version in range(600)])
    assert factor.shape == (600, 2)
    assert sorted(set(np.flatnonzero(factor[:, 0] > 1) % 50)) == [45, 46, 47, 48, 49]
    assert np.flatnonzero(factor[:, 0] > 1).size == 6 * 5
    assert np.flatnonzero(factor[:, 1] > 1)[0] == 345
    assert factor.max() == pytest.approx(5202 / 2048, abs=1e-3)
    scenario = experiments.scenario_of("fig3", "centralization")
    changed = [scenario.replace({"learning.local.schedule": longer(rounds=rounds)}) for rounds in (1, 5)]
    assert changed[0].digest() != changed[1].digest()
