"""Runs of papers: studies that are found again, told where data are absent; curves and tables by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from paper_runs import command, curves, runs, tables

from fedsim.errors import FedsimError
from fedsim.studies.running.engine import Engine
from tests.support.short_runs import TIMING


def timing(**changes):
    return TIMING.replace({"rounds.count": 10, "selector.cohort": 2, **changes})


def test_runs_that_have_ended_are_found_again(tmp_path):
    methods = {"uniform": {}, "fastest": {"selector.kind": "fastest"}}
    first = runs.run_methods(timing(), methods, [3, 4], tmp_path / "fig", Engine(jobs=1))
    written = (tmp_path / "fig" / "index.jsonl").stat().st_mtime_ns
    again = runs.run_methods(timing(), methods, [3, 4], tmp_path / "fig", Engine(jobs=1))
    assert (tmp_path / "fig" / "index.jsonl").stat().st_mtime_ns == written
    assert list(again.runs) == ["uniform", "fastest"]
    assert [one.seed for one in again.runs["fastest"]] == [3, 4]
    assert all(
        one.rounds.equals(other.rounds) for one, other in zip(first.runs["fastest"], again.runs["fastest"], strict=True)
    )
    assert set(again.cpu_s) == {"uniform", "fastest"}
    assert again.told() == []


@pytest.mark.slow
def test_absent_data_are_told_with_the_command_that_fetches_them(tmp_path):
    base = timing(learning={"kind": "supervised", "data": {"kind": "cifar-100"}})
    engine = Engine(jobs=1, data_dir=tmp_path, store=tmp_path / "s")
    ended = runs.run_methods(base, {"uniform": {}}, [0], tmp_path / "out", engine)
    assert ended.runs == {}
    assert "fedsim data cifar-100 --download" in ended.told()[0]


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


def test_figures_have_a_curve_for_each_method_with_runs():
    panel = curves.Panel("time", "accuracy", labels=("s", "accuracy"), target=0.5)
    figure = curves.draw({"a": [Curve([1, 2], [3, 4])], "b": [], "c": [Curve([1, 2], [1, 1])] * 2}, panel)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "c", "target 50 %"]
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
    parser = command.options("About.", "runs/x", {"one": "One", "two": "Two"})
    found = parser.parse_args(["--scale", "0.1", "--seeds", "3", "--workers", "1", "--set", "a.b=2", "--set", "c=x"])
    assert (found.scale, found.seeds, found.workers, found.executor) == (0.1, 3, 1, "auto")
    assert found.methods == ["one", "two"]
    assert command.changes(found) == {"a.b": 2, "c": "x"}
    for wrong in (["--scale", "0"], ["--seeds", "0"], ["--executor", "best"], ["--methods", "three"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    assert "at least 1" in capsys.readouterr().err


def test_the_command_of_a_table_names_no_folder_of_the_machine():
    given = ["--store", "/a", "--scale", "0.1", "--out=/b", "--workers", "2", "--repeat", "--set", "a.b=[1, 2]"]
    assert command.command_line("x.py", given) == "python x.py --scale 0.1 --set 'a.b=[1, 2]'"


def test_what_is_not_allowed_ends_in_a_sentence(monkeypatch):
    def main():
        command.changes(SimpleNamespace(set=["a.b"]))

    monkeypatch.setattr("sys.argv", ["x.py"])
    with pytest.raises(FedsimError):
        main()
    with pytest.raises(SystemExit, match=r"x\.py: .*a\.b"):
        command.in_words(main)


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
