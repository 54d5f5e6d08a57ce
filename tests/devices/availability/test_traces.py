"""Interval traces: lookup by bisection, periods, mapping, both rules of checking, and files."""

import itertools
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import csv, parquet

from fedsim.devices.availability.traces import Intervals, TraceAvailability, Traces
from fedsim.errors import DataError
from tests.support.media import of_crowd

# Device 0: there from 10 to 20 and 50 to 60 of 100 s. Device 1: from 0 to 5 and 35 to 40 of 40 s, so over midnight.
# Device 2: never. Device 3: the whole of its 30 s.
INTERVALS = Intervals.of([0, 0, 1, 1, 3], [50, 10, 35, 0, 0], [60, 20, 40, 5, 30], [100, 40, 70, 30])
EACH = np.arange(4)


def test_lookup_by_hand():
    trace = TraceAvailability(INTERVALS, EACH)
    assert trace.available(EACH, 12.0, 1).tolist() == [True, False, False, True]
    assert trace.available(EACH, 155.0, 1).tolist() == [True, True, False, True], "each its own period"
    assert trace.leaves_after_s(EACH, 155.0, 1, np.ones(4)).tolist() == [5.0, 10.0, 0.0, math.inf]
    assert trace.available(EACH[:2], 20.0, 1).tolist() == [False, False], "away from its end on"
    only_first = TraceAvailability(INTERVALS, np.array([0, 2]))
    assert [only_first.next_s(t, 1)[0] for t in (0.0, 15.0, 20.0, 60.0, 199.0)] == [10.0, 15.0, 50.0, 110.0, 210.0]
    assert TraceAvailability(INTERVALS, np.array([2])).next_s(0.0, 1)[0] == math.inf


intervals = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 40)), max_size=6)


@given(st.lists(intervals, min_size=1, max_size=5), st.integers(50, 130), st.integers(0, 2000))
def test_bisection_agrees_with_a_slow_scan(devices, period, quarter):
    """Times in quarters of a second are exact; the oracle marks every quarter of the period."""
    time_s = quarter / 4 + 0.125
    there = np.zeros((len(devices), period), dtype=bool)
    rows = [(d, start, start + length) for d, row in enumerate(devices) for start, length in row]
    for d, start, end in rows:
        there[d, start:end] = True
    owner, start, end = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    data = Intervals.of(owner, start, end, [period] * len(devices))
    trace = TraceAvailability(data, np.arange(len(devices)))
    spans = [slice(*pair) for pair in itertools.pairwise(data.offset)]
    assert [np.sum(data.end_s[one] - data.start_s[one]) for one in spans] == there.sum(axis=1).tolist()
    found, left_s = trace.state(np.arange(len(devices)), time_s)
    for d in range(len(devices)):
        now = there[d, int(time_s) % period]
        assert found[d] == now
        second = int(time_s)
        steps = next((n for n in range(1, 2 * period + 1) if there[d, (second + n) % period] != now), math.inf)
        assert left_s[d] == pytest.approx(second + steps - time_s)
    # Checked at the end point, who is away then has left when it last did.
    task_s = np.array([quarter % 37 + 0.25 * d for d in range(len(devices))])
    leaves_s = TraceAvailability(data, np.arange(len(devices)), "end-point").leaves_after_s(
        np.arange(len(devices)), time_s, 1, np.append(task_s[:-1], math.inf)
    )
    for d, task in enumerate(task_s[:-1]):
        second = int(time_s + task)
        away = next((n for n in range(period) if there[d, (second - n) % period]), math.inf)
        gone_s = 0.0 if away == 0 else time_s + task - (second - away + 1)
        assert leaves_s[d] == pytest.approx(max(task - gone_s, 0.0) if gone_s else math.inf)
    assert leaves_s[-1] == math.inf


def test_overlapping_and_touching_intervals_become_one():
    data = Intervals.of([0, 0, 0, 1], [0, 5, 10, 2], [6, 10, 12, 3], [20, 20])
    assert data.start_s.tolist() == [0, 2]
    assert data.end_s.tolist() == [12, 3]
    assert data.offset.tolist() == [0, 1, 2]
    many = np.repeat(np.arange(10**5), 2)
    near = Intervals.of(many, np.tile([0.0, 1.00001], 10**5), np.tile([1.0, 1e9], 10**5), np.full(10**5, np.inf))
    assert near.start_s.size == many.size, "a gap of 10 us is one, however many devices there are"


BEHAVIOUR = {
    3834: {"active": [100, 5000], "inactive": [900, 8000], "finish_time": 518400, "duration": 3800, "model": "a"},
    7: {"active": [0, 300], "inactive": [200], "finish_time": 86400, "duration": 200},
    8: {"active": [], "inactive": [], "finish_time": 86400, "duration": 0},
}


def intervals_of(file, **options):
    return Traces(path=str(file), **options).intervals()[0]


@pytest.mark.parametrize("protocol", range(6))
def test_fedscales_behaviour_trace(tmp_path, protocol):
    file = tmp_path / "client_behave_trace"
    file.write_bytes(pickle.dumps(BEHAVIOUR, protocol=protocol))
    data = intervals_of(file)
    assert data.offset.tolist() == [0, 2, 4, 4]
    assert data.start_s.tolist() == [100, 5000, 0, 300]
    assert data.end_s.tolist() == [900, 8000, 200, 86400], "a last start without an end lasts to the period's end"
    assert data.period_s.tolist() == [518400, 86400, 86400]


def test_tables_in_every_format_hold_the_same(tmp_path):
    columns = {"device": ["b", "a", "b"], "start_s": [1.0, 2.0, 30.0], "end_s": [3.0, 9.0, 31.0]}
    table = pa.table({**columns, "period_s": [40.0, 10.0, 40.0]})
    csv.write_csv(table, tmp_path / "trace.csv")
    parquet.write_table(table, tmp_path / "trace.parquet")
    np.savez(tmp_path / "trace.npz", offset=[0, 2, 3], start_s=[1, 30, 2], end_s=[3, 31, 9], period_s=[40, 10])
    for name in ("trace.csv", "trace.parquet", "trace.npz"):
        data = intervals_of(tmp_path / name)
        assert data.offset.tolist() == [0, 2, 3], "devices by names are in the order of their first rows"
        assert (data.start_s.tolist(), data.end_s.tolist()) == ([1, 30, 2], [3, 31, 9])
        assert data.period_s.tolist() == [40, 10]
    csv.write_csv(pa.table(columns), tmp_path / "short.csv")
    assert intervals_of(tmp_path / "short.csv", period_s=50.0).period_s.tolist() == [50, 50]
    with pytest.raises(DataError, match="no column 'period_s'"):
        intervals_of(tmp_path / "short.csv")


def test_what_is_no_trace_is_refused(tmp_path):
    bad = {
        "numbers": [1, 2],
        "nothing": {},
        "no-times": {1: {"active": [1]}},
        "words": {1: {"active": ["x"], "inactive": ["y"], "finish_time": 10}},
        "too-many-ends": {1: {"active": [1], "inactive": [2, 3], "finish_time": 10}},
        "no-period": {1: {"active": [1], "inactive": [2], "finish_time": 0}},
        "no-entry": {1: 5},
        "negative": {1: {"active": [-1], "inactive": [2], "finish_time": 9}},
    }
    for name, content in bad.items():
        file = tmp_path / f"{name}.pkl"
        file.write_bytes(pickle.dumps(content))
        with pytest.raises(DataError, match=name) as refused:
            intervals_of(file)
        assert str(refused.value).count(str(file)) == 1
    with pytest.raises(DataError, match="No such file") as refused:
        intervals_of(tmp_path / "missing.csv")
    assert str(refused.value).count("missing.csv") == 1
    (tmp_path / "words.txt").write_text("hello")
    with pytest.raises(DataError, match="there is no column 'device'"):
        intervals_of(tmp_path / "words.txt")


@pytest.mark.statistical
def test_clients_get_devices_at_random_or_in_sequence(tmp_path):
    file = tmp_path / "trace.npz"
    np.savez(file, offset=np.arange(11), start_s=np.arange(10), end_s=np.arange(10) + 1, period_s=[10.0] * 10)
    in_sequence = of_crowd(Traces(path=str(file), mapping="sequential"), 25)
    assert in_sequence.available(np.arange(25), 3.5, 1).nonzero()[0].tolist() == [3, 13, 23]
    clients = 20_000
    at_random = of_crowd(Traces(path=str(file)), clients)
    share = at_random.available(np.arange(clients), 3.5, 1)
    assert share.mean() == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / clients))
    fewer = of_crowd(Traces(path=str(file)), 50)
    np.testing.assert_array_equal(fewer.available(np.arange(50), 3.5, 1), share[:50])
