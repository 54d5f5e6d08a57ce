"""Files are whole or not there, and a failure says whether to try again."""

import errno
from pathlib import Path

import pytest

from fedsim.errors import FolderGoneError, RunError, WriteError
from fedsim.whole_files import part_of, replace_file, whole_name


def test_parts_have_names_of_their_own(tmp_path):
    parts = {part_of(tmp_path / "run.json").name for _ in range(100)}
    assert len(parts) == 100
    assert {whole_name(part) for part in parts} == {"run.json"}
    assert len(part_of(tmp_path / ("a" * 255)).name) < 100, "no longer than a file system allows"


@pytest.mark.parametrize(
    "name", ["run.json", ".run.json.part", ".run.json.1-0123.part", "run.json.1-0123456789ab.part"]
)
def test_other_names_are_those_of_no_part(name):
    assert whole_name(name) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), ValueError("no")])
def test_what_was_there_stays_and_no_part_is_left(error, tmp_path):
    path = tmp_path / "file"
    replace_file(path, lambda part: part.write_text("before"))

    def fail(part):
        part.write_text("half")
        raise error

    with pytest.raises(type(error)):
        replace_file(path, fail)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, WriteError), (errno.EIO, WriteError), (errno.EACCES, RunError)]
)
def test_only_what_may_pass_is_tried_again(number, kind, tmp_path):
    def fail(_):
        raise OSError(number, "no")

    with pytest.raises(RunError, match="file: cannot be written: no") as caught:
        replace_file(tmp_path / "file", fail)
    assert type(caught.value) is kind


def test_a_folder_that_is_gone_is_told_apart(tmp_path):
    with pytest.raises(FolderGoneError, match="gone: the folder is not there, or no longer"):
        replace_file(tmp_path / "gone" / "file", lambda part: Path(part).write_text(""))
