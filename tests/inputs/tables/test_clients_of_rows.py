"""Ids of rows: numbers from 0 or names, the same clients in all tables of a run, and no row that vanishes."""

import numpy as np
import pytest

from fedsim.devices.availability.traces import Traces
from fedsim.errors import DataError
from fedsim.inputs.tables import Table, owned, reading
from fedsim.network import FromFile
from fedsim.network.topology.mobility import Trace
from fedsim.network.traces.files import RateFile
from fedsim.per_client.laws import Column
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.traces import capacity_of


def table(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text)
    return Table.read(tmp_path / name, "a.path")


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("1 2", "no row of client 0; the ids in it are 1, 2, and the clients are 0, 1"),
        ("10 11", "no row of client 0; the ids in it are 10, 11, and the clients are 0, 1"),
        ("0 0", "client, row 2: client 0 has a row before"),
        ("0 -1", "client, row 2: '-1' is not allowed; allowed: whole numbers from 0"),
        ("0 1.5", "client, row 2: '1.5' is not allowed"),
        ("0 b", "client, row 1: '0' is not allowed"),
        ("b 0", "client, row 2: '0' is not allowed; allowed: whole numbers from 0 in all rows, or names in all rows"),
        ("0 NA", "client, row 2: 'NA' is not allowed"),
        ("0 \uff11", "client, row 1: '0' is not allowed; allowed: whole numbers from 0 in all rows, or names"),
        ("0 -", "client, row 2: '-' is not allowed"),
    ],
)
def test_ids_that_are_no_clients_are_refused_with_both_sides(tmp_path, ids, said):
    first, second = ids.split()
    with pytest.raises(DataError, match=r"^a\.path: .*t\.csv: ") as refused:
        owned(table(tmp_path, f"client,v\n{first},1\n{second},2\n"), 2, "one")
    assert said in str(refused.value)


def test_rows_of_no_client_are_counted_where_every_client_has_its_own(tmp_path):
    with reading() as run:
        assert owned(table(tmp_path, "client\n3\n1\n0\n7\n"), 2, "one").row.tolist() == [2, 1]
        assert owned(table(tmp_path, "v\n3\n1\n0\n7\n", "rows.csv"), 3, "one").row.tolist() == [0, 1, 2]
        assert owned(table(tmp_path, "client\n2\n2\n", "some.csv"), 3, "any").client.tolist() == [2, 2]
    assert [sentence.partition(".csv: ")[2] for sentence in run.notes] == [
        "2 of 4 rows not used: they are of no client of 2",
        "1 of 4 rows not used: there are 3 clients",
        "2 of 3 clients have no row (0, 1)",
    ]


def test_names_are_the_same_clients_in_all_tables_of_a_run(tmp_path):
    first, second = "id,v\nzoe,1\nann,2\n", "device,v\nann,5\nzoe,6\nann,7\n"
    with reading():
        assert owned(table(tmp_path, first), 2, "one").row.tolist() == [0, 1]
        assert owned(table(tmp_path, second), 2, "any").client.tolist() == [1, 0, 1]
        with pytest.raises(DataError, match="the ids in it are ann, bob, and the clients are zoe, ann"):
            owned(table(tmp_path, "id\nann\nbob\n"), 2, "one")
        with pytest.raises(DataError, match=r"has the ids 0, 1, and .* has the names zoe, ann; allowed: numbers in"):
            owned(table(tmp_path, "id\n0\n1\n"), 2, "one")
    with reading() as run:
        owned(table(tmp_path, "id\nann\n"), 3, "any")
        owned(table(tmp_path, "id\nbob\nann\n", "u.csv"), 3, "any")
    assert any("1 clients (bob) are not named in a.path: t.csv" in sentence for sentence in run.notes)


def test_whole_numbers_too_long_for_numbers_of_a_computer_are_names(tmp_path):
    """As serial numbers of devices and ids of nodes are: their nearest floating-point numbers are the same."""
    first, second = 11023987451233019281, 11023987451233019282
    text = f"client,t_s,rate_bps\n{first},0,1\n{first},1,1\n{second},0,5\n{second},1,5\n"
    assert owned(table(tmp_path, text), 2, "any").client.tolist() == [0, 0, 1, 1]
    rates = RateFile(path=str(tmp_path / "t.csv"), time="t_s", trace="client")
    assert rates.read().rate_bps.tolist() == [1, 1, 0, 5, 5, 0]
    with pytest.raises(DataError, match="client, row 2: 'b' is not allowed; allowed: whole numbers from 0 in all rows"):
        owned(table(tmp_path, f"client\n{first}\nb\n{second}\n"), 2, "any")


def test_each_reader_of_a_run_goes_by_the_same_names(tmp_path):
    """Names in another order in each table: positions, ways, presence and values are those of the same clients."""
    (tmp_path / "places.csv").write_text("id,x_m,y_m\nc,3,0\na,1,0\nb,2,0\n")
    (tmp_path / "walks.csv").write_text("client,time_s,x_m,y_m\na,0,10,0\nb,0,20,0\nc,0,30,0\n")
    (tmp_path / "there.csv").write_text("client,start_s,end_s\nb,5,6\na,0,9\nc,7,8\n")
    (tmp_path / "values.csv").write_text("DEVICE,v\nb,200\nc,300\na,100\n")
    with reading():
        places = FromFile(path=str(tmp_path / "places.csv")).positions(3, Streams(0))
        movement = Trace(path=str(tmp_path / "walks.csv")).of_clients(3)
        there = Traces(path=str(tmp_path / "there.csv"), period_s=10.0).build(RunSetup(3, Streams(0)))
        values = Column(column="v", path=str(tmp_path / "values.csv")).values(3, Streams(0), "a.v")
    assert places[:, 0].tolist() == [3, 1, 2]
    assert [next(movement(client, (0.0, 0.0))).place_m[0] for client in range(3)] == [30, 10, 20]
    assert [there.available(np.arange(3), time_s, 1).tolist() for time_s in (5.5, 7.5)] == [
        [False, True, True],
        [True, True, False],
    ]
    assert values.tolist() == [300, 100, 200]


def test_speeds_and_rates_of_clients_are_those_of_their_ids(tmp_path):
    """Without ids of clients a law draws devices; with a column of clients each has its own rows."""
    path = tmp_path / "speeds.csv"
    path.write_text("Client,computation,communication\n1,10,100\n0,20,200\n2,30,300\n")
    both = [capacity_of(path, "a", "computation", mapping, 3, Streams(0)) for mapping in (None, "id", "sequential")]
    assert [found.tolist() for found in both] == [[20, 10, 30], [20, 10, 30], [10, 20, 30]]
    with pytest.raises(DataError, match="no row of client 3; the ids in it are 0, 1, 2"):
        capacity_of(path, "a", "communication", None, 4, Streams(0))
    path = tmp_path / "rates.csv"
    path.write_text("time_s,ID,rate_bps\n0,b,1\n0,a,10\n1,b,3\n1,a,30\n0,c,5\n1,c,-\n2,c,5\n")
    with reading() as run:
        rates, trace = RateFile(path=str(path), time="time_s", after="repeat").of_clients("a", 3, None, Streams(0))
    assert rates.mean_bps[trace].tolist() == [2, 20, 5]
    assert [note.partition(".csv: ")[2] for note in run.notes] == [
        "clients 0, 1, ... are b, a, c",
        "1 rows not used: a value is missing",
    ]
    with pytest.raises(DataError, match="no row of client 3; the ids in it are b, a, c, and"):
        RateFile(path=str(path), time="time_s").of_clients("a", 4, None, Streams(0))
    path.write_text("time_s,client,rate_bps\n0,0,1\n1,0,3\n0,1,-\n1,1,-\n")
    with pytest.raises(DataError, match="1 clients have rows without any rate"):
        RateFile(path=str(path), time="time_s").of_clients("a", 2, None, Streams(0))


def test_points_of_other_clients_do_not_leave_clients_at_their_placements():
    def places(*ids):
        with reading() as run:
            ways = Trace(points=[(client, 0.0, 3000.0, 0.0) for client in ids]).of_clients(2)
        return [next(ways(client, (1.0, 0.0))).place_m[0] for client in (0, 1)], "".join(run.notes)

    assert places(0, 1) == ([3000.0, 3000.0], "")
    for ids in ([1, 2], [10, 11]):
        with pytest.raises(DataError, match=r"mobility.*no row of client 0; the ids in it are"):
            places(*ids)
    assert places(1) == ([1.0, 3000.0], "network.mobility.points: 1 of 2 clients have no row (0)")
