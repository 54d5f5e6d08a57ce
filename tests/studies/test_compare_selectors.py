"""The study of all selectors: who is in its tables, its figures by hand, and runs that go on after a kill."""

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest
from selector_tables import methods, outcomes, page, rows, runs, sentences

from fedsim.selectors import SELECTORS

HERE = Path(__file__).parents[2] / "scenarios" / "selector_tables"


@pytest.mark.parametrize("table", methods.TABLES)
def test_no_selector_of_the_registry_is_missing(table):
    there = {method.kind for method in methods.methods().values() if table in method.tables}
    assert set(SELECTORS.builtin) - there - set(methods.FACTS["elsewhere"]) == (
        {"all-compute"} if table == "privacy" else set()
    )


def test_a_new_selector_gets_a_row_in_each_table_by_itself(monkeypatch):
    monkeypatch.setitem(SELECTORS.builtin, "newest", SELECTORS.builtin["rpow-d"])
    methods.methods.cache_clear()
    found = methods.methods()
    assert tuple(found["newest"].tables) == methods.TABLES
    assert found["newest, exact numbers"].tables == ("privacy",)
    methods.methods.cache_clear()


def test_every_row_makes_a_scenario_and_its_pair_stands_in_the_same_tables():
    """A study refuses two rows that are the same run."""
    for table in methods.TABLES:
        study = runs.study_of_table(table, methods.methods(), methods.crowd(table), [3])
        assert len(study.points) == len(study.arms)
        assert all(methods.methods()[name].beside in study.arms for name in study.arms)


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


def came_to(**values):
    return outcomes.outcome_of(Written(), 10, 10.0) | values


@pytest.mark.parametrize(("target", "seconds"), [(0.95, 10.0), (0.8, 3.0)])
def test_a_target_that_is_reached_after_the_end_is_not_reached(target, seconds, monkeypatch):
    monkeypatch.setattr(outcomes, "TARGET", target)
    outcome = outcomes.outcome_of(Written(), 10, seconds)
    assert [outcome[name] for name in ("to_target_s", "to_target_rounds", "restricted_s")] == [
        math.inf,
        math.inf,
        seconds,
    ]


def test_outcome_by_hand():
    """Jain's index of 3, 0, 1 and 6 zeros: 16 / (10 * 10)."""
    by_hand = {"to_target_s": 4.0, "to_target_rounds": 2, "restricted_s": 4.0, "final_accuracy": 0.9, "round_s": 7 / 3}
    by_hand |= {"asked_s": (0.5 + 0 + 0.5) / 3, "compute_s": 3.0, "uplink_s": 0.25, "used": 4 / 3, "empty": 1 / 3}
    by_hand |= {"wasted": 3 / 7, "clients": 2 / 10, "jain": 16 / 100, "leakage": 2.5, "noise_to_signal": 8.0}
    assert came_to() == pytest.approx(by_hand)
    accuracy = outcomes.held(Written(), 10.0)
    assert math.isnan(accuracy[19])
    assert [accuracy[at] for at in (20, 39, 40, 70, 100)] == [0.6, 0.6, 0.8, 0.9, 0.9]


def test_rows_are_paired_by_seed_with_the_length_of_the_run_where_the_target_was_not_reached():
    """Of 2, 1, 1: the error of the mean is 1/3, and t of 2 degrees at 97.5 % is 4.302653."""
    reached = {"uniform": (2.0, 4.0, 9.0), "md": (4.0, 5.0, math.inf)}
    found = {name: [came_to(to_target_s=at, restricted_s=min(at, 10.0)) for at in of] for name, of in reached.items()}
    first, second = rows.rows_of("open", found)
    assert [first["method"], first["verdict"], second["method"], second["beside"]] == ["uniform", "", "md", "uniform"]
    assert [second["seeds"], second["reached"], second["to_target_s"]] == [3, 2, 19 / 3]
    assert [second["later_s"], second["later_half"]] == pytest.approx([4 / 3, 4.302653 / 3], rel=1e-6)
    assert rows.cells(second)[:2] == ["6.3 +- 8.0 (2 of 3)", "+1.3 +- 1.4"]
    assert second["verdict"] == "level"


@pytest.mark.parametrize(("apart_s", "verdict"), [(0.0, "level"), (5.0, "loses"), (-5.0, "wins")])
def test_a_row_that_loses_has_a_sentence(apart_s, verdict):
    found = {"uniform": [20.0, 30.0], "uniform, cohorts of 16": [20.0 + apart_s, 30.0 + apart_s]}
    outcomes_of = {name: [came_to(restricted_s=at) for at in of] for name, of in found.items()}
    found = {row["method"]: row for row in rows.rows_of("open", outcomes_of)}
    assert found["uniform, cohorts of 16"]["verdict"] == verdict
    lost = ["open: uniform, cohorts of 16"] if verdict == "loses" else []
    assert sentences.unexplained(list(found.values())) == lost


def test_a_sentence_has_the_numbers_of_its_row_and_of_rows_beside():
    named = ("uniform", "pow-d", "pow-d, exact numbers")
    found = rows.rows_of("privacy", {name: [came_to(asked_s=0.25 * at)] * 2 for at, name in enumerate(named)})
    said = sentences.said(found)
    assert said.keys() == {("privacy", "pow-d")}
    sentence = said["privacy", "pow-d"]
    assert sentence.startswith("Questions take 0.25 s of a round of 2.33 s (uniform 2.33), and it needs 2 rounds")
    assert "with exact numbers it is +0.0 s." in sentence
    assert "it is +nan s" in sentences.said(found[:2])["privacy", "pow-d"]


@pytest.mark.parametrize("table", methods.TABLES)
def test_sentences_are_of_rows_that_there_are_and_name_rows_that_there_are(table):
    texts = {name: text for (of, name), text in sentences.reasons().items() if of == table}
    assert texts.keys() <= {name for name, method in methods.methods().items() if table in method.tables}
    for sentence in texts.values():
        assert sentence.endswith(".")
        for kind, name in re.findall(r"{(of|open)\[([^]]+)]", sentence):
            assert (table if kind == "of" else "open") in methods.methods()[name].tables


def test_page_has_all_measured_rows_and_a_sentence_for_each_that_loses():
    written = [line.split(" | ") for line in (HERE / "README.md").read_text().splitlines()]
    lines = [line for line in written if line[0].startswith("| `")]
    with (HERE / "tables.csv").open() as file:
        measured = list(csv.DictReader(file))
    assert {row["table"] for row in measured} == set(methods.TABLES)
    for row in measured:
        if row["method"].endswith(methods.EVIDENCE):
            continue
        to_target = f"{float(row['to_target_s']):.1f} +- {float(row['to_target_half']):.1f}"
        (mine,) = (line for line in lines if line[0] == f"| `{row['method']}`")
        at = 1 + len(rows.HEADS) * methods.TABLES.index(row["table"])
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
