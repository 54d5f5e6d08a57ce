"""One row of the schema describes a column whole, and what is recorded is checked against it."""

import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fedsim.errors import RunError
from fedsim.history import Recorder
from fedsim.history.column import Column
from fedsim.history.schema import FORMAT_VERSION, ROUNDS, TABLES
from fedsim.history.tables import Tables
from tests.tools.tables import columns

EVALUATION = {"round": 1, "time_s": 2.0, "model_version": 1, "accuracy": 0.5, "loss": 1.0}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({**EVALUATION, "acuracy": 0.5}, "evaluations has no column acuracy; its columns: round, time_s"),
        ({"round": 1, "time_s": 2.0}, "evaluations needs a value for model_version"),
        ({"round": 1, "losses": 2.0}, "has no column losses and needs a value for time_s"),
    ],
)
def test_a_row_that_does_not_fit_the_schema_is_refused_in_words(values, problem):
    with pytest.raises(RunError, match=problem):
        Recorder("hand").add_row("evaluations", **values)


def test_columns_that_may_be_null_can_be_left_out():
    recorder = Recorder("hand")
    recorder.add_row("evaluations", **EVALUATION)
    assert recorder.history().evaluations.column("judged_on").to_pylist() == [None]
    row = dict.fromkeys(("edge", "edge_rounds", "start_version"), 1)
    seconds = dict.fromkeys(
        ("start_s", "downlink_s", "uplink_s", "end_s", "downlink_bits", "uplink_bits", "weight"), 0.5
    )
    recorder.add_row("edge_participations", **row, **seconds)
    recorder.add_row("edge_participations", **row, **seconds, round=3, staleness=0)
    assert recorder.history().edge_participations.column("round").to_pylist() == [None, 3]
    probes = {
        **dict.fromkeys(("round", "client", "outcome"), np.zeros(2, dtype=np.int8)),
        **dict.fromkeys(("start_s", "downlink_s", "compute_s", "uplink_s", "queue_s", "end_s"), np.zeros(2)),
        **dict.fromkeys(("downlink_bits", "uplink_bits", "energy_j", "epsilon"), np.zeros(2)),
    }
    recorder.add_columns("probes", **probes)
    recorder.add_columns("probes", **probes, edge=np.array([4, -1]), cut_in=np.array([-1, 2], dtype=np.int8))
    table = recorder.history().probes
    assert table.column("edge").to_pylist() == [None, None, 4, None]
    assert table.column("cut_in").to_pylist() == [None, None, None, "uplink"]


def test_a_number_stands_for_a_column_of_one_value():
    recorders = [Recorder("hand"), Recorder("hand")]
    names = [column.name for column in TABLES["probes"].columns]
    for size, edge in ((2, 4), (3, np.array([-1, 0, 1])), (1, -1)):
        given = {**dict.fromkeys(names, 0), "client": np.arange(size), "round": size, "edge": edge, "start_s": 0.5}
        recorders[0].add_columns("probes", **given)
        recorders[1].add_columns(
            "probes", **{name: np.array(np.broadcast_to(value, size)) for name, value in given.items()}
        )
    short, long = (recorder.history().probes for recorder in recorders)
    assert short.equals(long)
    assert short.column("round").to_pylist() == [2, 2, 3, 3, 3, 1]
    assert short.column("edge").to_pylist() == [4, 4, None, 0, 1, None]


def test_lists_have_a_row_each_and_none_is_null():
    labels = next(column for column in TABLES["clients"].columns if column.name == "labels")
    assert labels.from_codes(np.array([[1, 0, 2], [0, 0, 3]])).to_pylist() == [[1, 0, 2], [0, 0, 3]]
    assert labels.from_codes(np.zeros((2, 0), dtype=np.int64)).to_pylist() == [[], []]
    assert labels.from_values([[4, 5], None, []]).to_pylist() == [[4, 5], None, []]
    with pytest.raises(RunError, match=r"labels is given 0\.5"):
        labels.from_codes(np.array([[0.5]]))


def test_every_column_is_described():
    page = columns()
    for table in TABLES.values():
        assert f"**`{table.name}`**" in page
        for column in table.columns:
            assert column.doc
            assert f"| `{column.name}` |" in page
            assert (column.name.endswith("_s") and "_per_" not in column.name) == (column.unit == "s")


def test_a_column_or_table_that_a_run_lacks_is_refused_in_words():
    empty = {name: TABLES[name].arrow.empty_table() for name in ("participations", "rounds", "evaluations")}
    tables = Tables("hand", **empty)
    with pytest.raises(RunError, match="hand: this run has no table 'probes'; it has participations, rounds"):
        tables.column("probes", "round")
    with pytest.raises(RunError, match="hand: rounds has no column 'latte'; its columns: round, start_s"):
        tables.column("rounds", "latte")
    assert list(ROUNDS.arrow.names) == tables.rounds.column_names


@given(st.lists(st.one_of(st.none(), st.integers(0, 2**31 - 1))), st.sampled_from([pa.int32(), pa.float64()]))
def test_values_become_the_array_that_arrow_makes_of_them(values, kind):
    column = Column("x", kind, "a number", null="never")
    expected = pa.array(values, kind)
    for found in (
        column.from_values(values),
        column.from_codes(np.array([-1 if one is None else one for one in values], dtype=np.int64))
        if kind == pa.int32()
        else column.from_codes(np.array([np.nan if one is None else one for one in values], dtype=np.float64)),
    ):
        found.validate(full=True)
        assert found.type == kind
        assert found.equals(expected)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 0.5])
def test_a_value_that_a_column_cannot_hold_is_refused(value):
    with pytest.raises(RunError, match=r"the column x is given .*, which int32 cannot hold"):
        Column("x", pa.int32(), "a number").from_codes(np.array([1, value]))


def test_other_columns_are_another_format():
    """Who changes a column raises `FORMAT_VERSION`, so that a folder with the columns of before is refused in words."""
    columns = [(table.name, column.name, str(column.type)) for table in TABLES.values() for column in table.columns]
    assert (FORMAT_VERSION, zlib.crc32(repr(columns).encode())) == (8, 964583691)
