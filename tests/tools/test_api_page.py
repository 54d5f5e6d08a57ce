"""The page of public names shows them as they are."""

import re

import fedsim
from tests.support.public_names import DOORS
from tests.tools.api_page import PAGE, entries, first_sentence, page, short


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "python tests/tools/api_page.py --write"


def test_it_has_every_door_and_every_name_of_fedsim():
    text = PAGE.read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(DOORS)
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) >= set(fedsim.__all__)


def test_its_parts_are_read_from_docstrings():
    assert first_sentence("Return ``a`` of 3.5 s.\nMore.\n\nNext.") == "Return `a` of 3.5 s."
    assert entries("a, b : two\n    numbers, ``x | y``\nc : one") == (
        "| `a, b` | two numbers, `x \\| y` |\n| `c` | one |\n"
    )
    assert [short(default) for default in (1, "a", None, object(), "x" * 30)] == ["1", "'a'", "None", "...", "..."]
