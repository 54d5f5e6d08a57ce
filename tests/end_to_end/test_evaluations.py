"""Evaluations at time 0 and on each client's samples in whole runs: what they change, what they share, what is kept."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fedsim import Scenario, read_run, run, simulate
from fedsim.cli import app
from fedsim.errors import ScenarioError
from fedsim.learning import MemoryStore, Work
from fedsim.results import read_summary, recording, report, rows, sentences, summarise
from fedsim.simulation import Simulation
from tests.support.run_folders import stopped
from tests.support.tiny_targets import TinyTargets

SCENARIO = Scenario(
    name="evaluated",
    crowd={"clients": 8},
    learning={
        "data": {"kind": "digits", "train_limit": 240},
        "split": {"kind": "dirichlet", "alpha": 0.5, "min_samples": 8},
        "model": {"kind": "mlp", "hidden": [8]},
        "local": {"epochs": 1, "batch_size": 8, "learning_rate": 0.2},
    },
    network="pause-two-speed",
    rounds={"count": 4, "policy": {"kind": "deadline", "deadline_s": 0.9}},
    selector={"kind": "uniform", "cohort": 3},
    results={"audit": True},
)
REGRESSION = {
    "task": {"kind": "regression", "metrics": ["mean-absolute-error"]},
    "data": TinyTargets(of="numbers"),
    "split": "equal",
    "model": {"kind": "mlp", "hidden": [4]},
}
SERVERS = {
    "flat": {},
    "asynchronous": {"rounds.policy": {"kind": "fedbuff", "concurrency": 4, "buffer": 2}},
    "edges": {"rounds.edges": {"grouping": {"kind": "order", "count": 2}, "backhaul": "none"}, "selector.cohort": 2},
}


@pytest.mark.parametrize("server", SERVERS)
def test_missing_evaluations_are_those_of_a_run_that_makes_all(server, tmp_path):
    store = MemoryStore()
    every = simulate(SCENARIO.replace(SERVERS[server]), store=store)
    sparse = SCENARIO.replace({**SERVERS[server], "results.evaluate_every": 3, "results.evaluate_start": False})
    few = simulate(sparse, store=store)
    assert few.evaluations.num_rows < every.evaluations.num_rows
    assert few.evaluate_missing().evaluations.equals(every.evaluations)
    for history in (run(sparse, tmp_path / "run", store=store), read_run(tmp_path / "run")):
        assert history.evaluate_missing().evaluations.equals(every.evaluations)


def test_a_target_that_ended_a_run_does_not_end_its_repetition():
    stopped_at = simulate(SCENARIO.replace({"rounds.target_accuracy": 0.1, "results.evaluate_every": 2}))
    assert stopped_at.rounds.num_rows == 2
    assert stopped_at.evaluate_missing().column("evaluations", "round").tolist() == [0, 1, 2]


def test_a_run_about_timing_alone_evaluates_nothing_and_names_a_target():
    learning = {"kind": "none", "model_bits": 1e6, "samples_per_client": 9}
    timing = {"learning": learning, "rounds.count": 2, "results.evaluate_clients": "last"}
    known = "rounds.target: no round was evaluated, so that no target could end the run"
    for name, value in (("target_accuracy", 0.1), ("target", {"metric": "loss", "at_most": 1.0}), ("until_s", 1e9)):
        history = simulate(SCENARIO.replace({**timing, f"rounds.{name}": value}))
        assert (history.evaluations.num_rows, history.client_evaluations) == (0, None)
        assert (known in history.notes) == (name != "until_s")


def test_a_model_that_is_no_number_has_no_accuracy_and_ends_no_run():
    """Training samples of 1e30 make models NaN; the greatest of NaN is label 0, which nine in ten have."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 5)).astype("float32"), np.where(rng.random(200) < 0.9, 0, 1)
    x[:20] = 1e30
    learning = {"data": (x[:160], y[:160], x[160:], y[160:]), "model": {"kind": "mlp", "hidden": []}}
    values = {"learning": learning, "rounds.target_accuracy": 0.85, "results.evaluate_clients": "last"}
    history = simulate(SCENARIO.replace({**values, "rounds.policy": "wait-for-all", "selector": "all"}), store=False)
    assert history.rounds.num_rows == 4
    assert history.column("evaluations", "accuracy")[2:].tolist() == pytest.approx([np.nan] * 3, nan_ok=True)
    assert history.mean_over_time() is None
    assert set(history.client_evaluations.column("accuracy").to_pylist()) == {None}
    summary = summarise(history)
    assert (summary["final_accuracy"], summary["client_accuracy_mean"]) == (None, None)


def test_what_ifs_and_other_selectors_find_the_first_evaluation():
    store = MemoryStore()
    first = Simulation(SCENARIO, store=store)
    first.run()
    other = Simulation(SCENARIO.replace({"rounds.policy.deadline_s": 0.8, "selector.kind": "round-robin"}), store=store)
    other.run()
    assert first.context.learner.work.evaluated == 5
    assert other.context.learner.work.evaluations_found >= 1
    again = Simulation(SCENARIO.replace({"results.evaluate_clients": 2}), store=store)
    history = again.run()
    trained = first.context.learner.work.trained
    probed = 3 * 8
    assert again.context.learner.work == Work(trainings_found=trained, evaluations_found=5, probed=probed)
    assert history.column("client_evaluations", "round").tolist() == [0] * 8 + [2] * 8 + [4] * 8


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("algorithm", ["plain", "fedper"])
def test_losses_of_clients_are_those_of_the_test_set_and_fall(server, algorithm):
    """At time 0 all clients have the server's model, also those that will have layers of their own."""
    changes = {"learning.algorithm": algorithm, "results.evaluate_clients": 2, **SERVERS[server]}
    run_of = Simulation(SCENARIO.replace(changes))
    history, learner = run_of.run(), run_of.context.learner
    number, samples, accuracy, loss = (
        history.column("client_evaluations", name) for name in ("round", "samples", "accuracy", "loss")
    )
    assert sorted(set(number.tolist())) == [0, 2, 4]
    assert samples[number == 0].sum() == 360
    first = loss[number == 0] @ samples[number == 0] / 360
    assert first == pytest.approx(Simulation(SCENARIO).context.learner.evaluate(learner.initial()).loss, rel=1e-6)
    models = set(history.client_evaluations.column("model").to_pylist())
    assert models == {"server" if algorithm == "plain" else "own"}
    assert loss[number == 4].mean() < loss[number == 0].mean()
    assert ((accuracy >= 0) & (accuracy <= 1)).all()


@pytest.mark.usefixtures("figures")
def test_the_run_folder_has_the_table_its_figure_and_the_spread(tmp_path):
    history = run(SCENARIO.replace({"results.evaluate_clients": "last"}), tmp_path / "run", store=False)
    read = read_run(tmp_path / "run")
    assert read.client_evaluations.equals(history.client_evaluations)
    assert read.fairness().equals(history.fairness())
    assert json.loads((tmp_path / "run" / "run.json").read_text())["tables"]["client_evaluations"]["rows"] == 8
    summary, spread = read_summary(tmp_path / "run"), history.fairness().to_pylist()[0]
    assert {name: summary[f"client_accuracy_{name}"] for name in ("mean", "std", "worst_decile", "jain")} == {
        name: spread[name] for name in ("mean", "std", "worst_decile", "jain")
    }
    assert (tmp_path / "run" / "accuracy_of_clients.png").exists()
    out = tmp_path / "clients.svg"
    typed = CliRunner().invoke(app, ["plot", str(tmp_path / "run"), "--y", "clients", "--out", str(out)])
    assert typed.exit_code == 0, typed.output
    assert "<svg" in out.read_text()


@pytest.mark.usefixtures("figures")
def test_a_task_without_accuracy_has_a_table_and_neither_figure_nor_spread_of_it(tmp_path):
    scenario = SCENARIO.replace({"learning": REGRESSION, "results.evaluate_clients": "last"})
    history = run(scenario, tmp_path / "run", store=False)
    row = read_run(tmp_path / "run").client_evaluations.to_pylist()[0]
    assert row["accuracy"] is None
    assert row["loss"] > 0
    assert dict(row["metrics"])["mean-absolute-error"] > 0
    figures = {path.name for path in (tmp_path / "run").glob("*.png")}
    assert figures == {"loss.png", "round_durations.png"}
    errors = history.plot("round", "mean-absolute-error").axes[0].get_lines()[0]
    assert errors.get_ydata().tolist() == history.metric("mean-absolute-error").tolist()
    summary = read_summary(tmp_path / "run")
    assert summary["client_accuracy_mean"] is None
    assert summary["mean_accuracy"] is None
    assert "it has no accuracy, and ends with mean-absolute-error " in sentences(history)[0]
    target = {"rounds.target": {"metric": "mean-absolute-error", "at_most": history.metric("mean-absolute-error")[2]}}
    run(scenario.replace(target), tmp_path / "target", store=False)
    reached = read_run(tmp_path / "target")
    assert (reached.rounds.num_rows, reached.column("rounds", "end_s")[-1]) == (2, history.column("rounds", "end_s")[1])
    assert sentences(reached)[0].startswith(f"{reached.target} is first reached at ")
    assert dict(rows(read_summary(tmp_path / "target")))[f"time to {reached.target}, first reached"].endswith(" s")
    assert len(reached.plot(y="mean-absolute-error").axes[0].collections) == 1
    assert not [line for line, _ in rows(summary) if "accuracy" in line]
    errors = history.metric("mean-absolute-error")
    assert history.explain(metric="mean-absolute-error", below=errors[1]).column("rounds").to_pylist() == [1]
    assert history.fairness("mean-absolute-error").column("clients").to_pylist() == [8]
    pages = {page.title: page.lines for page in report(history)}
    assert "accuracy of the model on local test samples" not in pages
    errors = history.metric("mean-absolute-error", "client_evaluations")
    told = summary["client_metric"]
    assert told["name"] == "mean-absolute-error"
    assert (told["mean"], told["std"]) == pytest.approx((errors.mean(), errors.std()))
    # A tenth of eight clients is one.
    assert (told["worst_decile"], told["best_decile"]) == (errors.min(), errors.max())
    line = dict(rows(summary))["mean-absolute-error of clients"]
    assert line.startswith(f"mean {errors.mean():.4g}, deviation {errors.std():.4g}, lowest tenth {errors.min():.4g}")
    (page,) = pages["mean-absolute-error of the model on local test samples"]
    assert page[:3] == ("4", "8", f"{errors.mean():.4g}")


def test_a_run_that_was_cut_off_goes_on_with_evaluations_of_clients(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "draw", lambda *_, **__: None)
    scenario = SCENARIO.replace({"results.evaluate_clients": 1})
    stopped(scenario, tmp_path / "run", 2, store=False)
    so_far = read_run(tmp_path / "run")
    assert so_far.column("evaluations", "round").tolist() == [0, 1, 2]
    assert sorted(set(so_far.column("client_evaluations", "round").tolist())) == [0, 1, 2]
    history = run(scenario, tmp_path / "run", store=False)
    assert history.client_evaluations.equals(simulate(scenario).client_evaluations)


@pytest.mark.parametrize("value", [0, -1, "always", True, 1.5])
def test_what_is_no_choice_is_refused_in_words(value):
    allowed = "input should be 'never', 'last' or a whole number of at least 1"
    with pytest.raises(ScenarioError, match=rf"results\.evaluate_clients: .* is not allowed; {allowed}"):
        SCENARIO.replace({"results.evaluate_clients": value})


@pytest.mark.parametrize(
    ("server", "every", "target"), [("flat", 2, 0.2), ("asynchronous", 3, 0.25), ("edges", 4, 0.2)]
)
def test_the_first_model_at_a_target_is_found_between_two_evaluations(server, every, target, tmp_path):
    learning = {**SERVERS[server], "rounds.count": 12, "results.target_accuracy": target}
    store = MemoryStore()
    full = simulate(SCENARIO.replace(learning), store=store)
    rows = {row["round"]: row for row in full.evaluations.to_pylist()}
    looked = [number for number in rows if number % every == 0]
    later = next(number for number in looked if rows[number]["accuracy"] >= target)
    first = next(number for number in rows if later - every < number and rows[number]["accuracy"] >= target)
    version = {number: row["model_version"] for number, row in rows.items()}
    between = [n for n in range(later - every + 1, later) if version[n - 1] < version[n] < version[later]]
    sparse = SCENARIO.replace({**learning, "results.evaluate_every": every})
    for history in (
        simulate(sparse, store=store),
        run(sparse, tmp_path / "run", store=store),
        read_run(tmp_path / "run"),
    ):
        seen = history.evaluations.to_pylist()
        assert history.time_to_accuracy(target) == rows[first]["time_s"]
        assert [row["round"] for row in seen] == sorted({*looked, *between})
        assert all(row == rows[row["round"]] for row in seen)


def test_the_first_model_below_a_target_of_another_metric_is_found_between_two_evaluations():
    """The error falls from model to model; that of round 4 is the target, and round 6 is the first one evaluated."""
    scenario, store, metric = SCENARIO.replace({"learning": REGRESSION}), MemoryStore(), "mean-absolute-error"
    full = simulate(scenario.replace({"rounds.count": 6}), store=store)
    errors = full.metric(metric)
    assert (np.diff(errors) < 0).all()
    goal = {"rounds.target": {"metric": metric, "at_most": float(errors[4])}, "rounds.count": 12}
    history = simulate(scenario.replace({**goal, "results.evaluate_every": 3}), store=store)
    assert history.evaluations.equals(full.evaluations.take([0, 3, 4, 5, 6]))
    assert history.time_to(metric, below=float(errors[4])) == full.column("evaluations", "time_s")[4]


def test_models_before_a_target_are_not_evaluated_where_they_are_more_than_the_evaluations_of_the_run():
    sparse = SCENARIO.replace(
        {
            "rounds.count": 9,
            "results.target_accuracy": 0.2,
            "results.evaluate_every": 9,
            "results.evaluate_start": False,
        }
    )
    history = simulate(sparse)
    assert history.column("evaluations", "round").tolist() == [9]
    reached = history.reached(above=0.2)
    assert reached.after_s == history.column("rounds", "end_s")[0] < reached.first_s
