"""Tables as people and other programs write them: used as they are meant, or refused in words."""

import gzip
import math
from datetime import UTC, date, datetime, time
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from fedsim.calibration import read_log
from fedsim.devices.availability.traces import Traces
from fedsim.errors import DataError
from fedsim.inputs.paths import located
from fedsim.inputs.tables import reading
from fedsim.network import FromFile
from fedsim.network.satellite.satellite import WindowFile
from fedsim.network.topology.mobility import Trace
from fedsim.network.traces.files import RateFile
from fedsim.per_client.laws import Column
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams

HOUR_S = 3600.0


def places(path):
    return FromFile(path=path).positions(2, Streams(0)).tolist()


def way(path, **more):
    """Return instant and x of each leg of client 0."""
    return [(leg.start_s, leg.place_m[0]) for leg in Trace(path=path, **more).of_clients(2)(0, (-1.0, -1.0))]


def presence(path, **more):
    found = Traces(path=path, **more).intervals(2)[0]
    return list(zip(found.start_s.tolist(), found.end_s.tolist(), strict=True))


def windows(path):
    found = WindowFile(path=path, after="none").build(RunSetup(2, Streams(0), flops_per_sample=1.0)).windows
    return found.start_s[0].tolist(), found.length_s[0].tolist()


def rates(path, **names):
    found, trace = RateFile(path=path, **names).of_clients("f", 2, None, Streams(0))
    return found.rate_bps.tolist(), trace.tolist()


def value(path, column="v", field="network.delay_s"):
    return Column(path=path, column=column).values(2, Streams(0), field).tolist()


def read(folder, content, reader, **more):
    path = folder / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with reading() as run:
        return reader(str(path), **more), " ".join(run.notes)


BOTH = [[3.0, 4.0], [1.0, 2.0]]
"""Clients 0 and 1, of whom 1 stands first in each table."""
ROWS = "1,1,2\n0,3,4\n"


@pytest.mark.parametrize(
    "name",
    [
        "client_id",
        "ClientID",
        "Client ID",
        "clients",
        "cid",
        "device_id",
        "# client",
        "id no",
        " CLIENT-INDEX ",
        "ID",
        " Device ",
    ],
)
def test_spellings_of_a_column_of_ids_are_known(name, tmp_path):
    assert read(tmp_path, f"{name},x_m,y_m\n{ROWS}", places)[0] == BOTH
    assert read(tmp_path, f"{name},v\n1,1\n0,3\n", value)[0] == [3.0, 1.0]
    rows = f"{name},time_s,rate_bps\n1,0,1\n1,1,2\n0,0,3\n0,1,4\n"
    by_id = [0, 0] if name.strip().lower().startswith("device") else [0, 1]
    found, trace = read(tmp_path, rows, rates, time="time_s")[0]
    assert (found, trace if by_id[1] else by_id) == ([3, 4, 0, 1, 2, 0], by_id)


def test_another_column_of_names_is_noted_where_rows_are_taken_in_order(tmp_path):
    for name in ("user", "UE ID", "client_name"):
        found, notes = read(tmp_path, f"{name},x_m,y_m\n{ROWS}", places)
        assert found == BOTH[::-1]
        assert f"rows are those of clients 0, 1, ...: {name} is no column client or id" in notes
    assert read(tmp_path, "device_type,x_m,y_m\nphone,1,2\nphone,3,4\n", places)[1] == ""
    for index, said in ("0 1", False), ("1 0", True):
        lines = (f"{row},{rest}" for row, rest in zip(index.split(), ("1,2", "3,4"), strict=True))
        assert ("column 1 is no" in read(tmp_path, "\n".join([",x_m,y_m", *lines]), places)[1]) == said


@pytest.mark.parametrize(
    "content",
    [
        f"# made by hand\nclient,x_m,y_m\n{ROWS}",
        f"# by A, B\n# client,x_m,y_m\n{ROWS}",
        f'"SEP=,"\nclient,x_m,y_m\n{ROWS}',
        "client|x_m|y_m\n1|1|2\n0|3|4\n",
        "client,x_m,y_m\n1,1,2\n \t \n0,3,4\n",
        f"client,x_m,y_m\r\n{ROWS}".encode("utf-32"),
        gzip.compress(b"client,x_m,y_m\n", mtime=0) + gzip.compress(ROWS.encode(), mtime=0),
        "client;x_m;y_m;\n001;1,0;2.0;\n000;3e0;4;\n",
    ],
)
def test_dialects_are_the_same_table(content, tmp_path):
    assert read(tmp_path, content, places) == (BOTH, "")


def test_paths_may_be_those_of_pathlib_and_begin_at_home(tmp_path, monkeypatch):
    (tmp_path / "a b.csv").write_text(f"client,x_m,y_m\n{ROWS}")
    (tmp_path / "link.csv").symlink_to("a b.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "a b.csv", "~/a b.csv", "./x/../link.csv"):
        assert places(path) == BOTH
    assert FromFile(path=Path("link.csv")).path == str(tmp_path / "link.csv")
    monkeypatch.delenv("HOME")
    with pytest.raises(ValidationError, match="there is no such home folder"):
        FromFile(path="~no-such-user/t.csv")
    assert located({"path": "~no-such-user/t.csv"}) == {"path": "~no-such-user/t.csv"}
    with pytest.raises(DataError, match="it is a folder; allowed: a file"):
        places(tmp_path)


def packed(**columns):
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ROWS, "its first line is '1,1,2'; allowed: the names of its columns"),
        (f"client,x_m,y_m\n{ROWS}".encode("utf-16-le"), "it has null bytes"),
        (packed(client=[0, 1]), "is no text, whatever its suffix says"),
        (b"PK\x03\x04 a workbook", "is no text, whatever its suffix says"),
        ('client,x_m,y_m,n\n1,1,2,"a\n0,3,4,\n', "begins a text that does not end"),
        ("client,x_m,y_m\n1_0,1,2\n0,3,4\n", "client, row 2: '0' is not allowed"),
        ("client,x_m,y_m\n7,1,2\n-8,3,4\n", "client, row 2: '-8' is not allowed"),
        ('client,x_m,y_m\n1,"1,000",2\n0,3,4\n', "x_m, row 1: '1,000' is not allowed"),
        ("client;x_m;y_m\n1;1.234;2\n0;0,5;4\n", "x_m, row 1: '1.234' is not allowed; .* 0,5, or dots, not both"),
        ("x_m,y\n1,2\n3,4\n", r"there is no column 'y_m' \(did you mean 'x_m'\?\); its columns: x_m, y"),
        ("", "it is empty"),
        (b"\xff\xfe\0", "cannot be read: it begins as UTF-16 text and is none"),
        ("x_m,y_m\n1,2\n3\n", "row 2 has 1 cells and the header has 2: '3'"),
        ("x_m,y_m\n1,2e9\n3,4\n", "y_m, row 1: '2e9' is not allowed"),
        (f"client,x_m,y_m\n{ROWS}client,x_m,y_m\n", "client, row 3: 'client' is not allowed"),
    ],
)
def test_what_is_no_such_table_is_refused(content, said, tmp_path):
    with pytest.raises(DataError, match=said):
        read(tmp_path, content, places)


@pytest.mark.parametrize(
    ("header", "rows", "right"),
    [
        ("date,time", ("2024-02-29,23:59:50", "2024-03-01,00:00:10"), 20.0),
        ("datetime", ("2024-03-31 01:00:00", "2024-03-31 03:00:00"), 2 * HOUR_S),
        ("time", ("2024-10-27T02:59:59+02:00", "2024-10-27T02:00:00+01:00"), 1.0),
        ("time", ("2024-03-01 10:00:00 UTC", "2024-03-01 10:00:01.5 UTC"), 1.5),
        ("t", ("0", "1e1"), 10.0),
        ("Time (hrs)", ("0", "1"), HOUR_S),
        ("time_days", ("0", "1"), 24 * HOUR_S),
        ("date", ("20240228", "20240301"), 48 * HOUR_S),
        ("date", ("0000-03-01", "0000-03-02"), 24 * HOUR_S),
        ("date,time", ("2024-02-29 00:00:00,10:00", "2024-03-01 00:00:00,11:00"), 25 * HOUR_S),
    ],
)
def test_instants_of_days(header, rows, right, tmp_path):
    table = f"client,{header},x_m,y_m\n0,{rows[0]},5,0\n0,{rows[1]},6,0\n1,{rows[0]},0,0\n"
    assert read(tmp_path, table, way)[0] == [(0.0, 5.0), (right, 6.0)]


def test_an_origin_may_be_a_date_of_toml_or_pandas(tmp_path):
    zoned = datetime(2024, 3, 1, 10, 0, 5, tzinfo=UTC)
    for origin, first, last in (
        (zoned, "2024-03-01T10:00:00Z", "2024-03-01T10:00:10Z"),
        (pandas.Timestamp(zoned), "2024-03-01T10:00:00Z", "2024-03-01T10:00:10Z"),
        (date(2024, 3, 1), "2024-02-29 23:59:55", "2024-03-01 00:00:05"),
        (time(10, 0, 5), "10:00:00", "10:00:10"),
    ):
        table = f"client,time,x_m,y_m\n0,{first},0,0\n0,{last},10,0\n1,{first},0,0\n"
        assert read(tmp_path, table, way, origin=origin)[0] == [(0.0, 5.0), (5.0, 10.0)]
        assert isinstance(Trace(path="t.csv", origin=origin).origin, str)
    times = pa.array([datetime(2024, 3, 1, 10)] * 2)
    (tmp_path / "t.parquet").write_bytes(packed(client=[0, 1], time=times, x_m=[0.0, 1.0], y_m=[0.0, 0.0]))
    with pytest.raises(DataError, match="allowed: a zone in it and in the table's dates, or in none"):
        way(str(tmp_path / "t.parquet"), origin=zoned)


def test_hours_go_on_on_the_next_day(tmp_path):
    """From 22:00 on for eight hours; without an origin the run begins at 00:00."""
    rows = "client,time,x_m,y_m\n1,23:00,0,0\n0,22:00,5,0\n0,06:00,6,0\n"
    found, notes = read(tmp_path, rows, way, origin="22:00")
    assert found == [(0.0, 5.0), (8 * HOUR_S, 6.0)]
    assert "1 rows are of the next day" in notes
    assert "the run begins at 00:00" in read(tmp_path, rows, way)[1]
    assert "time is read as hours and minutes of a day; minutes and seconds are 00:12:30" in notes
    spans = "client,day,start,end\n0,Mon,22:00,06:00\n1,Tue,06:00,22:00\n"
    assert "day is not read: hours are those of each day" in read(tmp_path, spans, presence)[1]
    dated = "client,date,start,end\n0,2024-03-01,22:00,06:00\n1,2024-03-02,22:00,23:00\n"
    assert read(tmp_path, dated, presence, after="none")[0] == [(0.0, 8 * HOUR_S), (24 * HOUR_S, 25 * HOUR_S)]
    for more in ({"after": "none"}, {"period_s": 7 * 24 * HOUR_S}):
        assert read(tmp_path, spans, presence, **more)[0] == [(22 * HOUR_S, 30 * HOUR_S), (6 * HOUR_S, 22 * HOUR_S)]


def test_instants_and_ids_may_have_decimal_commas(tmp_path):
    table = "client;time_s;x_m;y_m\n0,0;1,5;6;0\n0,0;0;5;0\n1,0;0;0;0\n"
    assert read(tmp_path, table, way)[0] == [(0.0, 5.0), (1.5, 6.0)]


def test_hours_go_over_midnight_past_a_row_without_one(tmp_path):
    rows = [("23:59:58", 5), ("-", 6), ("00:00:02", 7)]
    places_ = "client,time,x_m,y_m\n1,0:00,0,0\n" + "".join(f"0,{hour},{x},0\n" for hour, x in rows)
    assert read(tmp_path, places_, way, origin="23:59:58")[0] == [(0.0, 5.0), (4.0, 7.0)]
    there = "client,time\n1,0:00\n1,0:01\n" + "".join(f"0,{hour}\n" for hour, _ in rows)
    found = read(tmp_path, there, presence, after="none", origin="23:59:58")[0]
    assert found == [(0.0, 36.0)], "the median step is 32 s"


@pytest.mark.parametrize(
    ("table", "more", "said"),
    [
        ("client,time,x_m,y_m\n0,0,0,0\n0,1709287210,1,0\n0,5,1,0\n", {}, "time, row 2: '1709287210' is not allowed"),
        ("client,time,x_m,y_m\n0,12-31 10:00,0,0\n", {}, "time, row 1: '12-31 10:00' is not allowed"),
        ("client,time,x_m,y_m\n0,2016-12-31T23:59:60Z,0,0\n", {}, "time, row 1: .* is not allowed"),
        ("client,time,x_m,y_m\n0,24:30,0,0\n", {}, "time, row 1: '24:30' is not allowed"),
        ("client,date,x_m,y_m\n0,20240228,0,0\n0,20240230,0,0\n", {}, "date, row 2: '20240230' is not .* that there"),
        ("client,date,x_m,y_m\n0,20240301,0,0\n", {"origin": 20240302}, "origin: 20240302 is not .*: a date in quotes"),
        ("client,time,x_m,y_m\n0,2024-03-01,0,0\n", {"origin": "2024-03-01T00:00Z"}, "a zone in it and in the table's"),
        ("client,time,x_m,y_m\n0,2024-03-01,0,0\n", {"origin": "2025-03-01"}, "all rows are of instants before it"),
    ],
)
def test_instants_that_are_not_known_are_refused(table, more, said, tmp_path):
    with pytest.raises(DataError, match=said):
        read(tmp_path, table, way, **more)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("client,start_s,end_s,period_s\n", "it has no row"),
        ("client,start_s,end_s,period_s\n0,0,1,-5\n1,0,1,-5\n", "period_s, row 1: '-5' is not allowed"),
        ("client,start_s,end_s,Online\n0,0,1,yes\n1,0,1,No\n", "Online, row 2: 'No' is not allowed; allowed: rows for"),
        ("client,time_s,online\n0,0,1\n0,9,0\n1,0,1\n1,9,0\n", "online: states are not read"),
        ("client,time_s,Event\n0,0,online\n0,9,offline\n1,0,online\n1,9,offline\n", "Event: states are not read"),
        ("client,start_s,end_s,online\n0,0,1,\n1,0,1,0\n0,2,3,1\n", "online, row 2: '0' is not allowed"),
        ("client,start_s,end_s,is_connected\n0,0,1,y\n1,0,1,n\n", "is_connected, row 2: 'n' is not allowed"),
        ("client,start_s,end_s,period_s\n0,0,1,9\n1,0,1,9\n0,2,3,8", "period_s, row 3: a device has two periods"),
    ],
)
def test_presence_that_is_not_known_is_refused(table, said, tmp_path):
    with pytest.raises(DataError, match=said):
        read(tmp_path, table, presence)


def test_an_end_in_a_far_century_is_refused_with_its_row(tmp_path):
    with pytest.raises(DataError, match=r"end, row 2: '9999-12-31' is not allowed; allowed: times up to 1e\+10 s; the"):
        read(tmp_path, "client,start,end\n0,2024-03-01,2024-03-02\n1,2024-03-01,9999-12-31\n", presence, after="hold")


def test_units_of_bytes_are_no_bits_and_other_units_no_seconds(tmp_path):
    rows = "client,time_s,rate ({})\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n"
    assert read(tmp_path, rows.replace("rate ({})", "Mbps"), rates, rate="Mbps", time="time_s")[0][0][0] == 1e6
    for unit in ("MB", "Kibps", "MB/S"):
        with pytest.raises(DataError, match=r"is in no unit of bit/s|its name states bit; allowed"):
            read(tmp_path, rows.format(unit), rates, rate=f"rate ({unit})", time="time_s")
    for unit, bits in (("KB/s", 8e3), ("kB/s", 8e3), ("Kbps", 1e3), ("MBPS", 1e6), ("Mbits/sec", 1e6)):
        assert read(tmp_path, rows.format(unit), rates, rate="rate", time="time_s")[0][0][0] == bits
    with pytest.raises(DataError, match="v_m: its name states m; allowed: a unit of s"):
        read(tmp_path, "client,v_m\n0,1\n1,2\n", value, column="v_m")
    (tmp_path / "t.parquet").write_bytes(packed(client=[0, 1], v=pa.array([1, 2], pa.duration("ms"))))
    with pytest.raises(DataError, match="holds durations"):
        value(str(tmp_path / "t.parquet"))


@pytest.mark.parametrize(
    ("column", "field", "right"),
    [
        ("power_mw", "devices.energy.power_w", 1e-3),
        ("f (MHz)", "network.bandwidth_hz", 1e6),
        ("gflops", "devices.compute.flops_per_s", 1e9),
        ("samples_per_min", "devices.compute.samples_per_s", 1 / 60),
        ("v_km_per_h", "network.speed_m_per_s", 1 / 3.6),
        ("v_kmh", "network.speed_m_per_s", 1 / 3.6),
        ("size_MB", "learning.model_bits", 8e6),
        ("bytes_sec", "network.uplink_bps", 8.0),
        ("height_ft", "network.height_m", 0.3048),
        ("speed-mph", "network.speed_m_per_s", 0.44704),
        ("gain", "network.gain_db", 1.0),
        ("loss (%)", "network.loss", 0.01),
    ],
)
def test_units_of_columns_are_made_those_of_fields(column, field, right, tmp_path):
    found = read(tmp_path, f"client,{column}\n1,3\n0,1\n", value, column=column, field=field)[0]
    assert found == pytest.approx([right, 3 * right])


def test_a_column_in_two_units_may_be_rounded_in_one(tmp_path):
    rows = "client,height_m,height_ft\n1,1.83,6\n0,1.5,4.92\n"
    assert read(tmp_path, rows, value, column="height_m", field="network.height_m")[0] == [1.5, 1.83]
    with pytest.raises(DataError, match=r"height_ft, row 2: '49.2' is not allowed; allowed: what height_m has there"):
        read(tmp_path, rows.replace("4.92", "49.2"), value, column="height_m", field="network.height_m")


def test_watts_are_no_levels_charges_no_joules_and_other_units_unknown(tmp_path):
    rows = "client,{}\n1,3\n0,1\n"
    for name, field, said in (
        ("size_mb", "learning.model_bits", "size_mb is in no unit of"),
        ("samples_per_ms", "devices.compute.samples_per_s", "samples_per_ms is in no unit of"),
        ("power_mw", "network.transmit_power_dbm", "its name states W; allowed: a unit of dB, or none"),
        ("power (dBm)", "devices.energy.power_w", "its name states dB; allowed: a unit of W, or none"),
        ("power_dbw", "network.transmit_power_dbm", "its name states dBW; allowed: a unit of dB, or none"),
        ("battery_mAh", "devices.energy.capacity_j", "its name states Ah; allowed: a unit of J, or none"),
        ("angle (°)", "network.delay_s", "its name states degrees; allowed: a unit of s, or none"),
    ):
        with pytest.raises(DataError, match=said):
            read(tmp_path, rows.format(name), value, column=name, field=field)
    for name in ("power_dbm", "Power [dBm]", "power"):
        found = read(tmp_path, rows.format(name), value, column=name, field="network.transmit_power_dbm")[0]
        assert found == [1.0, 3.0]


def test_contacts_may_come_in_any_order(tmp_path):
    events = "# TIME CONN a b\n5 CONN 0 1 down\n7 CONN 1 0 UP\n9 CONN 0 1 DOWN\n0 CONN 0 1 up\n"
    assert read(tmp_path, events, windows)[0] == ([0.0, 7.0], [5.0, 2.0])
    begun = "0 CONN b a up\n1 CONN b c up\n2 CONN b c down\n"
    found, notes = read(tmp_path, begun, presence, after="hold")
    assert (found, "clients 0, 1, ... are b, a" in notes) == ([(0.0, np.inf)] * 2, True)


def test_a_client_without_an_instant_and_a_place_is_counted(tmp_path):
    assert read(tmp_path, "client,time,state,x_m,y_m\n0,0,moving,1,0\n1,0,,2,0\n", way)[0] == [(0.0, 1.0)]
    found, notes = read(tmp_path, "client,time_s,x_m,y_m\n0,0,<NA>,0\n0,NaT,1,0\n1,0,0,0\n", way)
    assert found == [(0.0, -1.0)]
    assert "1 clients stand where they are placed" in notes


def test_logs_may_have_dates_and_capitals(tmp_path):
    second = [f"2024-03-01 10:00:{number:02d}" for number in range(12)]
    rows = "".join(f"{i},{second[i]},{second[i + 1]},Delivered\n" for i in range(11))
    log = read(tmp_path, f"client_id,start,end,outcome\n{rows}", read_log)[0]
    assert (log.start_s.tolist(), set(log.spent_s[2].tolist())) == (list(range(11)), {1.0})
    assert "t.csv: the run begins at 2024-03-01T10:00:00Z" in log.notes[0]
    assert np.isnan(log.spent_s[0]).all()
    assert math.isclose(log.spent_s[2].sum(), 11.0)
