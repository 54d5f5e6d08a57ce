"""Files of rates over time; a small trace of our own making stands in each of the forms."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from fedsim.errors import DataError
from fedsim.inputs.tables import reading
from fedsim.network.traces.files import RateFile, packet_opportunities

ROWS = "t,down,up,who\n10,4,1,a\n12,0,2,a\n13,8,1,a\n0,6,6,b\n1,2,2,b\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(ROWS)
    columns = {"t": [10.0, 12.0, 13.0, 0.0, 1.0], "down": [4, 0, 8, 6, 2], "who": ["a", "a", "a", "b", "b"]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", **{name: np.array(values) for name, values in columns.items()})
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_traces_of_a_table(folder, ending):
    """The last row of a trace is as long as the one before it; instants count from the first."""
    found = RateFile(path=f"t.{ending}", rate="down", unit="Mbit/s", time="t", trace="who").read()
    assert found.first.tolist() == [0, 4, 7]
    assert found.edge_s.tolist() == [0, 2, 3, 4, 0, 1, 2]
    assert found.rate_bps.tolist() == [4e6, 0, 8e6, 0, 6e6, 2e6, 0]
    assert found.bits.tolist() == [0, 8e6, 8e6, 16e6, 0, 6e6, 8e6]


def test_units_and_rows_of_equal_length(folder):
    (folder / "u.csv").write_text("t,r\n0,3\n500,3\n")
    for unit, bps in {"bit/s": 3, "kbit/s": 3e3, "Mbit/s": 3e6, "B/s": 24, "kB/s": 24e3, "MB/s": 24e6}.items():
        found = RateFile(path="u.csv", rate="r", unit=unit, time="t", time_unit="ms").read()
        assert found.mean_bps.tolist() == [bps]
        assert found.period_s.tolist() == [1.0]
    with reading() as run:
        found = RateFile(path="t.csv", rate="down", step_s=0.5).read()
    assert found.edge_s.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert "t.csv: t is not read: each row lasts step_s = 0.5 s" in run.notes


def test_packets_of_mahimahi(folder):
    """A line is a packet of 12,000 bits in the millisecond that ends at its timestamp."""
    (folder / "one").write_text("1\n")
    assert RateFile(path="one").read().mean_bps == pytest.approx([12e6])
    (folder / "some.up").write_text("0\n2\n2\n5\n")
    found = RateFile(path="some.up").read()
    assert found.edge_s == pytest.approx([0, 0.001, 0.002, 0.004, 0.005])
    assert found.rate_bps == pytest.approx([12e6, 24e6, 0, 12e6, 0])
    assert found.bits == pytest.approx([0, 12e3, 36e3, 36e3, 48e3])


@given(st.lists(st.integers(0, 60), min_size=1, max_size=80).filter(any))
def test_each_packet_counts_once_until_its_timestamp(stamps):
    stamps = sorted(stamps)
    edge_s, rate_bps = packet_opportunities("\n".join(map(str, stamps)).encode(), "f")
    bits = np.concatenate([[0.0], np.cumsum(np.diff(edge_s) * rate_bps)])
    for until_ms in range(1, stamps[-1] + 1):
        packets = sum(stamp <= until_ms for stamp in stamps)
        assert np.interp(until_ms / 1e3, edge_s, bits) == pytest.approx(12e3 * packets)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("t,r\n0,1\n0,1\n", {}, r"x\.csv: t: a trace has one instant"),
        ("t,r\n0,1\n", {}, "a trace has one instant"),
        ("t,r\n0,-1\n1,1\n", {}, r"r, row 1: '-1' is not allowed; allowed: numbers of at least 0"),
        ("t,r\n0,\n1,1\n", {}, "a trace has one instant"),
        ("r\n-\n1\n", {"time": None, "step_s": 1.0}, "r, row 1: '-' is not allowed; allowed: numbers"),
        ("t,r\n0,x\n1,1\n", {}, "r, row 1: 'x' is not allowed; allowed: numbers"),
        ("t,r\n0,0\n1,0\n", {}, "trace 0 carries nothing"),
        ("t,r\n0,1e16\n1,1\n", {}, r"r, row 1: '1e16' is not allowed"),
        ("t,r\n0,1\n1e-12,1\n", {}, "t, row 2: '1e-12' is not allowed"),
        ("t,rr\n0,1\n1,1\n", {}, r"there is no column 'r' \(did you mean 'rr'\?\); its columns: t, rr"),
        ("t,r\n0,1\n1,1\n", {"trace": "who"}, "there is no column 'who'"),
        ("t,r,who\n0,1,a\n1,1,\n", {"trace": "who"}, "who, row 2: nothing is not allowed; .* names in all rows"),
        ("t,r_kbps\n0,1\n1,1\n", {"rate": "r_kbps", "unit": "Mbit/s"}, "r_kbps: its name states another unit"),
        ("t,r\n10:00,1\n2024-03-01T10:00:00,1\n", {}, "t, row 2: .* is not allowed; allowed: seconds, dates such as"),
        ("t,r\n", {}, "it has 0 rows"),
    ],
)
def test_tables_that_hold_no_rates_are_refused(folder, text, options, said):
    (folder / "x.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        RateFile(**{"path": "x.csv", "rate": "r", "time": "t", **options}).read()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has 0 lines"),
        ("1\nx\n", "line 2: 'x' is not allowed"),
        ("1\n-2\n", "line 2: '-2' is not allowed"),
        ("3\n\n2\n", "line 3: 2 ms comes before the line above"),
        ("1 2\n3 4\n", "line 1: '1 2' is not allowed; a packet-delivery file has whole milliseconds, one number"),
        ("1\n\n0.5 1.2\n", "line 3: '0.5 1.2' is not allowed"),
        ("0.0 1.5\n", "line 1: '0.0 1.5' is not allowed; .* and the path of a table ends in .csv"),
        ("0\n", "its last timestamp is 0 ms"),
        ("9" * 30, "line 1: .9999"),
    ],
)
def test_what_is_no_packet_delivery_file_is_refused(folder, text, said):
    (folder / "x.down").write_text(text)
    with pytest.raises(DataError, match=r"x\.down: ") as refused:
        RateFile(path="x.down").read()
    assert re.search(said, str(refused.value))


def test_a_table_says_when_its_rows_hold():
    with pytest.raises(ValidationError, match="neither of time and step_s is given"):
        RateFile(path="t.csv")
    with pytest.raises(ValidationError, match="both of time and step_s is given"):
        RateFile(path="t.csv", time="t", step_s=1.0)
    with pytest.raises(ValidationError, match=r"rate, unit is for a table, whose path ends in \.csv, .*Mahimahi"):
        RateFile(path="t.txt", rate="r", unit="Mbit/s")
    with pytest.raises(DataError, match=r"no\.csv: cannot be read"):
        RateFile(path="no.csv", time="t").read()
