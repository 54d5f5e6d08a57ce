"""Rows that no table can hold do not take the rows before them with them."""

import numpy as np
import pyarrow as pa
import pytest

from fedsim.errors import RunError
from fedsim.history import Recorder
from fedsim.history.schema import PARTICIPATIONS


def test_rows_before_a_bad_one_are_kept():
    """Three pieces of two rows; the second has draws of 2^62, which the column of 32 bits cannot hold."""
    recorder = Recorder("test")
    zeros = {column.name: np.zeros(2) for column in PARTICIPATIONS.columns if pa.types.is_floating(column.type)}
    codes = {column.name: np.zeros(2, dtype=np.int64) for column in PARTICIPATIONS.columns if column.name not in zeros}
    for draws in (1, 2**62, 1):
        recorder.add_participations(**{**zeros, **codes, "draws": np.full(2, draws)})
    with pytest.raises(RunError, match=r"rows of the table participations cannot be kept: .*; the 2 rows before them"):
        recorder.history()
    assert recorder.counts()["participations"] == 2
    assert recorder.history().column("participations", "draws").tolist() == [1, 1]
