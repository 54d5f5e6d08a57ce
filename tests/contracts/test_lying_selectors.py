"""Lying selectors: cohorts, questions and failures that are refused at the selection."""
# ruff: noqa: ARG005 (lies take what their contract gives, and a line is a lie)

import numpy as np
import pytest

from fedsim.selectors import Cohort, Probe
from tests.support import lies
from tests.support.lies import CLIENTS, HUGE, lying, raised, refused, returning


def selector(member, answer, **more):
    return {"selector": type("Lie", (lying(lies.HonestSelector, member, answer),), more)()}


def cohort(**columns):
    return selector("select", lambda self, view, rng: Cohort(view.client[:2], **columns))


def probe(**values):
    known = {"asks": "resources", "up_bits": 8.0}
    return selector("probe", lambda self, view, rng: Probe(**{"client": view.client[:1], **known, **values}))


LIES = [
    ("selector.select draws of 1.5", cohort(draws=np.array([1.5, 1.0])), r"draws = \[1\.5, 1\.0\]"),
    ("selector.select draws of 2^62", cohort(draws=np.array([1, HUGE])), f"with {HUGE} for client 1"),
    ("selector.select draws of 0", cohort(draws=np.array([0, 1])), "with 0 for client 0"),
    ("selector.select draws of -1", cohort(draws=[1, -1]), "with -1 for client 1"),
    ("selector.select draws of truth", cohort(draws=np.array([True, True])), "bool"),
    ("selector.select draws of 2^63", cohort(draws=np.array([2**63, 1], dtype=np.uint64)), "uint64"),
    ("selector.select draws of NaN", cohort(draws=np.array([np.nan, 1])), "draws = "),
    ("selector.select one draw for two", cohort(draws=np.array([1])), r"of shape \(2,\)"),
    ("selector.select draws of text", cohort(draws="two"), "draws = 'two'"),
    ("selector.select weights of NaN", cohort(weights=np.array([np.nan, 1])), "with nan for client 0"),
    ("selector.select weights of inf", cohort(weights=np.array([1, np.inf])), "with inf for client 1"),
    ("selector.select negative weights", cohort(weights=np.array([-1.0, 1])), r"with -1\.0 for client 0"),
    ("selector.select weights beyond floats", cohort(weights=np.full(2, 1.7e308)), "with 1.7e[+]308 for client 0"),
    ("selector.select weights of objects", cohort(weights=np.array([None, 1])), "weights = "),
    ("selector.select a generator of weights", cohort(weights=(x for x in (1.0, 1.0))), "weights = a generator"),
    ("selector.select work of 0", cohort(work=np.array([0.0, 1])), "work of 0"),
    ("selector.select work of 100.1", cohort(work=np.array([100.1, 1])), r"with 100\.1 for client 0"),
    ("selector.select work of NaN", cohort(work=np.array([1, np.nan])), "with nan for client 1"),
    *[
        (f"selector.select {name}", selector("select", answer), said)
        for name, answer, said in [
            ("None", returning(None), "returned None"),
            ("a text", returning("all"), "returned 'all'"),
            ("a generator", lambda self, view, rng: (x for x in view.client), "returned a generator"),
            ("ids as floats", lambda self, view, rng: view.client[:2] + 0.0, "float64"),
            ("ids as truth", lambda self, view, rng: view.client[:2] > 0, "bool"),
            ("a table of ids", lambda self, view, rng: view.client[:2][None], r"of shape \(1, 2\)"),
            ("a ragged list", returning([[1], [1, 2]]), "returned"),
            ("one client twice", lambda self, view, rng: view.client[[0, 0]], "a client twice: 0"),
            ("an unknown client", returning(np.array([CLIENTS])), "no candidates"),
            ("client -1", returning(np.array([-1, 0])), "no candidates"),
            ("client 2^62", returning(np.array([0, HUGE])), "no candidates"),
            ("client 2^64 - 1", returning(np.array([2**64 - 1], dtype=np.uint64)), "no candidates"),
            ("no client", lambda self, view, rng: view.client[:0], "no client in round 1"),
            ("a changed view", lambda self, view, rng: view.client.sort(), "failed with ValueError"),
        ]
    ],
    *[
        (f"selector.probe {name}", probe(**values), said)
        for name, values, said in [
            ("negative bits", {"up_bits": -1.0}, r"up_bits = -1\.0"),
            ("bits of NaN", {"up_bits": np.nan}, "up_bits = nan"),
            ("bits of inf", {"down_bits": np.inf}, "down_bits = inf"),
            ("bits of text", {"up_bits": "8"}, "up_bits = '8'"),
            ("half a sample", {"samples": 1.5}, r"samples = 1\.5"),
            ("no sample", {"samples": 0}, "samples = 0"),
            ("a wait of NaN", {"wait_s": np.nan}, "wait_s = nan"),
            ("a wait of -1", {"wait_s": -1}, "wait_s = -1"),
            ("a question that none knows", {"asks": "colour"}, "asks = 'colour'"),
            ("unknown clients", {"client": np.array([HUGE])}, "no candidates"),
            ("one client twice", {"client": np.array([0, 0])}, "a client twice"),
        ]
    ],
    ("selector.probe a text", selector("probe", returning("loss")), "returned 'loss'"),
    raised("selector.select", lambda answer: selector("select", answer)),
    raised("selector.observe", lambda answer: selector("observe", answer)),
    raised("selector.probe", lambda answer: selector("probe", answer)),
]


@pytest.mark.parametrize(("tables", "said"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_a_lie_of_a_selector_is_refused_by_name(tables, said):
    refused(tables, said)
