"""Curves, figures and summaries of a history written down by hand."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fedsim import draw
from fedsim.errors import RunError
from fedsim.history import Recorder, RoundEnd, draw_durations
from fedsim.history.schema import CLIENTS
from fedsim.history.tables import causal_mean
from fedsim.results import report, rows, sentences, summarise
from fedsim.results.sentences import percent
from fedsim.rounds import Deadline
from fedsim.rounds.policies.asynchronous import FedAsync
from tests.support.worlds import batteries, serve


def recorded(accuracies, name="hand"):
    recorder = Recorder(name)
    seconds = {"downlink_s": 1.0, "compute_s": 0.0, "uplink_s": 1.0, "queue_s": 0.0}
    sent = {"downlink_bits": 1.0, "uplink_bits": np.array([1.0, 0.5]), "epsilon": 0.0, "energy_j": 0.0}
    ended = {"outcome": np.array([0, 1]), "cut_in": np.array([-1, 2]), "fate": np.array([0, 2])}
    counts = {"candidates": 4, "selected": 2, "delivered": 1, "late": 1, "dropped": 0, "stale_used": 0}
    for number, accuracy in enumerate(accuracies, start=1):
        times, version = {"start_s": 2.0 * number - 2, "end_s": 2.0 * number}, {"model_version": number}
        leakage = {"largest_leakage": 0.5 * number, "mean_leakage": 0.25 * number}
        of_round = {"round": number, "duration_s": 2.0, "ended_by": RoundEnd.ENOUGH, **version}
        recorder.add_row("rounds", **of_round, **times, **counts, **leakage)
        judged = {"time_s": 2.0 * number, "accuracy": accuracy, "loss": 1 - accuracy}
        recorder.add_row("evaluations", round=number, **version, **judged)
        used = {"weight": np.array([1.0, 0.0]), "served_round": np.array([number, -1]), "staleness": np.array([0, -1])}
        own = {"client": np.array([0, 2 - number % 2]), "draws": 1, "work": 1.0, "start_version": number - 1}
        recorder.add_columns("participations", round=number, **own, **times, **seconds, **sent, **ended, **used)
    return recorder.history()


ABSENT = ("until_s", "judged", "target", "time_to_target_s", "energy_j", "wasted_energy_share", "client_metric")
SPREAD = ("mean", "std", "variance", "worst_decile", "best_decile", "jain")
HISTORY = recorded([0.2, 0.6, 0.4, 0.8, 0.9])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 50))
def test_causal_mean_is_the_mean_of_a_growing_window(values, window):
    expected = [np.mean(values[max(0, i - window + 1) : i + 1]) for i in range(len(values))]
    np.testing.assert_allclose(causal_mean(np.array(values), window), expected, atol=1e-12)


def test_summary_of_a_history_worked_by_hand():
    summary = summarise(HISTORY, target_accuracy=0.6, held=2, budget=4.0, side_information="exact")
    assert summary == {
        "rounds": 5,
        "simulated_s": 10.0,
        "final_s": 10.0,
        "ended_s": 10.0,
        "mean_round_s": 2.0,
        "final_accuracy": 0.9,
        "best_accuracy": 0.9,
        "target_accuracy": 0.6,
        "mean_accuracy": (0.2 + 0.6 + 0.4 + 0.8) / 4,
        "mean_accuracy_bounds": ((0.2 + 0.6 + 0.4 + 0.8) / 4,) * 2,
        "time_to_accuracy_s": 4.0,
        "time_to_accuracy_after_s": 4.0,
        "held_evaluations": 2,
        "time_to_accuracy_held_s": 8.0,
        "final_metrics": {},
        "participations": 10,
        "delivered_share": 0.5,
        "late": 5,
        "dropped": 0,
        "in_flight": 0,
        "downlink_bits": 10.0,
        "uplink_bits": 7.5,
        "wasted_time_share": 0.5,
        "wasted_bits_share": 1.5 / 3.5,
        "wasted_work_share": 0.0,
        "clients_reached": 3,
        "privacy": True,
        "side_information": "exact",
        "largest_leakage": 2.5,
        "mean_leakage": 1.25,
        **dict.fromkeys(ABSENT),
        **{f"client_accuracy_{name}": None for name in SPREAD},
        "notes": [],
    }
    assert ("time to 60 % accuracy, first reached", "4.00 s") in rows(summary)
    assert ("time to 60 % accuracy, held for 2 evaluations", "8.00 s") in rows(summary)
    assert ("largest leakage", "2.5 epsilon by updates; side information not private") in rows(summary)


def test_what_is_final_is_the_model_at_the_end_of_a_budget_of_time():
    """At 7 s the server has the third model, of 0.4, which is replaced at 8 s; rounds end at 10 s."""
    summary = summarise(replace(HISTORY, until_s=7.0))
    found = [summary[name] for name in ("final_accuracy", "best_accuracy", "final_s", "ended_s")]
    assert found == [0.4, 0.6, 7.0, 10.0]
    assert summary["mean_accuracy"] == pytest.approx((0.2 * 2 + 0.6 * 2 + 0.4 * 1) / 5)
    assert {("final accuracy at 7 s", "40.00%"), ("best accuracy up to 7 s", "60.00%")} <= set(rows(summary))
    assert ("final accuracy at 10 s", "90.00%") in rows(summarise(replace(HISTORY, until_s=600.0)))


def test_without_privacy_there_is_no_line_on_leakage():
    summary = summarise(HISTORY)
    assert [summary[name] for name in ("privacy", "largest_leakage", "mean_leakage")] == [False, None, None]
    assert "largest leakage" not in dict(rows(summary))


def test_a_summary_of_an_older_release_is_shown_without_what_it_lacks():
    sums = ("downlink_bits", "uplink_bits", "energy_j", "wasted_work_share")
    new = ("time_to_accuracy_after_s", "mean_accuracy", "mean_leakage", *sums)
    old = {name: value for name, value in summarise(HISTORY, budget=4.0).items() if name not in new}
    lines = dict(rows(old))
    assert (lines["wasted work"], lines["bits down, up"]) == ("-", "-, -")
    assert lines["time to 80 % accuracy, first reached"] == "-", "it had the time of a mean"
    assert not {"mean leakage", "energy", "accuracy of clients"} & set(lines)


def test_energy_mean_leakage_and_the_spread_over_clients_are_told_where_a_run_has_them():
    """Deadline 4 s: client 0 draws 3 + 5 + 4 J and is used, client 1 draws 3 + 5 + 2 J and is late after 2 s of 4 s."""
    power = batteries([50.0, 50.0], receive=3.0, sample=0.5, send=4.0)
    history, *_ = serve(Deadline(deadline_s=4), [1, 1], [1, 1], [1, 4], batteries=power, evaluate_of_clients="last")
    history = replace(history, clients=CLIENTS.from_rows([{"client": one, "capacity_j": 50.0} for one in (0, 1)]))
    summary = summarise(history)
    assert (summary["energy_j"], summary["wasted_energy_share"]) == pytest.approx((22.0, 10 / 22))
    assert (summary["downlink_bits"], summary["uplink_bits"]) == pytest.approx((2.0, 1.5))
    assert (summary["wasted_work_share"], summary["wasted_time_share"]) == pytest.approx((0.5, 4 / 7))
    lines = dict(rows(summary))
    assert lines["energy"] == "22 J, 45.5% of it wasted"
    assert lines["accuracy of clients"] == "mean 25.00%, deviation 25.00%, worst tenth 0.00%"
    pages = {page.title: page.lines for page in report(history)}
    fates = {line[0]: line[1:] for line in pages["time and bits of the clients by fate"]}
    assert fates["share of work"] == ("50.0%", "50.0%"), "of what was used, and of what was late"
    assert fates["share of energy"] == ("54.5%", "45.5%")
    spread = pages["accuracy of the model on local test samples"]
    assert spread == [("1", "2", "25.0%", "25.0%", "0.0%", "50.0%", "0.5000")]


def test_summary_and_report_of_nothing():
    assert report(Recorder("empty").history()) == []
    summary = summarise(Recorder("empty").history())
    assert summary["final_accuracy"] is None
    assert rows(summary)[0] == ("rounds", "0"), "no line on accuracies that there are not"


@pytest.mark.parametrize("x", ["time", "round"])
@pytest.mark.parametrize("y", ["accuracy", "loss", "leakage", "mean_leakage", "duration"])
def test_figures_draw_the_curve(x, y, tmp_path):
    out = tmp_path / "deep" / "figure.png" if (x, y) == ("time", "accuracy") else None
    figure = draw([HISTORY, recorded([0.1, 0.3], "other")], x, y, out=out)
    lines = figure.axes[0].get_lines()[:2]
    assert [line.get_label() for line in lines] == ["hand", "other"]
    begins = [0] if "leakage" in y else []  # nothing has leaked then
    expected_x = [*begins, *([2, 4, 6, 8, 10] if x == "time" else [1, 2, 3, 4, 5])]
    expected_y = {
        "accuracy": [0.2, 0.6, 0.4, 0.8, 0.9],
        "loss": [0.8, 0.4, 0.6, 0.2, 0.1],
        "leakage": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5],
        "mean_leakage": [0.0, 0.25, 0.5, 0.75, 1.0, 1.25],
        "duration": [2.0] * 5,
    }[y]
    np.testing.assert_allclose(lines[0].get_xdata(), expected_x)
    np.testing.assert_allclose(lines[0].get_ydata(), expected_y)
    if out is not None:
        assert out.read_bytes().startswith(b"\x89PNG")
        assert [path.name for path in out.parent.iterdir()] == ["figure.png"]


def test_history_plots_itself(tmp_path):
    figure = HISTORY.plot("round", "accuracy", smoothing=2, out=tmp_path / "own.pdf")
    np.testing.assert_allclose(figure.axes[0].get_lines()[0].get_ydata(), [0.2, 0.4, 0.5, 0.6, 0.85])
    assert (tmp_path / "own.pdf").read_bytes().startswith(b"%PDF")


def test_a_figure_of_accuracies_has_a_title_and_the_target_where_it_is_first_reached():
    """80 % at 8 s, after round 4; the mean of the last two evaluations is there later, at 10 s."""
    history = replace(HISTORY, smoothing=2)
    for x, at, said in (("time", 8.0, "80 % at 8 s"), ("round", 4.0, "80 % at round 4")):
        (axes,) = draw([history], x).axes
        assert (axes.get_title(), axes.get_legend()) == ("hand", None)
        assert axes.get_ylabel() == "test accuracy, mean of the last 2 evaluations"
        np.testing.assert_allclose(axes.collections[0].get_offsets(), [[at, 0.8]])
        assert [text.get_text() for text in axes.texts] == [said]
        assert axes.get_lines()[-1].get_ydata() == [0.8, 0.8]
    assert draw([history], smoothing=1).axes[0].get_ylabel() == "test accuracy"


def test_a_model_holds_until_the_next_where_each_was_evaluated():
    sparse = replace(HISTORY, evaluations=HISTORY.evaluations.slice(1, 4).filter(pa.array([True, False, False, True])))
    styles = [draw([one]).axes[0].get_lines()[0].get_drawstyle() for one in (HISTORY, sparse)]
    assert styles == ["steps-post", "default"]
    alone = replace(HISTORY, evaluations=HISTORY.evaluations.slice(0, 1))
    assert [draw([one]).axes[0].get_lines()[0].get_marker() for one in (sparse, alone)] == [".", "."]


NAMES = ["_base", "cost $5 and $x", "x^$x^$", "<b>&"]


def test_names_of_users_are_text_in_figures(tmp_path):
    figure = draw([HISTORY] * 4, labels=NAMES, out=tmp_path / "names.png")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == NAMES
    for name in NAMES:
        assert draw([replace(HISTORY, name=name)], out=tmp_path / "name.png").axes[0].get_title() == name


def test_the_figure_of_durations_has_the_deadline_and_ends_at_what_was_delivered(tmp_path):
    """Two rounds of 4 s: client 0 delivers after 3 s, client 1 never."""
    history, *_ = serve(Deadline(deadline_s=4), [1, 1], [1, 1], [1, 4], count=2)
    (axes,) = draw_durations(history, tmp_path / "durations.png").axes
    rounds, participations, deadline = axes.get_lines()
    assert (rounds.get_xdata().tolist(), rounds.get_ydata().tolist()) == ([0, 4, 4], [0, 0.5, 1])
    assert (participations.get_xdata().tolist(), participations.get_ydata().tolist()) == ([0, 3, 3], [0, 0.25, 0.5])
    assert deadline.get_xdata() == [4, 4]
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words == ["2 rounds", "4 participations, 2 delivered", "deadline 4 s"]
    with pytest.raises(RunError, match="empty: holds no round to draw"):
        draw_durations(Recorder("empty").history())


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(
        RunError, match="'speed' cannot be drawn; allowed: accuracy, loss, leakage, mean_leakage, duration"
    ):
        draw([HISTORY], "time", "speed")
    with pytest.raises(RunError, match="2 runs and 1 labels cannot be drawn; allowed: a label for each"):
        draw([HISTORY, HISTORY], labels=["one"])
    with pytest.raises(RunError, match="a run without learning has no evaluations"):
        draw([Recorder("timing").history()])
    with pytest.raises(RunError, match=r"nonsense. is not allowed; a figure needs a name"):
        draw([HISTORY], out=tmp_path / "figure.nonsense")


def test_a_report_says_where_time_went_what_made_rounds_long_and_what_deadlines_would_have_done():
    """The hand-made rounds of 2 s end with an update of client 0 that has 1 s each of downlink and uplink."""
    pages = {page.title: page for page in report(HISTORY, every_round=True)}
    spent, lost, fates, causes, slowest, deadlines, rounds = pages.values()
    assert spent.lines == [("hand", "8", "4", "2", "1", "1")], "8 s of four rounds of 2 s, half of each up and down"
    assert lost.header == ("client", "selected", "late", "in uplink", "late by about s")
    assert lost.lines == [("1", "3", "3", "3", "1"), ("2", "2", "2", "2", "1")], "half of the bits are sent in 1 s"
    lines = {line[0]: dict(zip(fates.header[1:], line[1:], strict=True)) for line in fates.lines}
    assert lines["participations"]["used"] == lines["participations"]["wasted\nlate"] == "5"
    assert lines["share of time"]["wasted\nlate"] == "50.0%"
    assert causes.lines == [("client: downlink", "5", "10.00", "100.0%", "1.0")]
    assert slowest.lines == [("0", "5", "downlink", "1.000")]
    assert deadlines.lines == [("2", "0.00", "0.0%", "0", "0.0%", "0")], "a deadline that lets all in"
    assert len(rounds.lines) == 5
    assert report(HISTORY, [1.5])[-1].lines == [("1.5", "2.50", "25.0%", "5", "100.0%", "5")]
    late, *_ = serve(Deadline(deadline_s=2), [1, 1], [1, 1], [1, 1])
    assert report(late, [9.0])[-1].lines == [("9", "cannot be seen in this history", "-", "-", "-", "-")]


def test_clients_are_named_in_a_report_also_where_the_first_one_alone_was_lost():
    alone, *_ = serve(Deadline(deadline_s=2.5), [1], [1], [1])
    assert report(alone)[1].lines == [("0", "1", "1", "1")]


def test_clients_in_flight_as_a_run_ends_are_told_apart_from_late_ones_and_no_deadline_is_asked_for():
    """Client 0 delivers each 3 s, until four updates are there; client 1 needs 32 s."""
    served, *_ = serve(FedAsync(concurrency=2), [1, 1], [1, 30], [1, 1], count=4)
    told = dict(rows(summarise(served)))
    assert (told["participations"], told["late, dropped"], told["in flight at the end"]) == ("5", "0, 0", "1")
    assert {page.title.split()[0] for page in report(served)} == {"to", "time", "causes", "clients"}
    assert dict(rows(summarise(HISTORY))).keys().isdisjoint({"in flight at the end"})

    assert "whose clients are sent one by one, and given up one by one; to see it: " in sentences(served, [2.0])[-1]
    assert report(served, [2.0])[-1].lines == [("2", "cannot be seen in this history", "-", "-", "-", "-")]


def test_all_but_a_few_is_not_all_and_a_few_is_not_none():
    shares = ((0.99996, 1), (3e-5, 1), (0.999, 0), (1.0, 1), (0.0, 0))
    assert [percent(*one) for one in shares] == ["99.996%", "0.003%", "99.9%", "100.0%", "0%"]


def test_short_times_keep_three_digits():
    brief = serve(Deadline(deadline_s=4.5e-5), [1], [1], [1])[0]
    told = dict(rows(summarise(brief)))
    assert (told["simulated time"], told["mean round"]) == ("4.5e-05 s", "4.5e-05 s")
    fates, causes = report(brief)[2:4]
    assert (fates.lines[1], causes.lines[0][2]) == (("downlink s", "4.5e-05"), "4.5e-05")
