"""The audit accepts true records and refuses each kind of false ones."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim import Scenario, simulate
from fedsim.errors import AuditError, FedsimError
from fedsim.history import Outcome
from fedsim.network.medium.spectrum import SpectrumBook
from fedsim.rounds import Deadline
from fedsim.rounds.audit.audit import USES, Audit, check_book
from tests.support.worlds import Sequence, serve

BOOK = SpectrumBook(carried=10.0, received=6.0, lost=3.0, under_way=1.0, most=12.0, presence_s=7.0, sojourn_s=7.0)


def ended_round():
    """Two clients from second 5 on: 1 delivers, 3 is cut short in its upload."""
    return SimpleNamespace(
        client=np.array([1, 3]),
        bits=(8.0, 8.0),
        now_s=12.0,
        start_s=5.0,
        spent_s=np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 1.5]]),
        queue_s=np.array([0.5, 2.5]),
        ended_s=np.array([11.5, 12.0]),
        sent_bits=np.array([[8.0, 8.0], [8.0, 3.0]]),
        outcome=np.array([Outcome.DELIVERED, Outcome.LATE]),
        arrived=np.array([True, False]),
        cut_in=np.array([-1, 2]),
    )


def check(round_):
    audit = Audit(4, None)
    audit.check(7, round_)
    return audit


def test_true_books_pass_and_time_adds_up_use_by_use():
    check_book("uplink", BOOK)
    time_s = check(ended_round()).time_s
    assert dict(zip(USES, time_s[:, 1], strict=True)) == {
        "idle": 5.0,
        "down": 1.0,
        "compute": 2.0,
        "queue": 0.5,
        "up": 3.0,
        "cut off": 0.0,
    }
    assert time_s[:, 3].tolist() == [5.0, 1.0, 2.0, 2.5, 0.0, 1.5]
    assert not time_s[:, [0, 2]].any()


def test_accounts_run_on_to_the_end_of_the_round():
    """Client 1 has been idle again from 11.5 s to the end at 12 s, 0 and 2 all the time."""
    accounts = check(ended_round()).accounts()
    assert {name: column.tolist() for name, column in accounts.items()} == {
        "client": [0, 1, 2, 3],
        "idle_s": [12.0, 5.5, 12.0, 5.0],
        "downlink_s": [0.0, 1.0, 0.0, 1.0],
        "compute_s": [0.0, 2.0, 0.0, 2.0],
        "queue_s": [0.0, 0.5, 0.0, 2.5],
        "uplink_s": [0.0, 3.0, 0.0, 0.0],
        "cut_off_s": [0.0, 0.0, 0.0, 1.5],
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"carried": 10.1}, "uplink carried 10.1 Hz s, but 6.0 were received"),
        ({"lost": 0.0}, "0.0 lost"),
        ({"most": 9.0}, "more than its capacity of 9.0"),
        ({"sojourn_s": 7.5}, "Little's law"),
        ({"received": np.nan}, "nan were received"),
    ],
)
def test_false_books_are_refused(change, message):
    with pytest.raises(AuditError, match=message):
        check_book("uplink", replace(BOOK, **change))


@pytest.mark.parametrize(
    ("name", "index", "value", "client"),
    [
        ("spent_s", (1, 0), 2.1, 1),
        ("queue_s", 1, 0.0, 3),
        ("ended_s", 1, 12.5, 3),
        ("spent_s", (0, 0), np.nan, 1),
        ("sent_bits", (0, 1), 7.0, 3),
        ("sent_bits", (1, 0), 7.9, 1),
        ("sent_bits", (1, 1), 8.5, 3),
        ("sent_bits", (1, 1), -1.0, 3),
        ("cut_in", 1, 0, 3),
    ],
)
def test_false_rounds_are_refused_naming_round_and_client(name, index, value, client):
    round_ = ended_round()
    getattr(round_, name)[index] = value
    with pytest.raises(AuditError, match=f"round 7, client {client}: "):
        check(round_)
    assert issubclass(AuditError, FedsimError)


def test_a_client_with_two_participations_at_once_is_refused():
    """It ended at 11.5 s, and starts again at 8 s."""
    audit = check(ended_round())
    again = ended_round()
    again.start_s, again.ended_s = 8.0, again.ended_s + 3.0
    again.now_s, again.client = 15.0, np.array([0, 2])
    audit.check(8, again)
    again.spent_s[1, 0] += 0.5
    again.client = np.array([1, 2])
    with pytest.raises(AuditError, match="round 9, client 1"):
        audit.check(9, again)


times = st.floats(0.0, 5.0)


@given(st.lists(st.tuples(times, times, times, times), min_size=2, max_size=6), st.floats(0.1, 15.0))
@settings(deadline=None, max_examples=100)
def test_planned_waits_pass_the_audit_whatever_is_cut(lines, deadline_s):
    down, work, up, leaves = map(list, zip(*lines, strict=True))
    cohorts = [np.arange(len(lines)), np.arange(0, len(lines), 2), np.arange(1, len(lines))]
    history, *_ = serve(
        Deadline(deadline_s=deadline_s),
        down,
        work,
        up,
        leaves_s=[value * 3 for value in leaves],
        selector=Sequence(cohorts),
        count=3,
    )
    spent = sum(history.column("participations", name) for name in ("downlink_s", "compute_s", "uplink_s"))
    lasted = history.column("participations", "end_s") - history.column("participations", "start_s")
    np.testing.assert_allclose(spent, lasted, atol=1e-9)


@pytest.mark.parametrize(
    "network", ["pause-two-speed", {"kind": "cell"}, {"kind": "cell", "uplink": {"sharing": "equal"}}]
)
def test_runs_pass_their_audit(network):
    history = simulate(
        Scenario(
            name="audited",
            crowd={"clients": 30},
            learning={"kind": "none", "model_bits": 1e6, "samples_per_client": 10},
            network=network,
            devices={"dropout": {"kind": "hazard", "rate_per_s": 0.3}},
            rounds={"count": 10, "policy": {"kind": "deadline", "deadline_s": 0.5}},
            selector={"kind": "uniform", "cohort": 12},
            results={"audit": True},
        )
    )
    outcomes = history.rounds.select(["delivered", "late", "dropped"]).to_pandas().sum()
    assert (outcomes > 0).all()
