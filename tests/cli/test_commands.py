"""The command line as a user types it, and what importing fedsim costs."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedsim.cli import app
from fedsim.cli.kinds import catalogues
from fedsim.cli.options_of_kind import rows_of
from fedsim.cli.printing import print_table
from fedsim.network.traces.network import RateTraces
from tests.support.families import by_default
from tests.support.interrupts import heard

SCENARIO = """
name = "tiny"
crowd = { clients = 6 }
network = "pause-two-speed"
devices = { compute = "zero" }
rounds = { count = 3 }
selector = { kind = "pause", cohort = 2, alpha = 10.0, gamma = 1.0 }
[learning]
model = { kind = "mlp", hidden = [8] }
local = { optimizer = "sgd", learning_rate = 0.1, batch_size = 20 }
"""
CATALOGUES = catalogues()
FEDSIM = str(Path(sys.executable).with_name("fedsim"))


def fedsim(*arguments, cwd):
    return subprocess.run([FEDSIM, *arguments], cwd=cwd, capture_output=True, text=True, check=True)  # noqa: S603


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny.toml").write_text(SCENARIO)
    return tmp_path


def test_a_narrow_terminal_parts_no_word_and_no_number(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    header = ("variant", "mean_round_s", "delivered_share", "times")
    print_table("means", [("deadline_s=0.6, uniform", "0.491", "-0.006 +- 0.086", "0.992")], header)
    said = capsys.readouterr().out
    assert {*header, "0.491", "-0.006", "0.992", "deadline_s=0.6,", "uniform"} <= set(said.split())
    assert max(map(len, said.splitlines())) <= 40
    assert said.split().count("variant") == 3, "the columns go on below, beside the first"


@pytest.mark.slow
def test_run_then_plot_two_runs_in_one_figure(folder):
    done = fedsim("run", "tiny.toml", cwd=folder)
    assert "final accuracy" in done.stdout
    assert "runs/tiny/accuracy.png" in done.stdout
    assert "\x1b" not in done.stdout, "a log that is not a terminal stays plain"
    fedsim("run", "tiny.toml", "--set", "selector.kind=uniform", "--out", "runs/uniform", cwd=folder)
    done = fedsim("plot", "runs/tiny", "runs/uniform", "--x", "time", "--y", "accuracy", cwd=folder)
    assert (folder / done.stdout.strip()).read_bytes().startswith(b"\x89PNG")
    scenario = (folder / "runs" / "uniform" / "scenario.toml").read_text()
    assert 'kind = "uniform"' in scenario
    assert "alpha" not in scenario


def test_a_quiet_run_says_nothing_and_its_report_answers_for_the_deadlines_asked_about(folder, typed):
    done = typed("run", "tiny.toml", "--quiet")
    assert done.stdout == done.stderr == ""
    assert json.loads((folder / "runs" / "tiny" / "run.json").read_text())["status"] == "finished"
    done = typed("report", "runs/tiny", "--deadline", "0.5", "--deadline", "99", "--rounds")
    for words in ("time and bits of the clients by fate", "used", "ended by", "client", "0.5", "99", "every round"):
        assert words in done.stdout
    assert json.loads((folder / "runs" / "tiny" / "summary.json").read_text())["wasted_time_share"] == 0.0


def test_report_compares_runs_and_names_the_command_that_shows_what_a_history_cannot(folder, typed, monkeypatch):
    """A deadline of 0.5 s loses clients in three rounds; the run beside it has as many, and waits for all."""
    monkeypatch.setenv("COLUMNS", "200")
    typed(
        "run", "tiny.toml", "--quiet", "--set", "rounds.policy={kind='deadline', deadline_s=0.5}", "--out", "runs/a b"
    )
    typed("run", "tiny.toml", "--quiet", "--out", "runs/whole")
    lines = typed("report", "runs/a b", "runs/whole", "--deadline", "2").stdout.splitlines()
    told = " ".join(" ".join(lines).split())
    assert "--set rounds.policy.kind=deadline --set rounds.policy.deadline_s=2.0 --out 'runs/a b-deadline-2'" in told
    assert "fedsim run 'runs/a b/scenario.toml' --set rounds.late.kind=drop --out 'runs/a b-late-drop'" in told
    assert "1.00 times the rounds x " in told
    assert "time and bits of the clients by fate" not in told
    assert len(lines) <= 25


def test_check_prints_the_resolved_scenario(folder, typed):
    done = typed("check", "tiny.toml", "--set", "rounds.count=7")
    assert "count = 7" in done.stdout
    assert "digest" in done.stdout
    (folder / "again.toml").write_text(done.stdout)
    assert typed("check", "again.toml").stdout.splitlines()[-1].split()[-1] in done.stdout


@pytest.mark.parametrize("sort", by_default(CATALOGUES, ["datasets", "selectors", "sharings"]))
def test_list_names_every_kind(sort, typed):
    told = typed("list", sort).stdout.replace("│", " ").split()
    assert {kind for kind in CATALOGUES[sort].builtin if kind not in told} == set()


def test_list_names_every_sort(typed):
    told = typed("list").stdout
    assert [sort for sort in CATALOGUES if sort not in told] == []


def test_the_options_of_a_kind_are_listed_with_type_unit_default_and_meaning(typed):
    rows = {row[0]: row[1:] for row in rows_of(RateTraces)}
    assert rows["sharing"][:3] == ("'dedicated', 'equal'", "", "'dedicated'")
    assert rows["delay_s"][1:3] == ("s", "must be given")
    assert rows["uplink.step_s"] == ("number", "s", "none", "length of each row, for tables without instants")
    told = " ".join(typed("list", "availability", "traces").stdout.replace("│", " ").split())
    assert "availability traces: Intervals from a file" in told
    assert "must be given" in told


def test_list_selectors_says_what_each_needs_and_costs(typed):
    text = " ".join(typed("list", "selectors").stdout.replace("│", " ").split())
    assert "needs to know: update (measured of delivered updates) communication:" in text
    assert (
        "needs to know: answers to its questions communication: a model down and a number up for d candidates" in text
    )
    assert "needs to know: durations and availability of the future (an oracle) communication: nothing leaks" in text
    assert "leaks beside updates: nothing options" in text
    assert "leaks beside updates: loss_rms; with privacy, numbers with noise unless side_information is exact" in text
    labels = "loss, shares of labels, declared once; with privacy, numbers with noise unless side_information or"
    assert f"leaks beside updates: {labels} label_histograms is exact" in text
    assert "paper: Fraboni, Vidal, Kameni and Lorenzi" in text


def test_data_says_what_is_at_hand(folder, typed):
    done = typed("data", "--data-dir", str(folder / "nothing"))
    lines = {words[0]: words for line in done.stdout.splitlines() if (words := line.split())}
    assert "found" in lines["digits"]
    assert "missing" in lines["cifar-10"]
    assert "cifar-10: fedsim data cifar-10 --download" in done.stdout
    assert "mind: msnews.github.io" in done.stdout


def test_every_public_name_loads_and_is_listed():
    import fedsim

    for name in fedsim.__all__:
        assert getattr(fedsim, name) is not None
        assert name in dir(fedsim)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fedsim.nonsense


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
@pytest.mark.parametrize(
    ("sent", "words", "cause"),
    [(signal.SIGINT, "interrupted", "Ctrl-C"), (signal.SIGTERM, "interrupted (SIGTERM)", "SIGTERM")],
)
def test_an_interrupted_run_says_where_its_rounds_are(sent, words, cause, folder):
    command = [FEDSIM, "run", "tiny.toml", "--set", "rounds.count=1000000"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=heard) as process:  # noqa: S603, PLW1509
        state = folder / "runs" / "tiny" / "run.json"
        wait_until(lambda: state.exists() and json.loads(state.read_text())["rounds"] > 0)
        process.send_signal(sent)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 128 + sent
    assert said == f"fedsim: {words}; the rounds so far are in runs/tiny\n"
    told = json.loads(state.read_text())
    assert (told["status"], told["error"]["message"]) == ("interrupted", cause)


INTERRUPTED_WHILE_AN_OBJECT_IS_FREED = """
import signal

class Freed:
    def __del__(self):
        signal.raise_signal(signal.{name})

class Selector:
    calls = 0

    def select(self, view, rng):
        self.calls += 1
        if self.calls == 2:
            Freed()
        return view.client[:2]

    def observe(self, reports):
        pass
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), pytest.param("SIGTERM", 143, marks=pytest.mark.slow)])
def test_an_interrupt_that_is_lost_ends_the_run_after_its_round(name, code, folder):
    """Python ignores what is raised while an object is freed, NumPy what is raised while it looks for attributes."""
    (folder / "parts.py").write_text(INTERRUPTED_WHILE_AN_OBJECT_IS_FREED.format(name=name))
    command = [FEDSIM, "run", "tiny.toml", "--set", "selector=parts:Selector", "--set", "learning=none"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=heard)  # noqa: S603
    assert done.returncode == code
    state = json.loads((folder / "runs" / "tiny" / "run.json").read_text())
    assert (state["status"], state["rounds"]) == ("interrupted", 2)


def wait_until(true, timeout_s=60.0):
    end = time.monotonic() + timeout_s
    while not true() and time.monotonic() < end:
        time.sleep(0.05)


@pytest.fixture
def typed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: CliRunner().invoke(app, [*arguments])


def test_run_says_what_was_computed_and_what_was_found_and_is_done_at_once_when_finished(typed):
    first = typed("run", "tiny.toml", "--out", "a", "--store", "store", "--save-models", "2")
    assert "trainings: 6 computed, 0 found; evaluations: 4 computed, 0 found" in first.stdout
    assert Path("a/models/round-000002.safetensors").exists()
    again = typed("run", "tiny.toml", "--out", "a", "--store", "store")
    assert "a: was finished before" in again.stdout
    assert "trainings" not in again.stdout
    summaries = [typed_out.stdout[typed_out.stdout.index("tiny (seed 0)") :] for typed_out in (first, again)]
    assert summaries[0] == summaries[1]
    other = typed("run", "tiny.toml", "--out", "b", "--store", "store", "--keep-models", "last")
    assert "trainings: 0 computed, 6 found; evaluations: 0 computed, 4 found" in other.stdout
    none = typed("run", "tiny.toml", "--out", "c", "--no-store")
    assert "trainings: 6 computed, 0 found" in none.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--store", "store", "--no-store"), "--store and --no-store exclude each other"),
        (("--keep-models", "some"), "keep-models: 'some' is not allowed"),
        (("--executor", "stackd"), "executor: there is no executor 'stackd' (did you mean 'stacked'?); allowed: auto,"),
        (("--device", "abacus"), "device: 'abacus' is not allowed; it must be 'cpu', 'cuda' or 'cuda:N'"),
        (("--precision", "float16"), "precision: 'float16' is not allowed; it must be one of float32, bfloat16"),
    ],
)
def test_wrong_options_of_run_are_refused_before_work_starts(options, message, typed):
    refused = typed("run", "tiny.toml", "--out", "a", *options)
    assert message in str(refused.exception)
    assert not Path("a").exists()


def test_what_is_known_before_a_run_is_said_once(typed):
    done = typed("run", "tiny.toml", "--set", "selector.cohort=6", "--set", "learning=none")
    assert done.output.count("selector.cohort = 6 is the whole crowd") == 1
