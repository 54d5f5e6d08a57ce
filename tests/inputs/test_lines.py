"""Long texts line by line, plain and packed."""

import gzip

import pytest

from fedsim.errors import DataError
from fedsim.inputs import lines
from fedsim.inputs.lines import read_lines

TEXT = "one\r\n\nthrée\nlast"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_have_no_ends_whether_packed_or_not(pack, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(pack(TEXT.encode()))
    assert list(read_lines(path, DataError)) == ["one", "", "thrée", "last"]


def test_what_is_too_long_unpacked_is_refused_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"aaaaaaaaa\n" * 10**5))
    found = read_lines(path, DataError, 2000)
    assert len([next(found) for _ in range(200)]) == 200
    with pytest.raises(DataError, match="bomb: cannot be read: it has more than 2000 bytes of text"):
        next(found)
    monkeypatch.setattr(lines, "LONGEST_LINE", 8)
    with pytest.raises(DataError, match="bomb: line 1 has more than 8 bytes"):
        next(read_lines(path, DataError))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(TEXT.encode(), mtime=0)[:-9], "text: cannot be read: "),
        (b"good\n\xff\n", "text: line 2 is not UTF-8 text"),
    ],
)
def test_damage_is_told_with_the_file(content, words, tmp_path):
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(DataError, match=words):
        list(read_lines(tmp_path / "text", DataError))
    with pytest.raises(DataError, match="does not exist"):
        list(read_lines(tmp_path / "nothing", DataError))
