"""Files of arrays: whole or missing, believed only with the right checksum, and no litter."""

import os
import subprocess
import sys

import numpy as np
import pytest

from fedsim.learning.store.objects import DamagedError, Objects

DIGEST = "ab" * 16
ARRAYS = {"model": np.arange(5, dtype=np.float32), "state/step": np.array(3, dtype=np.int64)}


@pytest.fixture
def objects(tmp_path):
    return Objects(tmp_path / "objects")


def test_a_file_is_safetensors_under_its_digest(objects, tmp_path):
    from safetensors.numpy import load_file

    size_bytes = objects.write(DIGEST, ARRAYS)
    path = tmp_path / "objects" / "ab" / f"{DIGEST}.safetensors"
    assert path.stat().st_size == size_bytes
    assert [*objects.files()] == [(DIGEST, size_bytes, path.stat().st_mtime)]
    np.testing.assert_array_equal(load_file(path)["model"], ARRAYS["model"])
    objects.remove(DIGEST)
    objects.remove(DIGEST)
    assert objects.read(DIGEST) is None
    assert [*objects.files()] == []


def believed(objects):
    try:
        return objects.read(DIGEST)
    except DamagedError:
        return None


def test_no_flipped_bit_is_believed(objects):
    objects.write(DIGEST, ARRAYS)
    path = objects.path(DIGEST)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 7]) + content[place + 1 :])
        if (found := believed(objects)) is not None:  # a space between two parts of the header may be another one
            assert {name: values.tobytes() for name, values in found.items()} == {
                name: values.tobytes() for name, values in ARRAYS.items()
            }
            assert content[place] == ord(" ")


@pytest.mark.parametrize("change", [lambda c: c[:-1], lambda c: c[: len(c) // 2], lambda c: c[:0], lambda c: c + b"\0"])
def test_no_file_of_another_length_is_believed(objects, change):
    objects.write(DIGEST, ARRAYS)
    path = objects.path(DIGEST)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DamagedError):
        objects.read(DIGEST)


def test_nothing_else_in_the_place_of_a_file_is_believed(objects):
    objects.write(DIGEST, ARRAYS)
    other = "ab" + "0" * 30
    objects.path(DIGEST).rename(objects.path(other))
    with pytest.raises(DamagedError, match="checksum"):
        objects.read(other)
    objects.path(DIGEST).mkdir()
    with pytest.raises(DamagedError):
        objects.read(DIGEST)


@pytest.mark.parametrize("digest", ["", "../a", "a/b", "a.b", "a b", "a" * 129, "."])
def test_digests_are_names_of_files(objects, digest):
    with pytest.raises(ValueError, match=r"digest: .* is not allowed"):
        objects.write(digest, ARRAYS)


def test_only_temporary_files_without_a_writer_are_removed(objects):
    objects.write(DIGEST, ARRAYS)
    folder = objects.path(DIGEST).parent
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    host = objects._host
    names = {
        "being written": f"{host}-{os.getpid()}-0a.tmp",
        "left by a kill": f"{host}-{gone.pid}-0b.tmp",
        "on another machine": f"other-{gone.pid}-0c.tmp",
        "old, on another machine": f"other-{gone.pid}-0d.tmp",
        "by the library": ".tmpAbC123",
        "old, by the library": ".tmpDeF456",
    }
    for what, name in names.items():
        (folder / name).write_bytes(b"half")
        if what.startswith("old"):
            os.utime(folder / name, (0, 0))
    assert objects.clean() == 3
    left = {path.name for path in folder.iterdir()} - {f"{DIGEST}.safetensors"}
    assert left == {names[what] for what in ("being written", "on another machine", "by the library")}


def test_a_failed_write_leaves_nothing(objects, monkeypatch):
    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fedsim.learning.store.objects.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        objects.write(DIGEST, ARRAYS)
    assert [*objects.path(DIGEST).parent.iterdir()] == []
