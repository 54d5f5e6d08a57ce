"""Rows that no table can hold do not take the rows before them along."""

import sys
from itertools import count

import numpy as np
import pytest

from fedsim.errors import RunError
from fedsim.history.recorder import Recorder
from fedsim.history.schema import PARTICIPATIONS

DOUBTFUL = 2**31
"""The least number that a column of 32 bits cannot hold."""


def participations(draws):
    """Return the columns of as many participations as numbers of draws; every other column is the client's index."""
    client = np.arange(len(draws))
    columns = {column.name: client for column in PARTICIPATIONS.columns}
    return columns | {"draws": np.array(draws), "outcome": client * 0, "cut_in": 0, "fate": 0}


def recorded(*pieces):
    recorder = Recorder("test")
    for draws in pieces:
        recorder.add_columns("participations", **participations(draws))
    return recorder


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [([[1, 2], [3], [4, DOUBTFUL, 5], [6]], [1, 2, 3, 4]), ([[DOUBTFUL]], []), ([[1], [DOUBTFUL, DOUBTFUL]], [1])],
)
def test_rows_before_one_that_no_table_holds_are_kept(pieces, kept):
    recorder = recorded(*pieces)
    message = (
        f"draws is given {DOUBTFUL}, which int32 cannot hold; the {len(kept)} rows of the table participations before"
    )
    with pytest.raises(RunError, match=message):
        recorder.flush()
    assert recorder.counts()["participations"] == len(kept)
    assert recorder.history().participations["draws"].to_pylist() == kept


def test_rows_after_them_follow_those_that_are_kept():
    recorder = recorded([1, 2], [DOUBTFUL, 3])
    with pytest.raises(RunError):
        recorder.flush()
    recorder.add_columns("participations", **participations([7]))
    assert recorder.history().participations["draws"].to_pylist() == [1, 2, 7]


def test_a_history_that_is_read_again_has_the_rows_since():
    recorder = recorded([1, 2])
    assert recorder.history().participations["draws"].to_pylist() == [1, 2]
    recorder.add_columns("participations", **participations([3]))
    assert recorder.history().participations["draws"].to_pylist() == [1, 2, 3]
    recorder.flush()
    recorder.add_columns("participations", **participations([4]))
    for _ in range(2):
        assert recorder.history().participations["draws"].to_pylist() == [1, 2, 3, 4]


def interrupted_at(line, work):
    """Do some work, and end it before the given one of its lines; return whether it has so many."""
    lines = count(1)

    def trace(frame, event, _):
        if event == "line" and next(lines) == line:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_leaves_no_column_shorter_than_another():
    for line in count(1):
        recorder = recorded([1, 2])
        columns = participations([3, 4])
        if not interrupted_at(line, lambda to=recorder, of=columns: to.add_columns("participations", **of)):
            break
        recorder.add_columns("participations", **participations([5]))
        table = recorder.history().participations
        rows = list(
            zip(table["draws"].to_pylist(), table["client"].to_pylist(), table["end_s"].to_pylist(), strict=True)
        )
        assert rows in ([(1, 0, 0), (2, 1, 1), (5, 0, 0)], [(1, 0, 0), (2, 1, 1), (3, 0, 0), (4, 1, 1), (5, 0, 0)])
    assert line > 5
