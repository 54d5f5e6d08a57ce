"""A selector's port reads what the object states about itself once, checks it, and translates ids at an edge server."""

import ast
import sys

import numpy as np
import pytest

from fedsim import simulate
from fedsim.errors import SelectorError
from fedsim.selectors import Cohort, Probe, SelectorInfo, SelectorPort
from fedsim.testing import check_selector
from tests.support.short_runs import TIMING
from tests.support.views import answers_of, reports_of, rng, view_of


class First:
    """Selects the first two candidates, asks all of them, and keeps what it is shown and told."""

    needs = ("loss",)
    cohort = 2

    def __init__(self):
        self.views, self.reports = [], []

    def select(self, view, rng):
        self.views.append(view)
        return view.client[:2].tolist()

    def observe(self, reports):
        self.reports.append(reports)

    def probe(self, view, rng):
        return Probe(client=view.client, asks="loss", up_bits=32)


def with_attributes(**attributes):
    return type("Odd", (First,), attributes)()


def test_a_port_holds_what_the_object_states():
    port = SelectorPort.of(First())
    assert (port.name, port.needs, port.cohort) == ("First", ("loss",), 2)
    assert (port.oracle, port.uses_features, port.paper, port.communication) == (False, False, "", "")
    assert port.knowledge == "loss (measured of delivered updates); answers to its questions"
    assert SelectorPort.of(port) is port


@pytest.mark.parametrize("cohort", [None, 0.1, True, "all"])
def test_only_a_whole_number_is_a_cohort(cohort):
    assert SelectorPort.of(with_attributes(cohort=cohort)).cohort is None


def test_a_selector_without_questions_has_no_probe():
    assert SelectorPort.of(with_attributes(probe=None)).probe is None
    assert not SelectorInfo.of(with_attributes(probe=None)).probes


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"select": None}, "Odd is no selector: it has no method select"),
        ({"observe": 3}, "Odd is no selector: it has no method observe"),
        ({"needs": "loss"}, r"Odd\.needs: 'loss' is not allowed; it must be a tuple"),
        ({"needs": ("losses",)}, r"Odd\.needs: \('losses',\) is not allowed"),
        ({"needs": ([],)}, r"Odd\.needs: \(\[\],\) is not allowed"),
        ({"needs": None}, r"Odd\.needs: None is not allowed"),
        ({"oracle": 1}, r"Odd\.oracle: 1 is not allowed; it must be True or False"),
        ({"uses_features": "yes"}, r"Odd\.uses_features: 'yes' is not allowed"),
        ({"probe": "loss"}, r"Odd\.probe: 'loss' is not allowed; it must be a method, or be left out"),
        ({"paper": 2020}, r"Odd\.paper: 2020 is not allowed; it must be a short phrase"),
        ({"communication": 32}, r"Odd\.communication: 32 is not allowed"),
    ],
)
def test_what_the_port_does_not_know_is_refused(attributes, complaint):
    with pytest.raises(SelectorError, match=complaint):
        SelectorPort.of(with_attributes(**attributes))


def test_a_class_has_information_and_no_port():
    assert SelectorInfo.of(First).probes
    assert SelectorInfo.of(type("Late", (First,), {"needs": property(repr)})).needs == ()
    with pytest.raises(SelectorError, match="First is a class"):
        SelectorPort.of(First)


def test_an_edge_is_a_crowd_of_its_own():
    """The edge has the clients 2, 5 and 7 of ten, with 10 samples for each number; 5 and 7 are candidates."""
    selector, samples = First(), 10 * np.arange(10)
    port = SelectorPort.of(selector).at_edge(np.array([2, 5, 7]), samples)
    view = view_of([5, 7], clients=10, total_samples=450, answers=answers_of([7], loss=[1.0]))
    assert port.probe(view, rng()).client.tolist() == [5, 7]
    assert port.select(view, rng()).client.tolist() == [5, 7]
    port.observe(reports_of([7, 2]))
    (seen,) = selector.views
    assert (seen.client.tolist(), seen.clients, seen.total_samples) == ([1, 2], 3, 140)
    assert seen.answers.client.tolist() == [2]
    assert selector.reports[0].client.tolist() == [2, 0]


def test_an_edge_keeps_what_a_cohort_prescribes():
    class Weighted(First):
        probe = None

        def select(self, view, rng):
            return Cohort(view.client[1:], weights=np.array([0.5]), work=np.array([0.25]))

    port = SelectorPort.of(Weighted()).at_edge(np.array([4, 6]), np.ones(8, dtype=np.int64))
    assert port.probe is None
    cohort = port.select(view_of([4, 6], clients=8), rng())
    assert (cohort.client.tolist(), cohort.weights.tolist(), cohort.work.tolist()) == ([6], [0.5], [0.25])


MODULE = """
import numpy as np


class Freshest:
    needs = ("loss",)

    def __init__(self, cohort: int = 3):
        self.cohort = cohort
        self.last = {}

    def select(self, view, rng):
        last = np.array([self.last.get(int(client), -1) for client in view.client])
        return view.client[np.lexsort((rng.random(view.client.size), last))[: view.wanted or self.cohort]]

    def observe(self, reports):
        self.last.update((int(client), reports.round) for client in reports.client)
"""


def test_a_selector_needs_nothing_but_numpy(tmp_path, monkeypatch):
    (tmp_path / "freshest.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    imported = [node for node in ast.walk(ast.parse(MODULE)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [name.name for node in imported for name in node.names] == ["numpy"]
    own = {"kind": "freshest:Freshest", "cohort": 3}
    history = simulate(TIMING.replace({"rounds": {"count": 4, "policy": "wait-for-all"}, "selector": own}))
    assert np.bincount(history.column("participations", "client")).tolist() == [2] * 6
    check_selector(sys.modules["freshest"].Freshest, clients=12, rounds=8)
