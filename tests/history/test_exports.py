"""Tables for other programs: metrics and labels in columns of their own, texts as texts."""

import csv
import sys
from dataclasses import replace

import pytest

from fedsim.errors import RunError
from fedsim.history import Recorder
from fedsim.history.schema import CLIENTS


def history():
    recorder = Recorder("exported")
    for number, metrics in enumerate([{"a,b": 0.5}, {"a,b": 0.25, "=c": 2.0}, None]):
        recorder.add_row(
            "evaluations", round=number, time_s=1.5 * number, model_version=number, loss=1.0, metrics=metrics
        )
    return recorder.history()


def test_each_metric_has_a_column(tmp_path):
    table = history().flat("evaluations")
    first = ["round", "time_s", "model_version", "accuracy", "loss", "metrics.=c", "metrics.a,b"]
    assert table.column_names == [*first, "model", "judged_on"]
    assert table.column("metrics.a,b").to_pylist() == [0.5, 0.25, None]
    history().write_csv("evaluations", tmp_path / "evaluations.csv")
    with (tmp_path / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["time_s"], row["accuracy"], row["metrics.a,b"], row["metrics.=c"]) for row in rows] == [
        ("0", "", "0.5", ""),
        ("1.5", "", "0.25", "2"),
        ("3", "", "", ""),
    ]


def test_each_label_has_a_column_and_texts_are_texts():
    recorder = Recorder("exported")
    table = recorder.history().participations
    assert recorder.history().flat("participations").column_names == table.column_names
    clients = CLIENTS.from_rows([{"client": 0, "labels": [3, 0, 1]}, {"client": 1, "labels": [2]}, {"client": 2}])
    flat = replace(recorder.history(), clients=clients).flat("clients")
    labels = [flat.column(f"labels.{label}").to_pylist() for label in range(3)]
    assert labels == [[3, 2, None], [0, None, None], [1, None, None]]


def test_what_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RunError, match=r"pip install 'fedsim-des\[pandas\]'"):
        history().to_pandas("evaluations")
    with pytest.raises(RunError, match="has no table 'probes'"):
        history().write_csv("probes", tmp_path / "probes.csv")
