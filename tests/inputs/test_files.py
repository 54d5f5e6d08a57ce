"""Only regular files are read, whole and up to a size."""

import os

import pytest

from fedsim.errors import DataError
from fedsim.inputs.files import check_file, check_path, read_bytes, read_text


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize(
    "read", [lambda path: read_bytes(path, 10, DataError), lambda path: check_file(path, 10, DataError)]
)
def test_pipes_devices_and_folders_are_refused_without_waiting(read, pipe, tmp_path):
    for path, words in {
        pipe: "a pipe or a device",
        "/dev/zero": "a pipe or a device",
        tmp_path: "it is a folder",
    }.items():
        with pytest.raises(DataError, match=words):
            read(path)


def test_a_file_is_read_up_to_its_limit(tmp_path):
    file = tmp_path / "ten"
    file.write_bytes(b"0123456789")
    assert read_bytes(file, 10, DataError) == b"0123456789"
    assert check_file(file, 10, DataError) == file
    with pytest.raises(DataError, match=r"it has 10 bytes; allowed: at most 9"):
        read_bytes(file, 9, DataError)


def test_missing_files_and_other_texts_are_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing: cannot be read: No such file"):
        read_text(tmp_path / "nothing", DataError)
    with pytest.raises(DataError, match="does not exist"):
        check_file(tmp_path / "nothing", 10, DataError)
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_text(tmp_path / "marked", DataError) == "a = 1"
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(DataError, match=r"here: cannot be read: it is not UTF-8 text"):
        read_text(tmp_path / "latin", DataError, "here")


@pytest.mark.parametrize(
    ("path", "words"),
    {
        "a\0b": "no null character",
        "a" * 300: "300 bytes is too long",
        "é" * 200: "400 bytes",
        "a/" * 3000: "4095",
    }.items(),
)
def test_paths_that_no_file_system_takes(path, words):
    with pytest.raises(DataError, match=words):
        check_path(path, DataError, "--out")
