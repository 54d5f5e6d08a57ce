"""Runs of papers: studies that are found again, told where data are absent; curves and tables by hand."""

import math
import os
import sys
from types import SimpleNamespace

import pytest
from paper_runs import command, curves, runs, tables

from fedsim import simulate
from tests.support.short_runs import TIMING


def table(methods, **changes):
    base = TIMING.replace({"rounds.count": 10, "selector.cohort": 2, "seed": 3, **changes})
    columns = [("method", lambda row: row.method), runs.mean("mean s", 2)]
    return runs.Table("fig", "Fig. 1", base, methods, measure, columns, {"fig1.png": lambda _: None})


def measure(history):
    duration_s = history.column("rounds", "duration_s")
    return {"mean s": float(duration_s.mean()), "curve": history.curve("round", "duration")}


def asked(folder, seeds=2):
    return SimpleNamespace(
        seeds=seeds, out=folder, workers=1, store=folder / "store", data_dir=folder, executor="sequential"
    )


@pytest.mark.usefixtures("in_turn")
def test_runs_that_have_ended_are_found_again(tmp_path):
    one = table({"uniform": {}, "fastest": {"selector.kind": "fastest"}})
    first = runs.made(one, asked(tmp_path), once=["fastest"])
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("index.jsonl")}
    assert {path.parent.name for path in written} == {"fig", "fig-once"}
    assert runs.made(one, asked(tmp_path), once=["fastest"]) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("index.jsonl")} == written
    rows = tables.tables_of(first)[0]
    assert [(row["method"], row["seeds"]) for row in rows] == [("uniform", "2"), ("fastest", "1")]
    durations = [simulate(one.base.replace({"seed": seed})).column("rounds", "duration_s").mean() for seed in (3, 4)]
    assert rows[0]["mean s"] == tables.with_deviation(durations, 2)
    assert "10 rounds; the target is" in first


@pytest.mark.usefixtures("in_turn")
def test_thin_runs_leave_their_numbers_alone(tmp_path):
    """The table is that of all seeds together, also where no tables of runs are left to be read."""
    one = table({"uniform": {}, "fastest": {"selector.kind": "fastest"}})
    whole = runs.made(one, asked(tmp_path / "whole"))
    for _ in range(2):
        thin = runs.made(one, asked(tmp_path / "thin"), thin=True)
        assert [row["mean s"] for row in tables.tables_of(thin)[0]] == [
            row["mean s"] for row in tables.tables_of(whole)[0]
        ]
    assert {path.parent.name for path in (tmp_path / "thin").rglob("numbers.json")} == {"fig"}
    assert not list((tmp_path / "thin").rglob("tables.arrows"))
    more = table({"uniform": {}, "all": {"selector": "all"}})
    rows = tables.tables_of(runs.made(more, asked(tmp_path / "thin")))[0]
    assert [row["method"] for row in rows] == ["uniform", "all"]


@pytest.mark.usefixtures("in_turn")
def test_methods_that_describe_the_same_runs_share_them(tmp_path):
    one = table({"uniform": {}, "the same": {"selector.kind": "uniform"}, "fastest": {"selector.kind": "fastest"}})
    first, same, other = tables.tables_of(runs.made(one, asked(tmp_path)))[0]
    assert first["mean s"] == same["mean s"] != other["mean s"]
    assert len((tmp_path / "runs" / "fig" / "index.jsonl").read_text().splitlines()) == 4


@pytest.mark.slow
def test_absent_data_are_told_with_the_command_that_fetches_them(tmp_path):
    text = runs.made(table({"a": {}}, learning={"kind": "supervised", "data": {"kind": "cifar-100"}}), asked(tmp_path))
    assert text.startswith("### Fig. 1\n\nMissing")
    assert "fedsim data cifar-100 --download" in text
    assert "|" not in text


def test_shares_of_rounds():
    assert runs.scaled(TIMING, 0.01).rounds.count == 1


def test_figures_have_a_curve_for_each_method_with_runs():
    found = {"a": [([1, 2], [3, 4])], "b": [], "c": [([1, 2], [1, 1])] * 2}
    (axes,) = curves.draw(found, ("s", "accuracy"), target=0.5, dashed=["c"]).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "c", "target 50 %"]
    assert [line.get_linestyle() for line in axes.get_lines()] == ["-", "--", ":"]
    assert axes.get_xlim()[0] == axes.get_ylim()[0] == 0.0
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("s", "accuracy")


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
    parser = command.of_runs("About.", "runs/x", {"one": "One", "two": "Two"}, figure={2: True, 3: False})
    found = parser.parse_args(["--scale", "0.1", "--seeds", "3", "--workers", "1", "--set", "a.b=2", "--set", "c=x"])
    assert (found.scale, found.seeds, found.workers, found.executor) == (0.1, 3, 1, "auto")
    assert (found.methods, found.figure, found.repeat) == (["one", "two"], [2], False)
    assert found.set == [("a.b", 2), ("c", "x")]
    assert command.options("", executor="auto", rounds=3).parse_args([]).executor == "auto"
    for wrong in (
        ["--scale", "0"],
        ["--scale", "1.5"],
        ["--scale", "nan"],
        ["--seeds", "0"],
        ["--executor", "best"],
        ["--methods", "three"],
        ["--figure", "4"],
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    assert "at least 1" in capsys.readouterr().err


def test_the_command_of_a_table_names_no_folder_of_the_machine():
    given = ["--store", "/a", "--scale", "0.1", "--out=/b", "--workers", "2", "--repeat", "--set", "a.b=[1, 2]"]
    assert command.command_line("x.py", given) == "python x.py --scale 0.1 --set 'a.b=[1, 2]'"


def test_what_is_not_allowed_ends_in_a_sentence(capsys):
    parser = command.of_runs("About.", "runs/x", {"one": "One"})
    with pytest.raises(SystemExit, match="2"):
        command.in_words(lambda: parser.parse_args(["--set", "a.b"]))
    assert capsys.readouterr().err.startswith("fedsim: --set a.b: is not of the form")


def test_a_reader_that_has_gone_ends_a_command_without_a_word(monkeypatch, capsys):
    """`head` closes the pipe before a line is printed; what is left goes nowhere when the process ends."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as ended:
            command.in_words(lambda: print("x" * 100_000, flush=True))  # noqa: T201 - what the command does
        monkeypatch.undo()
    assert (ended.value.code, capsys.readouterr().err) == (0, "")


PAGE = """
Text: `python x.py --seeds
3`.

| method | a % | b |
|---|---|---|
| one | 5.0 +- 1.0 | 1,000 |
| two | never | 3 |

`python x.py --seeds 5`
"""


def test_recorded_values_beside_new_ones_by_hand():
    """Student with 4 degrees of freedom: 2.776 times the root of (1 + 1) / 3 is 2.27."""
    old = tables.recorded(PAGE, "python x.py --seeds 3")
    assert [row["method"] for row in old] == ["one", "two"]
    assert tables.recorded(PAGE, "python x.py") is None
    new = [{"method": "one", "a %": "7.2 +- 1.0", "b": "1001"}, {"method": "three", "a %": "1.0"}]
    first, second = tables.tables_of(tables.repeated(old, new, 3))[0]
    assert (first["difference"], first["tolerance of 3 seeds"]) == ("+2.2", "2.3, within")
    assert (second["recorded"], second["difference"]) == ("1,000", "+1")
    assert second["tolerance of 3 seeds"] == "one seed tells none"
    new[0]["a %"] = "7.3 +- 1.0"
    assert "OUTSIDE" in tables.repeated(old, new, 3)
    assert "No row" in tables.repeated(old, [{"method": "x", "a %": "1"}], 3)
