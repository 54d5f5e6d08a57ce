"""The study of all selectors on one crowd: its figures by hand, and who is in it."""

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

from fedsim.selectors import SELECTORS


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "scenarios")
    return importlib.import_module("compare_selectors")


class Written:
    """What a run of six participations of three clients has written: four updates were used."""

    def __init__(self, reached_s):
        self.reached_s = reached_s

    def column(self, table, name):
        return {
            ("participations", "fate"): np.array(
                ["used", "stale-used", "wasted-late", "used", "wasted-dropped", "used"]
            ),
            ("participations", "client"): np.array([0, 0, 1, 0, 1, 2]),
            ("rounds", "duration_s"): np.array([1.0, 3.0]),
            ("rounds", "largest_leakage"): np.array([0.5, 2.5]),
        }[table, name]

    def time_to_accuracy(self, target, smoothing):
        assert (target, smoothing) == (0.8, 3)
        return self.reached_s

    def curve(self, x, y, smoothing):
        return np.array([1.0, 4.0]), np.array([0.6, 0.9])


@pytest.mark.parametrize("reached_s", [3.5, None])
def test_outcome_by_hand(study, reached_s):
    """Jain's index of 3, 0, 1 and 57 zeros: 16 / (60 * 10)."""
    outcome = study.outcome_of(Written(reached_s))
    assert outcome == pytest.approx((math.inf if reached_s is None else 3.5, 0.9, 2.0, 2 / 6, 16 / 600, 2.5))


def test_row_is_the_mean_over_seeds_and_of_the_time_over_those_that_reached_it(study):
    runs = [study.Outcome(at_s, 0.9, 1.0, 0.25, 0.5, 3.0) for at_s in (10.0, 14.0, math.inf)]
    row = study.row_of("x", runs)
    assert (row["to 80 % (s)"], row["reached"], row["+- (s)"]) == (12.0, "2 of 3", pytest.approx(2.0))
    assert [row[name] for name in ("final acc", "wasted", "Jain", "leakage")] == pytest.approx([0.9, 0.25, 0.5, 3.0])
    assert study.row_of("y", runs[2:])["to 80 % (s)"] == math.inf


def test_every_selector_is_compared_but_one_of_small_crowds_and_one_without_privacy(study):
    compared = {study.scenario(name, 0, 1.0).selector.kind for name in study.SELECTORS}
    assert set(SELECTORS.builtin) - compared == {"all-compute", "pause-enumeration"}


@pytest.mark.parametrize("names", [["tifl"], ["uniform"], ["tifl", "uniform"]])
def test_curves_are_drawn_with_and_without_uniform(study, names):
    curves = {name: [(np.array([0.0, 2.0]), np.array([0.1, 0.5]))] for name in names}
    figure = study.accuracy_figure(curves, names)
    assert {line.get_label() for line in figure.axes[0].get_lines()} >= set(names)


def test_labels_are_spread(study):
    heights = study.spread(np.array([1.0, 1.0, 1.0, 45.0]))
    assert np.all(np.diff(heights) >= 44 / 45 - 1e-9)
    assert heights[0] == 1.0
    assert study.spread(np.zeros(0)).size == 0
