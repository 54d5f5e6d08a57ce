"""The study of all selectors: who is in its tables, its figures by hand, and runs that go on after a kill."""

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selector_tables import crowds, methods, outcomes, page, reasons, runs, tables

from fedsim.selectors import SELECTORS

HERE = Path(__file__).parents[2] / "scenarios" / "selector_tables"


@pytest.mark.parametrize("table", ["privacy", "open", "deadline"])
def test_no_selector_of_the_registry_is_missing(table):
    excused = {kind for kind, (where, _) in methods.NOT_IN.items() if where == table}
    assert {method.kind for method in methods.methods().values() if table in method.tables} == set(
        SELECTORS.builtin
    ) - excused - methods.ELSEWHERE
    assert excused <= {"all-compute"}


def test_a_new_selector_gets_a_row_in_each_table_by_itself(monkeypatch):
    monkeypatch.setitem(SELECTORS.builtin, "newest", SELECTORS.builtin["rpow-d"])
    methods.methods.cache_clear()
    found = methods.methods()
    assert found["newest"].tables == tuple(crowds.CROWDS)
    assert found["newest, exact numbers"].tables == ("privacy",)
    methods.methods.cache_clear()


def test_every_row_makes_a_scenario_and_its_pair_stands_in_the_same_tables():
    digests = {}
    for table, crowd in crowds.CROWDS.items():
        quick = replace(crowd, deadline_s=crowds.two_seconds)
        for name, method in methods.methods().items():
            if table in method.tables:
                made = quick.scenario(3, 5.0, method.selector(quick, 3), dict(method.changes))
                digests.setdefault(made.digest(), []).append((table, name))
                assert table in methods.methods()[method.beside].tables
    assert not [rows for rows in digests.values() if len(rows) > 1]


class Written:
    """What a run of three rounds and seven participations of four clients has written: four updates were used."""

    TABLES = {  # noqa: RUF012
        ("participations", "fate"): [
            "used",
            "stale-used",
            "wasted-late",
            "used",
            "wasted-dropped",
            "used",
            "wasted-late",
        ],
        ("participations", "outcome"): ["delivered"] * 2 + ["late", "delivered", "dropped", "delivered", "late"],
        ("participations", "client"): [0, 0, 1, 0, 1, 2, 3],
        ("participations", "round"): [1, 1, 1, 2, 2, 2, 3],
        ("participations", "start_s"): [0.5, 0.5, 0.75, 2.0, 2.0, 2.0, 4.5],
        ("participations", "compute_s"): [1.0, 2.0, 9.0, 3.0, 9.0, 6.0, 9.0],
        ("participations", "uplink_s"): [0.1, 0.1, 9.0, 0.3, 9.0, 0.5, 9.0],
        ("rounds", "round"): [1, 2, 3],
        ("rounds", "start_s"): [0.0, 2.0, 4.0],
        ("rounds", "end_s"): [2.0, 4.0, 7.0],
        ("rounds", "duration_s"): [2.0, 2.0, 3.0],
        ("rounds", "largest_leakage"): [0.5, 2.5, 2.5],
        ("rounds", "noise_to_signal"): [1.0, 2.0, 8.0],
    }

    def column(self, table, name):
        return np.array(self.TABLES[table, name])

    def curve(self, x, y, smoothing):
        assert smoothing == 3
        return np.array([2.0, 4.0, 7.0]), np.array([0.6, 0.8, 0.9])


@pytest.mark.parametrize(("target", "seconds"), [(0.95, 10.0), (0.8, 3.0)])
def test_a_target_that_is_reached_after_the_end_is_not_reached(target, seconds, monkeypatch):
    monkeypatch.setattr(outcomes, "TARGET", target)
    outcome = outcomes.Outcome.of(Written(), 10, seconds)
    assert (outcome.to_target_s, outcome.to_target_rounds, outcome.restricted_s) == (math.inf, math.inf, seconds)


def test_outcome_by_hand():
    """Jain's index of 3, 0, 1 and 6 zeros: 16 / (10 * 10)."""
    outcome = outcomes.Outcome.of(Written(), 10, 10.0)
    assert (outcome.to_target_s, outcome.to_target_rounds, outcome.restricted_s) == (4.0, 2, 4.0)
    figures = (outcome.final_accuracy, outcome.round_s, outcome.asked_s, outcome.compute_s, outcome.uplink_s)
    assert figures == pytest.approx((0.9, 7 / 3, (0.5 + 0 + 0.5) / 3, 3.0, 0.25))
    shares = (outcome.used, outcome.empty, outcome.wasted, outcome.clients, outcome.jain)
    assert shares == pytest.approx((4 / 3, 1 / 3, 3 / 7, 2 / 10, 16 / 100))
    assert (outcome.leakage, outcome.noise_to_signal) == (2.5, 8.0)
    assert math.isnan(outcome.accuracy[19])
    assert [outcome.accuracy[at] for at in (20, 39, 40, 70, 100)] == [0.6, 0.6, 0.8, 0.9, 0.9]
    again = outcomes.Outcome.from_row(json.loads(json.dumps(outcome.to_row())))
    assert again.to_row() == outcome.to_row()


def test_interval_is_students():
    """Of 1, 2, 3: the error of the mean is 1 / sqrt(3), and t of 2 degrees at 97.5 % is 4.302653."""
    interval = tables.Interval.of([1.0, 2.0, 3.0])
    assert interval == pytest.approx((2.0, 4.302653 / math.sqrt(3)), rel=1e-6)
    assert not interval.above
    assert tables.Interval.of([4.0, 5.0, 6.0]).above
    assert tables.Interval.of([-4.0, -5.0, -6.0]).below
    assert math.isnan(tables.Interval.of([1.0]).half)


def test_rows_are_paired_by_seed_with_the_length_of_the_run_where_the_target_was_not_reached():
    outcome = outcomes.Outcome.of(Written(), 10, 10.0)
    reached = {"uniform": (2.0, 4.0, 9.0), "md": (4.0, 5.0, math.inf)}
    found = {
        name: {seed: replace(outcome, to_target_s=at_s) for seed, at_s in zip((5, 6, 7), reached_s, strict=True)}
        for name, reached_s in reached.items()
    }
    first, second = tables.rows_of(found)
    assert (first.method, first.verdict, second.method, second.beside) == ("uniform", "", "md", "uniform")
    assert (second.seeds, second.reached, second.to_target_s.mean) == (3, 2, 19 / 3)
    assert second.later_s.mean == pytest.approx((2 + 1 + 1) / 3)
    assert second.verdict == "level"  # 4/3 +- 1.43
    late = replace(second, later_s=tables.Interval(2.0, 1.0), method="no such row")
    assert tables.unexplained({"open": [first, late]}) == ["open: no such row"]


def test_runs_go_on_after_a_kill(monkeypatch, tmp_path):
    made = []

    def run(task, scenario, store):
        made.append(task.method)
        outcome = outcomes.Outcome.of(Written(), 10, 10.0)
        return {"cpu_s": 0.5, "outcome": outcome.to_row()}

    monkeypatch.setattr(runs, "_run", run)
    tasks = [runs.Task("open", name, 4) for name in ("uniform", "md", "pow-d")]
    whole = list(runs.run_all(tasks, tmp_path, 1))
    assert made == ["uniform", "md", "pow-d"]
    assert [one.task for one in whole] == tasks
    file = tmp_path / "seed-004.jsonl"
    file.write_text(file.read_text()[:-30])  # killed while a line was written
    assert list(runs.run_all(tasks, tmp_path, 1)) == whole
    assert made[3:] == ["pow-d"]
    list(runs.run_all(tasks[:1], tmp_path, 1, seconds=7.0))
    assert made[4:] == ["uniform"]


def test_a_sentence_has_the_numbers_of_its_row_and_of_rows_beside():
    outcome = outcomes.Outcome.of(Written(), 10, 10.0)
    named = ("uniform", "pow-d", "pow-d, exact numbers")
    found = {name: dict.fromkeys((1, 2), replace(outcome, asked_s=0.25 * at)) for at, name in enumerate(named)}
    rows = tables.rows_of(found)
    said = page.reasons_of("privacy", rows, [])
    assert said.keys() == {"pow-d"}
    assert said["pow-d"].startswith("Questions take 0.25 s of a round of 2.33 s (uniform 2.33), and it needs 2 rounds")
    assert "with exact numbers it is +0.0 s." in said["pow-d"]
    assert "it is +nan s" in page.reasons_of("privacy", rows[:2], [])["pow-d"]


@pytest.mark.parametrize("table", crowds.CROWDS)
def test_sentences_are_of_rows_that_there_are_and_name_rows_that_there_are(table):
    here = {name for name, method in methods.methods().items() if table in method.tables}
    assert reasons.REASONS[table].keys() <= here
    for sentence in reasons.REASONS[table].values():
        assert sentence.endswith(".")
        for kind, name in re.findall(r"{(of|open)\[([^]]+)]", sentence):
            assert (table if kind == "of" else "open") in methods.methods()[name].tables


def test_page_has_all_measured_rows_and_a_sentence_for_each_that_loses():
    written = [line.split(" | ") for line in (HERE / "README.md").read_text().splitlines()]
    lines = [line for line in written if line[0].startswith("| `")]
    with (HERE / "tables.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} == set(crowds.CROWDS)
    for row in rows:
        if row["method"].endswith(methods.EVIDENCE):
            continue
        to_target = f"{float(row['to_target_s']):.1f} +- {float(row['to_target_half']):.1f}"
        (mine,) = (line for line in lines if line[0] == f"| `{row['method']}`")
        at = 1 + len(page.COLUMNS) * list(crowds.CROWDS).index(row["table"])
        assert mine[at].partition(" (")[0] == to_target, f"{row['table']}: {row['method']}: {to_target}"
        if row["verdict"] == "loses":
            assert f"*{row['table']}:*" in mine[-1]
            assert mine[-1].rstrip(" |").endswith(".")


def test_tables_are_put_between_the_marks_of_a_page(tmp_path):
    file = tmp_path / "page.md"
    file.write_text(f"head\n{page.MARKS[0]}\nold\n{page.MARKS[1]}\ntail\n")
    for _ in range(2):
        page.put_into(file, "| new |\n")
        assert file.read_text() == f"head\n{page.MARKS[0]}\n\n| new |\n\n{page.MARKS[1]}\ntail\n"
    file.write_text("head\n")
    with pytest.raises(ValueError, match=r"page\.md: it lacks the marks"):
        page.put_into(file, "| new |\n")
