"""Each kind of part that users write has a page: an example of at most 20 lines, its use, and its check.

That the blocks of a page run is tested by `tests/test_pages.py`.
"""

import re

import pytest

from fedsim import testing
from tests.support.pages import ROOT, blocks

FOLDER = ROOT / "fedsim" / "testing" / "own_parts"
INDEX = ROOT / "fedsim" / "testing" / "README.md"
KINDS = sorted(path.stem for path in FOLDER.glob("*.md"))
every_kind = pytest.mark.parametrize("kind", KINDS)


def of(kind, language):
    return [block for block in blocks(FOLDER / f"{kind}.md") if block.language == language]


def examples(kind):
    """The blocks that are a file of the user's."""
    return [block for block in of(kind, "python") if block.file is not None]


def test_the_index_names_every_page():
    assert sorted(set(re.findall(r"\(own_parts/(\w+)\.md\)", INDEX.read_text()))) == KINDS
    assert len(KINDS) >= 14


@every_kind
def test_an_example_has_at_most_20_lines(kind):
    """Lines of code and of its docstring; empty lines do not count, and neither does the name of the file."""
    for block in examples(kind):
        lines = [line for line in block.text.splitlines()[1:] if line.strip()]
        assert 5 <= len(lines) <= 20, block.place
        assert '"""' in block.text, f"{block.place}: an example says what its idea is"


@every_kind
def test_an_example_is_named_by_its_place_and_checked(kind):
    code = "\n".join(block.text for block in of(kind, "python") if block.file is None)
    named = code + "\n".join(block.text for block in (*of(kind, "toml"), *of(kind, "console")))
    assert "simulate(" in code
    for block in examples(kind):
        module, classes = block.file.removesuffix(".py"), re.findall(r"^class (\w+)", block.text, re.MULTILINE)
        assert any(f"{module}:{name}" in named for name in classes), block.place
        assert any(re.search(rf"check_\w+\({name}\b", code) for name in classes), block.place
    assert set(re.findall(r"\bcheck_\w+", code)) <= set(testing.__all__)


def test_the_index_names_every_check():
    assert set(re.findall(r"`(check_\w+)`", INDEX.read_text())) == set(testing.__all__)
