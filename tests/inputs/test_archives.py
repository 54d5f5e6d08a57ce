"""NPZ files, sound and damaged: each ends in arrays or in a sentence."""

import io
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from fedsim.errors import DataError
from fedsim.inputs.archives import MAX_UNPACKED_BYTES, read_npz
from tests.support.random_texts import damaged
from tests.support.seeded_draws import Seeded

COLUMNS = {
    "offset": np.array([0, 2, 3]),
    "start_s": np.array([0.0, 5.0, 1.0]),
    "end_s": np.array([2.0, 6.0, 9.0]),
    "device": np.array(["a", "b"]),
}


def written(path, compressed, columns=COLUMNS):
    (np.savez_compressed if compressed else np.savez)(path, **columns)
    return path.read_bytes()


@given(
    hnp.arrays(st.sampled_from(["f8", "i4", "u1", "?", ">f4", "U3"]), hnp.array_shapes(max_dims=3), fill=st.nothing())
)
def test_arrays_come_out_as_numpy_reads_them(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    np.savez(path, a=array, b=np.asfortranarray(array))
    found = read_npz(path)
    with np.load(path) as oracle:
        for name in ("a", "b"):
            np.testing.assert_array_equal(found[name], oracle[name])
            assert found[name].dtype == oracle[name].dtype


@pytest.mark.parametrize(
    ("count", "first", "least"), [(60, 0, 40), pytest.param(1200, 1000, 900, marks=pytest.mark.slow)]
)
def test_damaged_files_end_in_a_sentence(count, first, least, tmp_path):
    refused, path = 0, tmp_path / "damaged.npz"
    contents = [written(tmp_path / "sound.npz", compressed) for compressed in (False, True)]
    for number in range(first, first + count):
        path.write_bytes(damaged(Seeded(number), contents[number % 2]))
        try:
            read_npz(path)
        except DataError as error:
            refused += str(error).startswith(str(path))
    assert refused > least


def npy(descr="<f8", shape="(3,)", numbers=24, version=b"\x01\x00"):
    """Return a member of an archive by hand: a header that claims something, and numbers of some length."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}}}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + bytes(numbers)


def archive(path, member, method=zipfile.ZIP_STORED, name="a.npy"):
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr(name, member)
    return path


CLAIMS = {
    "as it is": (npy(), None),
    "10^12 numbers": (npy(shape="(1000000000000,)"), r"'a.npy' claims float64 of shape \(1.*,\), 8000000000000"),
    "a shape whose product passes 64 bits": (npy(shape="(4294967296, 4294967296, 4)"), "claims float64"),
    "fewer numbers": (npy(shape="(2,)"), "holds 24 bytes"),
    "a length below 0": (npy(shape="(-3,)"), "lengths of at least 0"),
    "objects": (npy(descr="|O"), "arrays of objects are pickles"),
    "no bytes each": (npy(descr="|S0"), "allowed: numbers and texts"),
    "a type that is none": (npy(descr="<zz"), "is damaged or no NPZ file"),
    "a newer version": (npy(version=b"\x07\x00"), r"version \(7, 0\)"),
    "a header of 3,000 brackets": (npy(shape="[" * 3000), "damaged"),
    "no array": (b"hello", "damaged"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_are_checked_before_room_is_made(claim, tmp_path):
    member, words = CLAIMS[claim]
    path = archive(tmp_path / "a.npz", member)
    if words is None:
        assert read_npz(path)["a"].tolist() == [0.0, 0.0, 0.0]
        return
    with pytest.raises(DataError, match=words):
        read_npz(path)


def test_bombs_and_other_methods_are_refused(tmp_path):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.npy", npy())
    content = bytearray(bomb.getvalue())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", MAX_UNPACKED_BYTES + 1)
    (tmp_path / "bomb.npz").write_bytes(content)
    with pytest.raises(DataError, match="its arrays would take 1073741825 bytes"):
        read_npz(tmp_path / "bomb.npz")
    with pytest.raises(DataError, match="compressed by method 12"):
        read_npz(archive(tmp_path / "bz2.npz", npy(), zipfile.ZIP_BZIP2))
