"""Questions beside a study: what if, sensitivity, the best values, enough seeds, and round times in the long run."""

import importlib.util
import math

import numpy as np
import pytest

from fedsim import Scenario, Study, simulate, sweep
from fedsim.errors import FedsimError
from fedsim.results import run as run_in_folder
from fedsim.studies.comparing.why import why
from fedsim.studies.figures.bars import draw_tornado, draw_why
from fedsim.studies.questions.best import Over, best
from fedsim.studies.questions.enough import Enough, pairs_needed, run_until
from fedsim.studies.questions.sensitivity import fields_of, sensitivity
from fedsim.studies.questions.steady import steady, warm_up
from fedsim.studies.questions.whatif import first_apart, what_if
from fedsim.studies.running.engine import Engine
from tests.benchmarks import study_coverage
from tests.support.hand_made import by_hand

ONE = Engine(jobs=1)
ALL = Scenario(**by_hand(selector="all", results={}))


def test_whatif_says_what_changed_and_when_the_runs_part():
    """All clients take 7 s; from 6.5 s on the slowest one of them is late in the first round already."""
    run = simulate(ALL)
    same = what_if(run, {"rounds.policy": {"kind": "deadline", "deadline_s": 8.0}})
    assert same.parts_in_round is None
    assert same.sentences[1] == "All rounds have the same cohorts and outcomes."
    cut = what_if(run, {"rounds.policy": {"kind": "deadline", "deadline_s": 6.5}})
    assert cut.parts_in_round == 1
    assert cut.after.column("rounds", "duration_s").tolist() == [6.5] * 3
    assert "rounds.policy wait-for-all -> deadline deadline_s=6.5" in cut.sentences[0]
    assert cut.why.difference == pytest.approx(-1.5)
    with pytest.raises(FedsimError, match="changes nothing"):
        what_if(run, {"rounds.count": 3})


@pytest.mark.parametrize(
    "typed",
    [
        ("check", "cut.toml"),
        ("whatif", "run", "--set", "rounds.policy={kind='deadline',deadline_s=1}"),
        ("sweep", "cut.toml", "--grid", "rounds.policy.deadline_s=1,9", "--seeds", "1", "--jobs", "1"),
        ("best", "cut.toml", "--over", "rounds.policy.deadline_s=1..2", "--for", "mean_round_s", "--trials", "1"),
    ],
)
def test_each_command_tells_that_nothing_arrives(typed, tmp_path, monkeypatch, capsys):
    """Rounds are short then, and best by that alone."""
    from fedsim.cli import app

    monkeypatch.chdir(tmp_path)
    run_in_folder(ALL, tmp_path / "run", store=False)
    cut = ALL.replace({"rounds.policy": {"kind": "deadline", "deadline_s": 1.0}})
    (tmp_path / "cut.toml").write_text(cut.to_toml())
    app([*typed], standalone_mode=False)
    assert "rounds.policy: no client delivers within the deadline on average" in capsys.readouterr().err


def test_whatif_finds_the_trainings_before_the_round_in_which_models_part(tmp_path):
    """Models are stored, and updates are not: clients that deliver to both in the round of the parting train again."""
    learning = {"data": "digits", "split": "equal", "model": {"kind": "mlp", "hidden": [8]}, "local": {"epochs": 1}}
    devices = {"compute": {"kind": "rate", "samples_per_s": 400.0, "spread_sigma": 0.0, "jitter_sigma": 0.5}}
    run = simulate(Scenario(**by_hand(learning=learning, devices=devices, selector="all")), store=tmp_path)
    short, longer = (
        what_if(run, {"rounds.policy": {"kind": "deadline", "deadline_s": deadline_s}}, store=tmp_path)
        for deadline_s in (5.0, 5.6)
    )
    delivered = [one.after.column("rounds", "delivered").tolist() for one in (short, longer)]
    assert delivered == [[2, 3, 3], [2, 4, 3]]
    assert (short.parts_in_round, longer.parts_in_round, first_apart(short.after, longer.after)) == (1, 1, 2)
    assert (short.found, short.trained) == (0, 8)
    assert (longer.found, longer.trained) == (2, 7), "its second model is that of the short deadline"


def test_why_parts_a_difference_without_a_rest():
    """Half the rate of work makes 2 s to 4 s in each of three rounds; nothing else changes."""
    runs = [simulate(ALL.replace({"devices.compute.samples_per_s": rate})) for rate in (10.0, 5.0)]
    found = why({"fast": {0: runs[0], 1: runs[0]}, "slow": {0: runs[1], 1: runs[1]}}, "fast")[0]
    assert found.difference == pytest.approx(6.0)
    assert {name: round(mean, 9) for name, (mean, _) in found.factors.items() if abs(mean) > 1e-9} == {"compute_s": 6.0}
    assert found.sentence.startswith("'slow' is 6 s +- 0 slower than 'fast' (2 pairs): work +6 s +- 0")
    assert len(draw_why([found]).axes[0].patches) == 8


@pytest.mark.usefixtures("in_turn")
def test_sensitivity_ranks_fields_by_what_they_do(tmp_path):
    """Of 3 x 7 s: downlink 1 s, work 2 s at 10 samples a second, uplink 4 x 1 s for the slowest."""
    assert set(fields_of(ALL)) >= {"network.uplink.value_s", "devices.compute.samples_per_s"}
    found = sensitivity(ALL, tmp_path, ONE, name="simulated_s", factor=2.0, quiet=True)
    rows = {row["field"]: row for row in found.table.to_pylist()}
    assert found.base == 21.0
    assert [rows["network.uplink.value_s"][end] for end in ("low", "high")] == [-6.0, 12.0]
    assert [rows["devices.compute.samples_per_s"][end] for end in ("low", "high")] == [6.0, -3.0]
    assert next(iter(rows)) == "network.uplink.value_s"
    draw_tornado(list(rows), [0.0] * len(rows), [1.0] * len(rows), "s", tmp_path / "t.png")
    assert (tmp_path / "t.png").exists()


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("method", ["morris", "sobol"])
def test_salib_finds_the_same_field(method, tmp_path):
    pytest.importorskip("SALib", reason="the extra 'salib' is not installed")
    found = sensitivity(ALL, tmp_path, ONE, name="simulated_s", factor=2.0, method=method, rows=4, quiet=True)
    assert found.table["field"][0].as_py() == "network.uplink.value_s"


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("library", ["optuna", "scipy"])
def test_a_search_finds_the_best_value(library, monkeypatch, tmp_path):
    """The shortest run is that of the highest rate; beside it the fewest bits are those of the smallest cohort."""
    if library == "scipy":
        monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    elif not importlib.util.find_spec("optuna"):
        pytest.skip("the extra 'optuna' is not installed")
    base = Scenario(**by_hand(results={}))
    rate = Over.of(base, "devices.compute.samples_per_s", "5..20")
    tried, front = best(base, [rate], ["simulated_s"], tmp_path / "one", ONE, trials=12, seeds=1)
    assert len(front) == 1
    assert front[0].means[0] == min(trial.means[0] for trial in tried)
    assert front[0].values["devices.compute.samples_per_s"] > 15
    cohort = Over.of(base, "selector.cohort", "1..3")
    assert cohort.whole
    tried, front = best(base, [rate, cohort], ["simulated_s", "bits"], tmp_path / "both", ONE, trials=8, seeds=1)
    for trial in front:
        assert not [t for t in tried if all(a < b for a, b in zip(t.means, trial.means, strict=True))]


@pytest.mark.usefixtures("in_turn")
def test_a_run_that_evaluates_nothing_does_not_go_on_to_a_horizon(tmp_path):
    grid = {"selector.cohort": [1, 3]}
    base = Scenario(**by_hand(results={}))
    study = sweep(base, grid, seeds=2, metrics=["time_to_80%"], horizon=1e6, out=tmp_path, quiet=True)
    assert study.watched("cohort=1", 0).rounds.num_rows == 3
    assert study.compare().lines[0].paired.refused == "2 of 2 pairs have no value"


@pytest.mark.parametrize("name", ["macro-f1@30s", "rounds"])
def test_a_metric_of_which_better_is_not_known_is_not_searched(name, tmp_path):
    over = [Over("selector.cohort", 1, 4, whole=True)]
    with pytest.raises(FedsimError, match=f"{name} it is not known whether less or more is better"):
        best(ALL, over, [name], tmp_path, ONE)


@pytest.mark.parametrize(
    ("values", "words"),
    [*((values, "LOW..HIGH") for values in ("5", "7..3", "1.2.3..5", "1..1e999")), ("1.2..1.8", "with a whole number")],
)
def test_ranges_that_are_none_are_refused(values, words):
    with pytest.raises(FedsimError, match=words):
        Over.of(ALL, "rounds.count", values)


def test_pairs_that_a_goal_needs_by_hand():
    """Ten pairs with a deviation of 2 and Student's quantile of 2.262: (2.262 x 2 / 0.5)^2 is 81.9."""
    differences = np.array([-1.0, 1.0] * 5) * 2 * math.sqrt(9 / 10)
    assert pairs_needed(differences, 0.5, 0.95) == 82
    assert pairs_needed(differences, 50.0, 0.95) == 10
    assert Enough.of("time_to_80% within 5%") == Enough("time_to_80%", 0.05)
    with pytest.raises(FedsimError, match="METRIC within 5%"):
        Enough.of("time_to_80% to 5%")


@pytest.mark.usefixtures("in_turn")
def test_seeds_are_added_until_it_is_enough_or_the_bound(tmp_path):
    study = Study.of(
        Scenario(**by_hand(results={})), grid={"selector.cohort": [1, 3]}, seeds=2, metrics=["mean_round_s"]
    )
    result, said = run_until(study, tmp_path, ONE, Enough("mean_round_s", 0.5), 24, quiet=True)
    assert len(result.study.seeds) == 20
    assert said.startswith("20 seeds: the spread of the first 10 asks for ")
    result, said = run_until(study, tmp_path, ONE, Enough("mean_round_s", 0.01), 24, quiet=True)
    assert len(result.study.seeds) == 24
    assert said.endswith("stopped at 24, so that the interval is wider")
    unknown = Study.of(study.base, grid={"selector.cohort": [1, 3]}, seeds=2, metrics=["final_accuracy"])
    with pytest.raises(FedsimError, match="cohort=1, seed 0: not all runs reach final_accuracy"):
        run_until(unknown, tmp_path, ONE, Enough("final_accuracy", 0.5), quiet=True)


def exponential(policy):
    """Return four clients of a cohort whose uplinks take exponential times of 1 s, and nothing else does."""
    uplink = {"kind": "shifted-exponential", "shift_s": 0.0, "scale_s": 1.0}
    network = {"kind": "latency", "downlink": {"kind": "constant", "value_s": 0.0}, "uplink": uplink}
    tables = by_hand(selector="all", results={}, network=network, devices={"compute": "zero"})
    return Scenario(**{**tables, "rounds": {"count": 2000, "policy": policy}})


@pytest.mark.parametrize(
    ("policy", "mean_s", "median_s"),
    [
        # The slowest of four takes 1 + 1/2 + 1/3 + 1/4 s; half of the rounds take at most -ln(1 - 0.5^(1/4)) s.
        pytest.param("wait-for-all", 25 / 12, -math.log(1 - 0.5**0.25), marks=pytest.mark.slow),
        # The integral of 1 - (1 - e^-t)^4 up to the deadline of 2 s, in closed form.
        (
            {"kind": "deadline", "deadline_s": 2.0},
            sum((-1) ** (k + 1) * math.comb(4, k) * (1 - math.exp(-2 * k)) / k for k in range(1, 5)),
            -math.log(1 - 0.5**0.25),
        ),
    ],
)
def test_round_times_in_the_long_run_are_those_of_closed_forms(policy, mean_s, median_s):
    history = simulate(exponential(policy))
    found = steady(history)
    assert found.interval.low < mean_s < found.interval.high
    median, ends = found.quantiles[0.5]
    assert ends.low < median_s < ends.high
    assert median == pytest.approx(median_s, rel=0.05)
    assert "100 % within" in (said := steady(history, shares=(1.0,)).sentences[1])
    assert said.endswith("s (no interval).")
    with pytest.raises(FedsimError, match="level: nan is not allowed"):
        steady(history, level=math.nan)
    with pytest.raises(FedsimError, match="are too few"):
        steady(simulate(ALL))


def test_the_long_run_from_the_command_line(tmp_path, capsys):
    """A scenario without learning loads no torch, and says what it took."""
    from fedsim.cli import app

    file = tmp_path / "four.toml"
    file.write_text(exponential("wait-for-all").to_toml())
    app(["steady", str(file), "--rounds", "400", "--quantile", "0.9"], standalone_mode=False)
    said = " ".join(capsys.readouterr().out.split())
    assert "rounds of warm-up, found by MSER-5, are left out" in said
    assert "90 % within" in said
    assert "s (an interval takes 800 rounds)" in said, "two rounds of each batch are beyond it"
    assert "400 rounds took" in said
    with pytest.raises(FedsimError, match="between 0 and 1"):
        app(["steady", str(file), "--quantile", "95"], standalone_mode=False)


def test_a_figure_that_cannot_be_drawn_is_refused_before_the_search(tmp_path):
    from fedsim.cli import app

    file = tmp_path / "four.toml"
    file.write_text(exponential("wait-for-all").to_toml())
    arguments = ["--over", "rounds.count=1..3", "--for", "simulated_s", "--plot", str(tmp_path / "front.png")]
    with pytest.raises(FedsimError, match="--plot: --for simulated_s is not allowed; a Pareto figure needs two"):
        app(["best", str(file), *arguments, "--out", str(tmp_path / "best")], standalone_mode=False)
    assert not (tmp_path / "best").exists()


def test_a_warm_up_is_left_out():
    rng = np.random.default_rng(0)
    assert 45 <= warm_up(np.concatenate([np.linspace(9, 3, 50), rng.normal(2, 0.1, 500)])) <= 60
    assert warm_up(rng.normal(2, 0.1, 3)) == 0
    assert warm_up(np.diff(0.6 * np.arange(1001))) == warm_up(np.diff(np.cumsum(np.full(1001, 0.6)))) == 0


@pytest.mark.slow
def test_intervals_hold_what_they_promise():
    """200 studies of ten pairs: a right method is below 91 % or above 98.5 % in about 1 of 100 draws."""
    rng = np.random.default_rng(0)
    for horizon_s in (math.inf, 34.0):
        held, _, refused = study_coverage.fixed(rng, 200, 10, horizon_s)
        assert 0.91 <= held <= 0.985
        assert refused <= 0.02
    assert study_coverage.fixed(rng, 20, 10, 14.0)[2] == 1.0
    assert 0.88 <= study_coverage.until(rng, 100, 10, 0.1) <= 0.99
