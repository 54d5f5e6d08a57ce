"""The page of public names shows them as they are."""

import re

import fedsim
from tests.support.public_names import DOORS
from tests.tools.api_page import PAGE, page


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "python tests/tools/api_page.py --write"


def test_it_has_every_door_and_every_name_of_fedsim():
    text = PAGE.read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(DOORS)
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) >= set(fedsim.__all__)
