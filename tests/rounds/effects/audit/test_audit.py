"""The audit accepts true records and refuses each kind of false ones."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.devices import EnergyDemand
from fedsim.errors import AuditError, FedsimError
from fedsim.history import Outcome
from fedsim.network.medium.spectrum import SpectrumBook
from fedsim.rounds.effects.audit import audit, energy
from fedsim.rounds.effects.audit.audit import USES, Audit, check_book
from fedsim.rounds.effects.audit.records import refuse
from tests.support.worlds import batteries

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
        on_air_s=np.array([[0.5, 1.0], [3.0, 1.5]]),
        sent_bits=np.array([[8.0, 8.0], [8.0, 3.0]]),
        outcome=np.array([Outcome.DELIVERED, Outcome.LATE]),
        arrived=np.array([True, False]),
        cut_in=np.array([-1, 2]),
    )


def check(round_):
    checks = Audit(4)
    checks.check(7, round_)
    return checks


def test_true_books_pass_and_time_adds_up_use_by_use():
    check_book("uplink", BOOK)
    check_powered(powered_round())
    check_powered(drained(16.0, 0.0), 16.0)
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


def powered_round(spent_j=(21.0, 16.0), left_j=(34.0, 39.0)):
    """The same clients with batteries of 100 J, half full at first and charged with 1 W while idle.

    A bit costs 1 J and a sample 0.5 J of 10: client 1 pays 8 + 5 + 8 J of the 55 J that it has at 5 s, client 3 pays
    8 + 5 + 3 J.
    """
    round_ = ended_round()
    cost_j = np.array([[8.0, 8.0], [5.0, 5.0], [8.0, 8.0]])
    round_.demand = EnergyDemand(round_.client, np.array([55.0, 55.0]), cost_j, np.array([10.0, 10.0]))
    round_.planned_compute_s, round_.emptied = np.array([2.0, 2.0]), np.array([False, False])
    round_.energy_j, round_.left_j = np.array(spent_j), np.array(left_j)
    return round_


def check_powered(round_, charge_j=50.0, turned_over_j=0.0):
    book = energy.EnergyBook(batteries([charge_j] * 4, receive=1.0, sample=0.5, send=1.0, gain_w=1.0))
    checks = Audit(4, book)
    book.recharged_j += turned_over_j
    book.spent_j += turned_over_j
    checks.check(7, round_)
    return checks


def without(broken):
    """Return what refuses participations for all rules but one."""
    return lambda rule, *rest: None if rule == broken else refuse(rule, *rest)


def only(monkeypatch, broken, act):
    """Check that a rule, and no other one, refuses what is planted."""
    with pytest.raises(AuditError) as refusal:
        act()
    assert f": {broken}: " in str(refusal.value)
    for module in (audit, energy):
        monkeypatch.setattr(module, "refuse", without(broken))
    act()
    return str(refusal.value)


TIME_AND_BITS = [
    # It had a participation up to 6 s: its idle time is 1 s less than none, and the sum is right.
    ("it begins before its last participation has ended", {}, 1, 6.0),
    ("it ends later than now", {"now_s": {(): 11.9}}, 3, 0.0),
    ("it uses less than no time", {"spent_s": {(1, 0): -0.5}, "queue_s": {0: 3.0}}, 1, 0.0),
    ("it uses less than no time", {"spent_s": {(2, 1): -0.5}, "queue_s": {1: 4.5}}, 3, 0.0),
    ("its uses of time do not add up to the clock", {"spent_s": {(1, 0): 2.1}}, 1, 0.0),
    ("its uses of time do not add up to the clock", {"queue_s": {1: 0.0}}, 3, 0.0),
    ("its uses of time do not add up to the clock", {"spent_s": {(0, 0): np.nan}}, 1, 0.0),
    ("bits are missing", {"sent_bits": {(0, 1): 7.0}}, 3, 0.0),
    ("bits are missing", {"sent_bits": {(1, 0): 7.9}}, 1, 0.0),
    ("bits are missing", {"sent_bits": {(1, 1): -1.0}}, 3, 0.0),
    ("bits are too many", {"sent_bits": {(1, 1): 8.5}}, 3, 0.0),
    ("bits are too many", {"cut_in": {1: 1}}, 3, 0.0),
]


@pytest.mark.parametrize(("broken", "changes", "client", "before_s"), TIME_AND_BITS)
def test_a_false_time_or_size_is_refused_by_its_rule_alone(broken, changes, client, before_s, monkeypatch):
    round_ = ended_round()
    for name, cells in changes.items():
        column = np.array(getattr(round_, name))
        for index, value in cells.items():
            column[index] = value
        setattr(round_, name, column)

    def act():
        checks = Audit(4)
        if before_s:
            first = ended_round()
            first.client, first.start_s, first.ended_s = np.array([1, 2]), 0.0, np.array([before_s, 7.0])
            first.queue_s = np.array([0.0, 2.5])
            checks.check(6, first)
        checks.check(7, round_)

    assert only(monkeypatch, broken, act).startswith(f"round 7, client {client}: ")
    assert issubclass(AuditError, FedsimError)


def other_charge():
    round_ = powered_round()
    round_.demand.charge_j[0] = 54.0
    return round_


def full():
    """From a full battery; the price of nothing leaves more than it holds, by less than the tolerance."""
    round_ = powered_round((-5e-8, 16.0), (100.0 + 5e-8, 84.0))
    round_.demand.charge_j[:] = 100.0
    round_.sent_bits[:, 0], round_.cut_in[0], round_.arrived[0] = 0.0, 0, False
    round_.spent_s[:, 0], round_.ended_s[0], round_.on_air_s[:, 0] = [1.0, 0.0, 0.0], 6.5, [1.0, 0.0]
    return round_


def sending_on():
    """It sends for longer than its upload takes."""
    round_ = powered_round()
    round_.on_air_s[1, 0] = 3.5
    return round_


def emptied(left_j, outcome):
    round_ = powered_round((21.0, 16.0), (34.0, left_j))
    round_.emptied[1], round_.outcome[1] = True, outcome
    round_.demand.charge_j[1] = 16.0 + left_j
    return round_


def drained(spent_j, left_j, outcome=Outcome.DROPPED, *, is_empty=True):
    """Client 0 alone: 3 bits of its upload have cost the 16 J that it had at 0 s."""
    round_ = powered_round((spent_j,), (left_j,))
    for name in ("queue_s", "ended_s", "outcome", "arrived", "cut_in", "planned_compute_s"):
        setattr(round_, name, getattr(round_, name)[1:])
    round_.client, round_.start_s, round_.ended_s = np.array([0]), 0.0, np.array([7.0])
    for name in ("spent_s", "sent_bits", "on_air_s"):
        setattr(round_, name, getattr(round_, name)[:, 1:])
    round_.emptied, round_.outcome = np.array([is_empty]), np.array([outcome])
    cost_j = np.array([[8.0], [5.0], [8.0]])
    round_.demand = EnergyDemand(round_.client, np.array([16.0]), cost_j, np.array([10.0]))
    return round_


ENERGY = [
    ("it does not begin with its charge", other_charge, 50.0, 0.0, 1),
    ("it is on the air for less than no time, or longer than its messages", sending_on, 50.0, 0.0, 1),
    ("it paid less than the price", lambda: powered_round((20.0, 16.0), (35.0, 39.0)), 50.0, 0.0, 1),
    ("it paid more than the price", lambda: powered_round((22.0, 16.0), (33.0, 39.0)), 50.0, 0.0, 1),
    ("it is left with more than its battery holds", full, 100.0, 0.0, 1),
    ("it ran empty and has charge left", lambda: emptied(39.0, Outcome.DROPPED), 50.0, 0.0, 3),
    # Of 1e9 J that were charged and spent before, the sum over the run may differ by 1 J.
    ("its charge does not fall by what was spent", lambda: powered_round(left_j=(34.0, 39.5)), 50.0, 1e9, 3),
    ("it ran empty and was not dropped", lambda: drained(16.0, 0.0, Outcome.LATE), 16.0, 0.0, 0),
    ("it is left with less than nothing", lambda: drained(16.0 + 5e-8, -5e-8), 16.0, 0.0, 0),
]


@pytest.mark.parametrize(("broken", "round_", "charge_j", "turned_over_j", "client"), ENERGY)
def test_false_energy_is_refused_by_its_rule_alone(broken, round_, charge_j, turned_over_j, client, monkeypatch):
    said = only(monkeypatch, broken, lambda: check_powered(round_(), charge_j, turned_over_j))
    assert said.startswith(f"round 7, client {client}: ")


def test_small_errors_that_grow_from_round_to_round_are_refused(monkeypatch):
    """Each is 0.9 of the tolerance of 1e-7 J; after two of them the sum over the run is 1.8e-7 J apart."""
    error_j = 0.9e-7

    def act():
        checks = Audit(1, energy.EnergyBook(batteries([50.0], receive=1.0, sample=0.5, send=1.0)))
        for number, charge_j in ((7, 50.0), (8, 34.0 + error_j)):
            round_ = drained(16.0, charge_j - 16.0 + error_j, Outcome.LATE, is_empty=False)
            round_.demand.charge_j[:] = charge_j
            round_.start_s, round_.now_s = (number - 7) * 7.0, 14.0
            round_.ended_s = np.array([round_.start_s + 7.0])
            checks.check(number, round_)

    said = only(monkeypatch, "its energy does not add up over the run", act)
    assert said.startswith("round 8, client 0: ")


def test_every_rule_of_energy_is_planted(monkeypatch):
    rules = []
    monkeypatch.setattr(energy, "refuse", lambda broken, *_: rules.append(broken))
    check_powered(powered_round())
    assert len(rules) == 10
    assert set(rules) == {broken for broken, *_ in ENERGY} | {"its energy does not add up over the run"}
