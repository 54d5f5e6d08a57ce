"""Studies that are run: tables as of single runs, going on after kills, failures, parts of the user's own."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import pytest

from fedsim import Scenario, Study, StudyResult, run, simulate, sweep
from fedsim.errors import FedsimError
from fedsim.studies.comparing.comparison import doubts
from fedsim.studies.figures.bands import draw_bands
from fedsim.studies.folders import arms_of, compared
from fedsim.studies.running.engine import packs_of
from fedsim.studies.running.records import Records, Task
from tests.support.hand_made import by_hand
from tests.support.pages import ROOT

BASE = Scenario(**by_hand(results={}))
GRID = {"selector.cohort": [1, 3]}
in_turn = pytest.mark.usefixtures("in_turn")


def quiet(base=BASE, grid=GRID, **what):
    return sweep(base, grid, **{"seeds": 2, "jobs": 1, "quiet": True, **what})


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return quiet(
        jobs=2, out=tmp_path_factory.mktemp("study"), horizon=60.0, metrics=["time_to_9updates", "mean_round_s"]
    )


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FedsimError, match="file/study: cannot be made: Not a directory"):
        quiet(out=tmp_path / "file" / "study")


def test_runs_are_those_by_themselves(study):
    assert (len(study), study.failures, next(iter(study))) == (4, {}, ("cohort=1", 0))
    for (variant, seed), cohort in zip(study, (1, 3, 1, 3), strict=True):
        alone = simulate(BASE.replace({"selector.cohort": cohort, "seed": seed}))
        together = study[variant, seed]
        assert together.tables() == alone.tables()
        assert (together.digest, together.scenario, together.notes) == (alone.digest, alone.scenario, alone.notes)


def test_runs_go_on_to_the_horizon_and_no_metric_of_their_own_rounds_changes(study):
    """Three rounds of one client have three updates; nine are delivered after nine rounds of 4 to 7 s."""
    found = study.values("time_to_9updates")["cohort=1", 0]
    far = study.watched("cohort=1", 0)
    assert found.reached
    assert found.value == far.column("rounds", "end_s")[8]
    assert far.rounds.slice(0, 3).equals(study["cohort=1", 0].rounds)
    assert study["cohort=1", 0].rounds.num_rows == 3


@in_turn
def test_a_run_goes_on_to_256_times_its_rounds_at_most_and_not_beyond_its_last_second(tmp_path):
    base, metrics = BASE.replace({"rounds.count": 1}), ["time_to_9999updates"]
    study = quiet(base, seeds=1, out=tmp_path / "rounds", horizon=1e308, metrics=metrics)
    assert study.watched("cohort=1", 0).rounds.num_rows == 256
    base = BASE.replace({"rounds.until_s": 15.0})
    study = quiet(base, out=tmp_path / "seconds", horizon={"rounds": 9}, metrics=["rounds_to_30updates"])
    ends_s = study.watched("cohort=1", 0).column("rounds", "end_s")
    assert ends_s[-2] < 15 <= ends_s[-1]
    assert f"not watched up to 9 rounds, but {ends_s.size}" in str(study.compare())


def test_tables_are_tidy(study, tmp_path):
    rows = study.table().to_pylist()
    assert len(rows) == 8
    assert rows[1]["variant"] == "cohort=3"
    assert rows[1]["selector.cohort"] == 3
    assert rows[4]["metric"] == "mean_round_s"
    assert rows[4]["value"] == study["cohort=1", 0].column("rounds", "duration_s").mean()
    assert study.gather(lambda run: run.rounds)["seed"].to_pylist() == [*[0] * 6, *[1] * 6]
    with (study.folder / "runs.csv").open() as file:
        index = list(csv.DictReader(file))
    assert [row["seed"] for row in index] == ["0", "0", "1", "1"]
    assert index[0]["digest"] == study["cohort=1", 0].digest
    without = replace(study, study=replace(study.study, metrics=("final_accuracy",)), folder=tmp_path)
    assert [line.split(",")[3] for line in without.write_index().read_text().splitlines()[1:]] == [""] * 4


def test_a_second_call_runs_nothing_and_a_folder_is_a_study(study, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    again = sweep(study.study, out=study.folder, quiet=True)
    assert again.table() == study.table()
    assert StudyResult.load(study.folder).table() == study.table()


def test_comparisons_are_one_family(study):
    both, one = study.compare(), study.compare("mean_round_s")
    assert len(both.lines) == 2
    assert one.lines[0] == both.lines[1]
    assert len(study.compare("simulated_s").lines) == 1
    assert study.compare("simulated_s").family == 3
    rows = json.loads(both.to_json())["comparisons"]
    assert [row["metric"] for row in rows] == ["time_to_9updates", "mean_round_s"]
    assert both.to_csv().count("\n") == 3
    assert r"mean\_round\_s (s) & cohort=3 & 2" in both.to_latex()


@in_turn
def test_a_run_that_fails_stops_no_other(tmp_path):
    failing = {
        "cohort 1": {"selector.cohort": 1},
        "lost": {"learning": {"data": {"kind": "mnist"}}, "selector.cohort": 2},
    }
    study = quiet(grid=None, variants=failing, out=tmp_path, metrics=["mean_round_s"], data_dir=tmp_path)
    assert len(study) == 2
    assert set(study.failures) == {("lost", 0), ("lost", 1)}
    assert "DataError" in study.failures["lost", 0]
    with pytest.raises(FedsimError, match="DataError"):
        _ = study["lost", 0]
    assert "'lost' against 'cohort 1': the two have no seed in common" in str(study.compare())
    study.plot(y="duration", out=tmp_path / "a.png")


def test_a_figure_tells_many_variants_apart_and_names_its_means(study):
    """Nine variants have seven colours; a leakage is never smoothed, and begins at 0."""
    runs = {f"v{i}": {0: study["cohort=1", 0]} for i in range(9)}
    (panel,) = draw_bands(runs, "time", "duration", "v0", smoothing=3).axes
    assert len({(line.get_color(), line.get_linestyle()) for line in panel.get_lines()}) == 9
    assert panel.get_ylabel() == "round duration (s), mean of the last 3 rounds, mean"
    assert panel.get_legend().get_texts()[0].get_text() == "v0 (1 seed)"
    (panel,) = draw_bands({"v0": runs["v0"]}, "round", "leakage", "v0", smoothing=3).axes
    assert panel.get_ylabel() == "largest leakage of a client (epsilon), mean"
    assert panel.get_lines()[0].get_xdata()[0] == 0


@in_turn
def test_columns_are_what_runs_had_and_names_go_into_files(tmp_path):
    """A variant may set a whole table, of which another one sets a field; null is no TOML, and % starts a comment."""
    arms = {
        "50 % {^_~\\}": {"selector": {"kind": "uniform", "cohort": 3}},
        "all": {"selector.kind": "all", "rounds.until_s": None},
        "two": {"selector.cohort": 2, "rounds.until_s": 9.0},
    }
    base = BASE.replace({"selector.kind": "uniform"})
    study = quiet(base, None, variants=arms, out=tmp_path, metrics=["mean_round_s"])
    rows = study.table().to_pylist()[:3]
    assert [row["selector.cohort"] for row in rows] == [3, None, 2]
    assert [row["selector.kind"] for row in rows] == ["uniform", "all", "uniform"]
    assert StudyResult.load(tmp_path).table().to_pylist()[0]["value"] == rows[0]["value"]
    reversed_ = Study.of(base, variants=arms, seeds=2, metrics=["mean_round_s"], baseline="two")
    latex = sweep(reversed_, out=tmp_path, quiet=True).compare().to_latex()
    assert r"50 \% \{\textasciicircum{}\_\textasciitilde{}\textbackslash{}\} & 2 &" in latex


@in_turn
def test_a_table_is_that_of_its_study_whatever_the_folder_has(study, tmp_path):
    """The folder has runs that were watched for 60 s."""
    shutil.copytree(study.folder, tmp_path / "again")
    asked = {"metrics": ["time_to_9updates"], "horizon": 9.0}
    for what in (asked, {**asked, "horizon": None}):
        used = quiet(out=tmp_path / "again", **what)
        assert used.table().drop_columns("watched") == quiet(
            out=tmp_path / str(what["horizon"]), **what
        ).table().drop_columns("watched")
    assert {row["value"] for row in quiet(out=tmp_path / "again", **asked).table().to_pylist()} == {9.0}


@in_turn
def test_runs_of_other_versions_and_data_are_named(study, tmp_path):
    """As after an update, or where a file of data was changed between two calls."""
    shutil.copytree(study.folder, tmp_path / "old")
    lines = [json.loads(line) for line in (tmp_path / "old" / "index.jsonl").read_text().splitlines()]
    lines[0]["versions"]["numpy"] = "0.9"
    for i, line in enumerate(lines):
        line["data"] = "other" if i == 0 else "same"
    (tmp_path / "old" / "index.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    study = quiet(study.study.base, seeds=3, out=tmp_path / "old", metrics=["mean_round_s"])
    said = study.compare()
    assert any("numpy 0.9 and " in note for note in said.notes)
    assert "Not all runs of 'cohort=1' had the same data." not in said.notes, "of two runs each may have its own"
    assert str(said).endswith(said.notes[-1])
    assert json.loads(said.to_json())["notes"] == list(said.notes)
    assert doubts([("a", {}, "x"), ("a", {}, "x"), ("a", {}, "y"), ("b", {}, "1"), ("b", {}, "2")]) == (
        "Not all runs of 'a' had the same data.",
    )


@in_turn
def test_runs_that_do_not_count_are_told(study, tmp_path, capsys):
    shutil.copytree(study.folder, tmp_path / "old")
    sweep(BASE, {"selector.cohort": [1, 2]}, seeds=2, jobs=1, out=tmp_path / "old")
    assert "has 2 runs of another base, variants or seeds" in capsys.readouterr().err


def test_a_whole_study_takes_nothing_beside_it(study):
    with pytest.raises(FedsimError, match="sweep: grid, seeds, level beside a study is not allowed"):
        sweep(study.study, GRID, seeds=5, level=0.9)


def test_runs_are_grouped_by_what_differs(tmp_path):
    """Of a trace the folder is no difference and the content is one; equal ends of paths are told apart."""
    ways = [{}, {"seed": 1}, {"network.uplink.value_s": 3.0}, {"network.downlink.value_s": 3.0}]
    first, *others = arms_of([simulate(BASE.replace(way)) for way in ways])
    assert first == "downlink.value_s=1.0, uplink.value_s=1.0"
    assert others == [first, "downlink.value_s=1.0, uplink.value_s=3.0", "downlink.value_s=3.0, uplink.value_s=1.0"]
    traced, traces = Scenario.load(ROOT / "scenarios/traces/rates_on_the_move.toml"), ROOT / "scenarios/traces"
    runs = []
    for seed, rate in enumerate(("14.09", "14.09", "15.0")):
        (tmp_path / str(seed)).mkdir()
        file = tmp_path / str(seed) / "four_places.csv"
        file.write_text((traces / file.name).read_text().replace("14.09", rate))
        paths = {"network.downlink.path": str(file), "network.uplink.path": str(file)}
        runs.append(simulate(traced.replace({"seed": seed, "rounds.count": 1, **paths})))
    one, same, other = arms_of(runs)
    assert one == same != other
    assert one.startswith("downlink.path (content)=")


def test_an_unfinished_run_is_not_compared(tmp_path):
    """A run that ended after one of three rounds."""

    def stop(progress):
        raise KeyboardInterrupt

    run(BASE, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(BASE.replace({"selector.cohort": 1}), tmp_path / "cut", on_round=stop)
    with pytest.raises(FedsimError, match="cut: this run is not whole"):
        compared([tmp_path / "whole", tmp_path / "cut"], (), "", {}, 0.95)
    for baseline, horizon, level, words in (
        ("x", {}, 0.95, "baseline: 'x' is no variant"),
        ("", {"km": 3.0}, 0.95, "horizon.km"),
        ("", {}, 95.0, "level: 95.0"),
    ):
        with pytest.raises(FedsimError, match=words):
            compared([tmp_path / "whole"], (), baseline, horizon, level)


@in_turn
def test_pairs_without_a_common_second_have_no_band(tmp_path):
    """A round of one client is over before the first one of three."""
    found = quiet(BASE.replace({"rounds.count": 1}), out=tmp_path, metrics=["mean_round_s"])
    found.plot(y="duration", out=tmp_path / "a.png")


def test_packs_are_slowest_first_and_several_a_job():
    learning = [Task("a", "a", 0, 10.0, learns=True), Task("b", "b", 0, 30.0, learns=True)]
    timing = [Task(str(i), "t", i, 100.0, learns=False) for i in range(40)]
    packs = packs_of([*timing, *learning], 2)
    assert [[task.run for task in pack] for pack in packs[:2]] == [["b"], ["a"]]
    assert sum(len(pack) for pack in packs[2:]) == 40
    assert len(packs) >= 2 + 8


@in_turn
def test_a_torn_index_loses_its_last_line_alone(study, tmp_path):
    for name in ("index.jsonl", "tables.arrows"):
        (tmp_path / name).write_bytes((study.folder / name).read_bytes()[:-9])
    left = Records(tmp_path)
    lost = [point for point in study.study.points if left.done(point.digest) is None]
    assert len(lost) <= 1
    again = sweep(study.study, out=tmp_path, quiet=True, jobs=1)
    assert again.table().num_rows == study.table().num_rows


OWN = """
from fedsim.selectors import Selector

MOST = 3

def most():
    return MOST

class Some(Selector):
    def select(self, view, rng):
        return view.client[:most()]
"""


def test_workers_have_the_variables_of_own_modules_and_another_value_is_another_run(tmp_path, monkeypatch, request):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "parts_of_a_study.py").write_text(OWN)

    def rounds_s():
        base = BASE.replace({"selector": "parts_of_a_study:Some"})
        study = quiet(base, {"rounds.count": [2, 3]}, out=tmp_path / "s", seeds=1)
        return [one.value for one in study.values("mean_round_s").values()], (tmp_path / "s/index.jsonl").read_text()

    first = rounds_s()
    assert first[0] == [6, 6]
    assert rounds_s() == first
    monkeypatch.setattr("parts_of_a_study.MOST", 1)
    found, index = rounds_s()
    assert found == [4, 4]
    assert len(index.splitlines()) == 2
    # A study of other parts leaves these runs in the folder alone, though their module is not loaded then.
    monkeypatch.delitem(sys.modules, "parts_of_a_study")
    request.getfixturevalue("in_turn")
    quiet(BASE, {"rounds.count": [2, 3]}, out=tmp_path / "s", seeds=1)
    assert (tmp_path / "s/index.jsonl").read_text().startswith(index)


SCRIPT = """
import os
from fedsim import Cohort, Scenario, sweep

class Slow:
    def __init__(self, first=0):
        self.first = first
    def select(self, view, rng):
        assert os.environ["FEDSIM_WORKERS"] == str(max(1, len(os.sched_getaffinity(0)) // 2))
        return Cohort(view.client[self.first:self.first + 2])
    def observe(self, reports):
        pass

base = Scenario.load("base.toml").replace({"selector": Slow()})
study = sweep(base, {"rounds.count": [2, 3]}, seeds=2, out="study", quiet=True, jobs=2)
print(len(study), study.failures, study["count=3", 1].rounds.num_rows)
"""


@pytest.mark.slow
def test_a_script_needs_no_main_guard_its_own_parts_are_found_and_runs_share_the_cores(tmp_path):
    (tmp_path / "base.toml").write_text(BASE.to_toml())
    (tmp_path / "own.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "own.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "4 {} 3\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_study_that_is_stopped_goes_on_and_leaves_no_process(sent, tmp_path):
    base = BASE.replace({"rounds.count": 1500})
    (tmp_path / "base.toml").write_text(base.to_toml())
    command = [sys.executable, "-m", "fedsim", "sweep", "base.toml", "--grid", "selector.cohort=1,3", "--seeds", "12"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    begun = subprocess.Popen([*command, "--jobs", "2"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)  # noqa: S603
    index = tmp_path / "studies" / "by-hand" / "index.jsonl"
    while not (index.exists() and index.stat().st_size):
        assert begun.poll() is None
        time.sleep(0.02)
    begun.send_signal(sent)
    # The error stream ends when the last process that has it is gone.
    _, said = begun.communicate(timeout=60)
    assert begun.returncode == (-9 if sent == signal.SIGKILL else 130), said
    finished = len(index.read_text().splitlines())
    study = Study.of(base, grid=GRID, seeds=12)
    assert finished < len(study.points)
    result = sweep(study, out=index.parent, quiet=True, jobs=2)
    lines = [json.loads(line)["run"] for line in index.read_text().splitlines()]
    assert len(result) == len(set(lines)) == len(lines) == 24
    whole = sweep(Study.of(base, grid=GRID, seeds=12), out=tmp_path / "whole", quiet=True, jobs=1)
    assert result.table() == whole.table()


@pytest.mark.slow
def test_the_command_line_sweeps_compares_and_plots(tmp_path, monkeypatch, capsys):
    from fedsim.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.toml").write_text(BASE.to_toml())

    def typed(*arguments):
        app(arguments, standalone_mode=False)
        return capsys.readouterr().out

    said = typed(
        "sweep", "base.toml", "--grid", "selector.cohort=1,3", "--seeds", "4,6,9", "--plot", "a.png", "--jobs", "1"
    )
    assert "mean_round_s: 'cohort=3' against 'cohort=1'" in said
    assert (tmp_path / "a.png").exists()
    few = "--grid", "selector.cohort=1,4", "--metric", "time_to_9updates", "--metric", "mean_round_s"
    said = typed("sweep", "base.toml", *few, "--seeds", "1", "--jobs", "1", "--out", "one")
    # One seed has no intervals. Of four clients nine updates are there after three rounds of 7 s; of one, never.
    rows = [line.split() for line in said.splitlines()]
    assert rows[0] == ["by-hand:", "medians", "of", "1", "seed"]
    assert (rows[2][:2], rows[3]) == (["cohort=1", "never"], ["cohort=4", "21", "7"])
    assert len(rows) == 5
    options = "--metric", "mean_round_s", "--to", "c.csv", "--why", "--plot", "why.png"
    said = typed("compare", "studies/by-hand", *options)
    assert (tmp_path / "why.png").stat().st_size > 0
    assert "delivered_share" not in said
    assert "'cohort=3' is" in said
    assert (tmp_path / "c.csv").read_text().startswith("metric,unit,variant")
    said = typed("sweep", "base.toml", "--grid", "selector.cohort=1,3", "--seeds", "4,6,9,10", "--plan")
    assert "8 runs: 2 variants x 4 seeds; 6 are finished in studies/by-hand" in said
    for seed in (1, 2):
        for cohort in (1, 3):
            values = ["--set", f"seed={seed}", "--set", f"selector.cohort={cohort}"]
            typed("run", "base.toml", *values, "--out", f"runs/{cohort}-{seed}", "--quiet")
    said = typed("compare", *(f"runs/{cohort}-{seed}" for cohort in (1, 3) for seed in (1, 2)))
    assert "mean_round_s: 'cohort=3' against 'cohort=1'" in said
    typed("plot", "runs/1-1", "runs/1-2", "runs/3-1", "runs/3-2", "--y", "duration", "--out", "b.png")
    assert (tmp_path / "b.png").exists()
    for many in (3, 4):
        policy = f'rounds.policy={{kind="fedasync",concurrency={many}}}'
        typed("run", "base.toml", "--set", policy, "--set", "rounds.count=20", "--out", f"runs/a{many}", "--quiet")
    with pytest.raises(FedsimError, match="is not drawn, as no difference is known"):
        typed("compare", "runs/a3", "runs/a4", "--why", "--plot", "c.png")


def test_a_run_whose_own_part_read_another_file_is_made_again(tmp_path, monkeypatch, capsys, request):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "listed_part.py").write_text(
        "import socket\nimport numpy as np\nfrom fedsim.selectors import Selector\n"
        "class Listed(Selector):\n    def select(self, view, rng):\n        return np.loadtxt('c.csv', dtype=int)\n"
        "class Asked(Listed):\n    def select(self, view, rng):\n        socket.getaddrinfo('127.0.0.1', 9)\n"
        "        return super().select(view, rng)\n"
    )
    for kind, rows, made in (
        ("listed_part:Listed", "0\n1\n", True),
        ("listed_part:Listed", "0\n1\n", False),
        ("listed_part:Listed", "1\n0\n2\n", True),
        ("uniform", "1\n0\n", True),
        ("uniform", "0\n1\n", False),
        ("listed_part:Asked", "1\n0\n2\n", True),
        ("listed_part:Asked", "1\n0\n2\n", True),
    ):
        (tmp_path / "c.csv").write_text(rows)
        base = BASE.replace({"selector": kind, "selector.cohort": 2} if kind == "uniform" else {"selector": kind})
        found = quiet(base, {"rounds.count": [1, 2]}, seeds=1, out=tmp_path / kind, quiet=False)
        assert ("2 of 2 runs in" in capsys.readouterr().err) is made
        assert found["count=1", 0].participations.num_rows == len(rows) // 2
        # What a worker has read comes back; that is seen once.
        request.getfixturevalue("in_turn")
    assert "selector has asked for more than files" in found["count=1", 0].notes[-1]
