"""Times as people write them: dates, seconds since 1970, hours, units, gaps, rows out of order, and what follows."""

import gzip

import numpy as np
import pytest

from fedsim.devices.availability.traces import Traces
from fedsim.errors import DataError
from fedsim.inputs.tables import Table, instants, origin_of, reading
from fedsim.network.topology.mobility import Trace
from fedsim.network.traces.files import RateFile
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import BITS_PER_SECOND
from tests.support.tables import there as who_is_there, written

LAST = {"after": "repeat"}
FROM = "2024-03-01T10:00:00"
"""1,709,287,200 s after 1970."""


def read(tmp_path, text, origin=None, name="time_s"):
    (tmp_path / "t.csv").write_text(text)
    table = Table.read(tmp_path / "t.csv", "a.path")
    times = instants(table, table.called(name, "time"))
    return times.since(origin_of(table, [times], origin)).tolist()


def test_an_origin_is_a_number_or_a_date(tmp_path):
    assert read(tmp_path, "time_s\n100\n160\n", origin=90.0) == [10, 70]
    for origin in ("2024-03-01T11:59:50+02:00", 1709287190.0):
        with reading() as run:
            assert read(tmp_path, "time\n1709287200000\n1709287261500\n", origin=origin) == [10, 71.5]
        assert "time is read as ms since 1970, by its size" in "".join(run.notes)
    with pytest.raises(DataError, match="origin: '10:00' is not allowed; the table has seconds"):
        read(tmp_path, "time_s\n100\n160\n", origin="10:00")


def test_two_tables_of_a_run_do_not_begin_at_two_dates(tmp_path):
    with reading():
        read(tmp_path, f"time\n{FROM}\n")
        with pytest.raises(DataError, match=r"2024-03-02T00:00:00Z, and that of a\.path.*both with the field origin"):
            read(tmp_path, "time\n2024-03-02\n")


@pytest.mark.parametrize(
    "cell", ["2024-03-01T10:00:00Z", "10:00", "25:00", "2024-13-01", "yesterday", "0001-01-01T00:00:00+23:00x"]
)
def test_what_is_no_time_is_refused_with_its_row(tmp_path, cell):
    with pytest.raises(DataError, match=r"time, row 2: '.*' is not allowed; allowed: seconds, dates such as"):
        read(tmp_path, f"time\n{FROM}\n{cell}\n")


PUBLISHED = """Timestamp,CellID,NetworkMode,RSRP,SNR,DL_bitrate,UL_bitrate,State,PINGAVG
2021.03.04_10.00.00,2,5G,-95,8.0,1000,100,D,-
2021.03.04_10.00.01,2,5G,-95,8.0,2000,200,D,-
2021.03.04_10.00.01,2,5G,-95,8.0,3000,200,D,-
2021.03.04_10.00.02,2,5G,-95,8.0,4000,400,D,-
2021.03.04_10.00.03,2,5G,-95,8.0,-,400,D,-
2021.03.04_10.00.06,2,5G,-95,8.0,5000,400,D,-
2021.03.04_10.00.07,2,5G,-95,8.0,5000,400,D,-
"""


def test_throughput_is_read_as_published(tmp_path):
    path, columns = tmp_path / "t.CSV.gz", {"rate": "DL_bitrate", "unit": "kbit/s", "time": "Timestamp"}
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + PUBLISHED.encode()))
    with reading() as run:
        found = RateFile(path=str(path), **columns, **LAST).read()
    assert found.edge_s.tolist() == [0, 1, 2, 6, 7, 8]
    assert found.rate_bps.tolist() == [1e6, 2.5e6, 4e6, 5e6, 5e6, 0]
    assert [note.partition(".gz: ")[2] for note in run.notes] == [
        "1 rows not used: a value is missing",
        "1 rows have the instant of another row: their mean rate holds",
        "1 gaps between rows, of up to 4 s: the rate before them holds",
    ]


def test_notes_count_the_rows_of_all_traces(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,t_s,r\n" + "".join(f"{i},0,1\n{i},0,3\n{i},1,2\n{i},2,2\n{i},9,2\n" for i in (1, 0)))
    with reading() as run:
        found = RateFile(path=str(path), rate="r", time="t_s", unit="bit/s", **LAST).read()
    assert found.rate_bps.tolist() == [2, 2, 2, 2, 0] * 2
    assert [note.partition(".csv: ")[2] for note in run.notes] == [
        "2 rows have the instant of another row: their mean rate holds",
        "2 gaps between rows, of up to 7 s: the rate before them holds",
    ]


def test_hours_go_over_midnight_and_rows_are_sorted_by_dates(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("t,r\n23:59:58,1\n23:59:59,2\n00:00:01,3\n")
    with reading() as run:
        assert RateFile(path=str(path), rate="r", time="t").read().edge_s.tolist() == [0, 1, 3, 5]
    assert run.notes[-1] == "t.csv: after its last row a trace begins anew, as no after is stated"
    for after, took_s in (("repeat", 7.0), ("hold", 6.0), ("none", np.inf)):  # 11 bits in 5 s, then 3 more
        found = RateFile(path=str(path), rate="r", time="t", after=after).read()
        assert found.transfer_s(np.zeros(1, dtype=int), np.zeros(1), np.full(1, 14.0)).tolist() == [took_s]
    path.write_text("t,r\n12,3\n10,1\n11,2\n")
    with reading() as run:
        found = RateFile(path=str(path), rate="r", time="t", **LAST).read()
    assert found.rate_bps.tolist() == [1, 2, 3, 0]
    assert run.notes == [
        "t.csv: r is read as bit/s: neither its name nor unit states another",
        "t.csv: t is read as seconds: its name states no unit",
        "t.csv: 1 rows come before the row above them in time: rows are sorted",
    ]


def there(tmp_path, text, times_s, **options):
    return [bool(one) for (one,) in who_is_there(written(tmp_path / "t.csv", text), 1, times_s, **options)]


def test_presence_over_the_end_of_a_period(tmp_path):
    """From 22:00 to 06:00 of each day; the run begins at midnight, or at 21:00."""
    hours = "client,start,end\n0,22:00,06:00\n"
    times_s = [0.0, 5.9 * 3600, 6.1 * 3600, 22.5 * 3600, 29.0 * 3600]
    assert there(tmp_path, hours, times_s) == [True, True, False, True, True]
    assert there(tmp_path, hours, times_s, origin="21:00") == [False, True, True, False, True]
    assert there(tmp_path, "client,start_s,end_s\n0,8,2\n", [1, 5, 9, 11], period_s=10.0) == [True, False, True, True]


def test_presence_after_the_last_row(tmp_path):
    text = "client,start_s,end_s\n0,1,2\n0,5,6\n"
    assert there(tmp_path, text, [1.5, 5.5, 11.5], period_s=10.0) == [True, True, True]
    assert there(tmp_path, text, [1.5, 5.5, 11.5], after="none") == [True, True, False]
    assert there(tmp_path, text.replace("5,6", "5,-"), [4.0, 5.5, 1e6], after="hold") == [False, True, True]
    with pytest.raises(DataError, match=r"end_s, row 2: '-' is not allowed; .* where after is not 'none'"):
        there(tmp_path, text.replace("5,6", "5,-"), [], after="none")
    with pytest.raises(DataError, match="end_s, row 1: '-' is not allowed"):
        there(tmp_path, text.replace("1,2", "1,-"), [], after="hold")
    (tmp_path / "t.csv").write_text(text)
    found = Traces(path=str(tmp_path / "t.csv"), after="none").build(RunSetup(1, Streams(0)))
    assert found.next_s(7.0, 1)[0] == np.inf


def test_presence_that_is_cut_is_counted(tmp_path):
    with reading() as run:
        assert there(tmp_path, "client,start_s,end_s\n0,8,12\n0,15,16\n0,3,3\n", [9, 1], period_s=10.0) == [True, False]
    assert [note.partition(".csv: ")[2] for note in run.notes] == [
        "1 spans are cut at the end of the period",
        "1 spans not used: they begin at the end of the period, or later",
        "1 spans not used: they have no length",
    ]


def test_ways_repeat_or_end_and_begin_within_a_trace(tmp_path):
    path = tmp_path / "walk.csv"
    path.write_text("client,time,x_m,y_km\n0,10,10,0\n0,0,0,0\n0,10,10,0\n")

    def places(times_s, **options):
        legs = Trace(path=str(path), **options).of_clients(1)(0, (0.0, 0.0))
        found, leg = [], next(legs)
        for time_s in times_s:
            while leg.end_s <= time_s:
                leg = next(legs)
            found.append(leg.place_m[0] + (time_s - leg.start_s) * leg.velocity_m_per_s[0])
        return found

    assert places([5.0, 15.0, 25.0]) == [5.0, 10.0, 10.0]
    assert places([5.0, 15.0, 25.0], after="repeat") == [5.0, 5.0, 5.0]
    assert places([0.0, 5.0, 15.0], origin=4.0) == [4.0, 9.0, 10.0]
    assert places([0.0, 6.5, 10.0, 15.0], origin=4.0, after="repeat") == [4.0, 0.5, 4.0, 9.0]
    path.write_text("client,time,x_m,y_m\n0,2,1,0\n0,4,7,8\n")
    assert places([0.0, 3.0, 9.0]) == [1.0, 4.0, 7.0]
    assert places([1.0, 3.0, 5.0, 7.0], after="repeat") == [1.0, 4.0, 1.0, 4.0]
    path.write_text("client,time,x_m,y_m\n0,1,0,0\n0,1,1,0\n")
    with pytest.raises(DataError, match=r"row 2: at 1 s client 0 is at two places: \(0, 0\) and \(1, 0\) m"):
        places([0.0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("client,start,end\n0,2024-03-31T00:30Z,2024-03-31T03:30\n", "in one column have a zone, and those in another"),
        ("client,start_s,start_ms,end_s\n0,1,1000,2\n0,3,3,4\n", "row 2: '3' is not allowed; allowed: what start_s"),
    ],
)
def test_columns_that_contradict_one_another_are_refused(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        there(tmp_path, text, [0.0], after="none")


def test_decimal_commas_of_tables_with_semicolons(tmp_path):
    for cell, thousands in ("1,5", False), ("1,500", True):
        (tmp_path / "t.csv").write_text(f"r (kbit/s);n\n{cell};a\n2;b\n")
        with reading() as run:
            assert Table.read(tmp_path / "t.csv").numbers("r_bps", BITS_PER_SECOND).tolist() == [1500.0, 2000.0]
        assert run.notes == ["t.csv: r (kbit/s): a comma stands before decimals, as in 1,500"] * thousands
    (tmp_path / "t.csv").write_text('r,n\n"1,5",a\n2,b\n')
    with pytest.raises(DataError, match="r, row 1: '1,5' is not allowed; allowed: numbers"):
        Table.read(tmp_path / "t.csv").numbers("r", BITS_PER_SECOND)
