"""Tables of pages show what the code knows."""

import pytest

from tests.tools.tables import PAGES, with_table


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_table_of_a_page_is_current(page):
    assert page.read_text() == with_table(page), "python tests/tools/tables.py --write"
