"""Runs of papers: a folder for each, found again, skipped where data are absent; curves and tables by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
from paper_runs import command, curves, runs, tables

from tests.support.short_runs import TIMING


def timing(seed=0, **changes):
    return TIMING.replace({"seed": seed, "rounds.count": 10, "selector.cohort": 2, **changes})


def test_runs_that_have_ended_are_found_again(tmp_path):
    asked = [runs.PaperRun("fig", "uniform", timing(seed)) for seed in (0, 1)]
    lines = []
    first = runs.run_all(asked, tmp_path, tell=lines.append)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("run.json")}
    again = runs.run_all(asked, tmp_path, tell=lines.append)
    assert again == first
    assert len(written) == 2
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("run.json")} == written
    assert lines[0].startswith("[1/2] fig uniform seed 0: ")
    assert len(lines) == 4
    assert [one.history().rounds.num_rows for one in again] == [10, 10]


def test_another_scenario_has_another_folder(tmp_path):
    one = runs.PaperRun("fig", "uniform", timing())
    other = runs.PaperRun("fig", "uniform", runs.scaled(timing(), 0.25))
    assert other.scenario.rounds.count == 2
    assert one.folder(tmp_path) != other.folder(tmp_path)
    assert one.folder(tmp_path).parent == other.folder(tmp_path).parent == tmp_path / "fig" / "uniform"


@pytest.mark.slow
def test_workers_give_the_same_runs_in_the_same_order(tmp_path):
    asked = [runs.PaperRun("fig", "uniform", timing(seed)) for seed in range(3)]
    here = runs.run_all(asked, tmp_path / "here", tell=lambda _: None)
    there = runs.run_all(asked, tmp_path / "there", workers=2, tell=lambda _: None)
    for one, other in zip(here, there, strict=True):
        assert one.run == other.run
        assert one.history().rounds.equals(other.history().rounds)


def test_absent_data_skip_a_run_with_the_command_that_fetches_them(tmp_path):
    asked = runs.PaperRun("fig", "uniform", timing(learning={"kind": "supervised", "data": {"kind": "cifar-100"}}))
    (skipped,) = runs.run_all([asked], tmp_path / "out", data_dir=tmp_path, store=tmp_path / "s", tell=lambda _: None)
    assert "fedsim data cifar-100 --download" in skipped.skipped
    assert skipped.wall_s == 0.0


@pytest.mark.parametrize("name", ["", "a/b", "..", "Fig", "-x"])
def test_names_that_are_no_folders_are_refused(name):
    with pytest.raises(ValueError, match="not allowed as a name"):
        runs.PaperRun(name, "uniform", timing()).folder(Path("out"))


@pytest.mark.parametrize("scale", [0.0, -1.0, 1.5, math.nan])
def test_shares_of_rounds(scale):
    with pytest.raises(ValueError, match="scale"):
        runs.scaled(timing(), scale)
    assert runs.scaled(timing(), 0.01).rounds.count == 1


class Curve:
    """A history of which only a curve is asked."""

    def __init__(self, x, y):
        self.found = np.array(x, dtype=float), np.array(y, dtype=float)

    def curve(self, x, y, smoothing):
        return self.found


def test_mean_curves_by_hand(monkeypatch):
    monkeypatch.setattr(curves, "POINTS", 5)
    panel = curves.Panel("time", "accuracy")
    at, mean, deviation = curves.mean_curve(
        [Curve([0, 2, 4], [0.1, 0.5, 0.9]), Curve([1, 3, 9], [0.2, 0.4, 0.8])], panel
    )
    assert at.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert mean[1:] == pytest.approx([0.15, 0.35, 0.45, 0.65])
    assert math.isnan(mean[0])  # the second run knows nothing before 1
    assert deviation[2] == pytest.approx(np.std([0.5, 0.2], ddof=1))
    at, mean, deviation = curves.mean_curve([Curve([1, 3], [0.2, 0.4])], panel)
    assert (at.tolist(), mean.tolist()) == ([1.0, 3.0], [0.2, 0.4])
    assert np.isnan(deviation).all()


def test_figures_have_a_curve_for_each_method_with_runs():
    panel = curves.Panel("time", "leakage", labels=("s", "epsilon"), until=7.0)
    figure = curves.draw({"a": [Curve([1, 2], [3, 4])], "b": [], "c": [Curve([1, 2], [1, 1])] * 2}, panel)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "c"]
    assert axes.get_xlim() == (0.0, 7.0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("s", "epsilon")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0], "1.5 +- 0.7 s"),
        ([3.0], "3.0 s"),
        ([3.0, math.inf], "3.0 s (1 of 2)"),
        ([math.inf], "never"),
        ([], "-"),
    ],
)
def test_means_in_words(values, text):
    assert tables.with_deviation(values, 1, " s") == text


def test_tables_are_written_whole(tmp_path):
    text = tables.markdown(["a", "b"], [["1", "2"]])
    tables.write(text, tmp_path / "deep" / "table.md")
    assert (tmp_path / "deep" / "table.md").read_text() == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_common_options(capsys):
    parser = command.options("About.", "runs/x", ["one", "two"])
    found = parser.parse_args(["--scale", "0.1", "--seeds", "3", "--workers", "1", "--set", "a.b=2", "--set", "c=x"])
    assert (found.scale, found.seeds, found.workers, found.executor) == (0.1, 3, 1, "auto")
    assert found.methods == ["one", "two"]
    assert command.changes(found) == {"a.b": 2, "c": "x"}
    for wrong in (["--scale", "0"], ["--seeds", "0"], ["--executor", "best"], ["--methods", "three"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    assert "at least 1" in capsys.readouterr().err


def test_the_command_of_a_table_names_no_folder_of_the_machine():
    given = ["--store", "/a", "--scale", "0.1", "--out=/b", "--data-dir", "/c", "--set", "a.b=[1, 2]"]
    assert command.command_line("x.py", given) == "python x.py --scale 0.1 --set 'a.b=[1, 2]'"
