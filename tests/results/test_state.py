"""The state of a run is believed only as it was written."""

import json

import pytest

from fedsim.errors import RunError
from fedsim.history.schema import FORMAT_VERSION
from fedsim.results.state import RunState, TableState, read_state, seal, write_state

STATE = RunState(
    format=FORMAT_VERSION,
    name="a \u2014 name",
    digest="0" * 64,
    status="running",
    rounds=2,
    tables={"rounds": TableState(rows=2, stored=3, bytes=400, crc32=5)},
    versions={"numpy": "2.0"},
)


def test_what_is_written_is_read_and_a_change_is_refused(tmp_path):
    write_state(tmp_path, STATE)
    assert read_state(tmp_path) == STATE
    file = tmp_path / "run.json"
    file.write_text(file.read_text().replace('"rounds": 2', '"rounds": 3'))
    with pytest.raises(RunError, match=r"run\.json: is damaged: its checksum"):
        read_state(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "7"),
        ("format", 7.0),
        ("format", True),
        ("format", None),
        ("name", 3),
        ("status", "done"),
        ("rounds", -1),
        ("rounds", "2"),
        ("rounds", 2.5),
        ("tables", []),
        ("tables", {"rounds": 3}),
        ("tables", {"rounds": {"rows": True}}),
        ("error", "no"),
        ("executor", "sequential"),
        ("written", {"a": 1}),
    ],
)
def test_values_of_another_type_are_refused_by_name(name, value, tmp_path):
    """The checksum fits: the file was not damaged, but written by something else."""
    values = {**STATE.model_dump(mode="json"), name: value}
    (tmp_path / "run.json").write_text(json.dumps({**values, "checksum": seal(values)}))
    with pytest.raises(RunError, match=rf"run\.json: is damaged: {name}"):
        read_state(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "3", '{"name": "a"}', "\0"])
def test_a_file_that_is_no_state_is_refused(text, tmp_path):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match=r"holds no run|is not the state of a run"):
        read_state(tmp_path)


def test_a_folder_of_a_study_is_named(tmp_path):
    (tmp_path / "study.toml").touch()
    with pytest.raises(RunError, match="it holds a study: fedsim compare"):
        read_state(tmp_path)
