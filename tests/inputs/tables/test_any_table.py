"""Any table: each reader uses its rows as a plain reading of them says, or refuses it; no row goes without a note."""

import contextlib
import gzip
import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

from fedsim.devices.availability.traces import Traces
from fedsim.errors import DataError
from fedsim.inputs.tables import reading
from fedsim.network import FromFile
from fedsim.network.satellite.satellite import WindowFile
from fedsim.network.topology.mobility import Trace
from fedsim.network.traces.files import RateFile
from fedsim.per_client.laws import Column
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams

IDS = ("client", "Client", " ID", "device ")
NOTHING = ("", "-", "NA", "n/a", "nan")
ODD = ("x", "1,5x", "inf", "--1", "1e400", "12:61", "2024-99-01", "'", "\x07", "é")


FEW_AND_MANY = pytest.mark.parametrize("examples", [12, pytest.param(200, marks=pytest.mark.slow)])
"""Some fuzzed tables in each run of the tests, and more of them at night."""

numbers = st.integers(0, 40).map(str)
others = st.sampled_from((*NOTHING, *ODD))
ids = st.sampled_from(("0", "1", "2", "3", "7", "-1", "1.0", "a", "", "2.5", "1e3"))


@st.composite
def tables(draw, names):
    """Draw rows, of which few are odd, and the bytes of a file that holds them in one of many dialects."""
    owners = list(draw(st.permutations("0123")))[draw(st.sampled_from((0, 0, 0, 1, 2))) :]
    owners += draw(
        st.one_of(st.just([]), st.lists(st.sampled_from(("0", "2", "9")), max_size=3), st.lists(ids, max_size=2))
    )
    rows = [[owner, *(draw(numbers) for _ in names)] for owner in draw(st.permutations(owners))]
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        if rows:
            rows[draw(st.integers(0, len(rows) - 1))][draw(st.integers(1, len(names)))] = draw(others)
    header = [draw(st.sampled_from(IDS)), *names]
    order = draw(st.permutations(range(len(header))))
    mark, end = draw(st.sampled_from((",", ";", "\t"))), draw(st.sampled_from(("\n", "\r\n")))
    quoted = [[f'"{cell}"' if mark in cell else cell for cell in row] for row in rows]
    lines = [mark.join(row[at] for at in order) for row in (header, *quoted)]
    content = draw(st.sampled_from((b"", b"\xef\xbb\xbf"))) + (end.join(lines) + end).encode()
    return rows, gzip.compress(content, mtime=0) if draw(st.booleans()) else content


def number(cell):
    """Return the number of a cell; None for nothing, NaN for what is none."""
    if cell.strip().lower() in {one.lower() for one in NOTHING}:
        return None
    try:
        return float(cell)
    except ValueError:
        return math.nan


def bad(cell):
    found = number(cell)
    return found is not None and not math.isfinite(found)


def owners(rows):
    """Return the client of each row as a plain reading says; None where a table must be refused."""
    if {row[0] for row in rows} == {"a"}:
        return [0 for _ in rows]
    found = [number(row[0]) for row in rows]
    if any(one is None or not one >= 0 or one != int(one) for one in found):
        return None
    return [int(one) for one in found]


def read(folder, content, make):
    """Return what a reader makes of a file with the notes, or the refusal."""
    path = folder / "t.csv"
    path.write_bytes(content)
    with reading() as run:
        try:
            return make(str(path)), run.notes
        except DataError as error:
            refused = str(error)
    assert str(path) in refused
    assert re.search(r"row \d|no row|rows|must have|is empty|no column", refused)
    return None, [refused]


def counted(notes, words):
    return sum(int(found[1]) for note in notes if (found := re.search(rf": (\d+) .*{words}", note)))


@FEW_AND_MANY
def test_positions(tmp_path_factory, examples):
    @settings(max_examples=examples)
    @given(st.data(), st.integers(1, 4))
    def check(data, clients):
        rows, content = data.draw(tables(("x_m", "y_m")))
        folder = tmp_path_factory.mktemp("t")
        found, notes = read(folder, content, lambda path: FromFile(path=path).positions(clients, Streams(0)))
        client = owners(rows)
        fits = client is not None and sorted(one for one in client if one < clients) == list(range(clients))
        used = [row for row, one in zip(rows, client or [], strict=False) if one < clients]
        right = fits and all(number(cell) is not None and not bad(cell) for row in used for cell in row[1:])
        if found is None:
            assert not right or any(bad(cell) for row in rows for cell in row[1:]), notes
            return
        assert right
        assert {one: found[one].tolist() for one in range(clients)} == {
            int(number(row[0])): [number(cell) for cell in row[1:]] for row in used
        }
        assert counted(notes, "of no client") == len(rows) - len(used)

    check()


@FEW_AND_MANY
def test_ways(tmp_path_factory, examples):
    @settings(max_examples=examples)
    @given(st.data())
    def check(data):
        rows, content = data.draw(tables(("time_s", "x_m", "y_m")))
        folder = tmp_path_factory.mktemp("t")
        found, notes = read(folder, content, lambda path: Trace(path=path).of_clients(4))
        if found is None:
            return
        client = owners(rows)
        assert client is not None
        assert not any(bad(cell) for row, one in zip(rows, client, strict=True) if one < 4 for cell in row[1:])
        ways, dropped = {}, 0
        for one, row in zip(client, rows, strict=True):
            values = [number(cell) for cell in row[1:]]
            if one > 3 or None in values or values in ways.get(one, []):
                dropped += 1
            else:
                ways.setdefault(one, []).append(values)
        for one in range(4):
            legs = list(found(one, (-1.0, -1.0)))
            way = sorted(ways.get(one, [[0.0, -1.0, -1.0]]))
            assert [leg.place_m for leg in legs if leg.start_s >= way[0][0]] == [(x, y) for _, x, y in way]
            assert legs[-1].start_s == way[-1][0]
        assert counted(notes, "not used") == dropped

    check()


@FEW_AND_MANY
def test_windows(tmp_path_factory, examples):
    @settings(max_examples=examples)
    @given(st.data(), st.sampled_from(({"period_s": 30.0}, {"after": "none"})))
    def check(data, options):
        rows, content = data.draw(tables(("start_s", "end_s")))
        folder = tmp_path_factory.mktemp("t")
        found, notes = read(
            folder, content, lambda path: WindowFile(path=path, **options).build(RunSetup(4, Streams(0)))
        )
        if found is None:
            return
        client = owners(rows)
        assert client is not None
        period = options.get("period_s", 100.0)
        seconds = {one: set() for one in range(4)}
        lost = 0
        for one, row in zip(client, rows, strict=True):
            start, end = (number(cell) for cell in row[1:])
            end = period if end is None else end
            if one > 3 or start >= period or start == end:
                lost += 1
                continue
            over = range(int(end)) if end < start else ()
            span = {*range(int(start), int(period if end < start else min(end, period))), *over}
            seconds[one] |= span
        for one in range(4):
            assert found.windows.total_s[one] == len(seconds[one])
        assert counted(notes, "not used") == lost

    check()


READERS = (
    lambda path: FromFile(path=path).positions(2, Streams(0)),
    lambda path: Trace(path=path).of_clients(4),
    lambda path: WindowFile(path=path, after="none").build(RunSetup(4, Streams(0))),
    lambda path: Traces(path=path).build(RunSetup(4, Streams(0))),
    lambda path: RateFile(path=path, time="time_s").of_clients("a", 4, None, Streams(0)),
    lambda path: Column(column="x_m", path=path).values(2, Streams(0), "a.b_s"),
)


@pytest.mark.slow
@given(st.binary(max_size=80))
def test_any_bytes_are_refused_in_our_words(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(content)
    for make in READERS:
        with pytest.raises(DataError, match=r"t\.csv"):
            make(str(path))


ARROW = (
    ([0, 1, None, 2**62], pa.int64()),
    ([0.0, 1.0, math.inf, math.nan], pa.float64()),
    (["0", "1", "", None], pa.string()),
    ([True, False, None, True], pa.bool_()),
    ([b"0", b"\xff", b"1", None], pa.binary()),
    ([[0], [1], None, []], pa.list_(pa.int64())),
    ([0, 10**15, None, 5], pa.timestamp("ns")),
    ([0, 10**15, None, 5], pa.timestamp("us", "Europe/Paris")),
    ([0, 10**6, None, 5], pa.date32()),
    ([0, 86_399, None, 5], pa.time32("s")),
    ([0, 5, None, 7], pa.duration("s")),
    ([Decimal("1.5"), None, Decimal(0), Decimal(1)], pa.decimal128(5, 2)),
    ([None] * 4, pa.null()),
    ([{"a": 1}, None, {"a": 2}, {}], pa.struct([("a", pa.int64())])),
)
NUMPY = (
    np.arange(4),
    np.arange(4.0),
    np.arange(4)[:, None],
    np.array(3),
    np.array(["0", "1", "2", ""]),
    np.array([b"0", b"\xff", b"2", b""]),
    np.array([True, False, True, True]),
    np.arange(3),
    np.array([], dtype=np.float64),
)


@pytest.mark.slow
@given(st.data(), st.sampled_from((".parquet", ".npz")))
def test_columns_of_any_type_are_used_or_refused_in_our_words(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("t") / f"t{suffix}"
    names = ("client", "time_s", "x_m", "y_m", "start_s", "end_s", "rate_bps", "period_s")
    if suffix == ".npz":
        np.savez(path, **{name: data.draw(st.sampled_from(NUMPY)) for name in names})
    else:
        drawn = {name: data.draw(st.sampled_from(ARROW)) for name in names}
        parquet.write_table(pa.table({name: pa.array(*column) for name, column in drawn.items()}), path)
    for make in READERS:
        with contextlib.suppress(DataError):
            make(str(path))
