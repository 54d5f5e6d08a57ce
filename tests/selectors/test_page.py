"""The page of the selectors shows the catalogue as it is."""

from tests.tools.selectors_table import PAGE, with_table


def test_the_table_of_selectors_is_current():
    page = PAGE.read_text()
    assert page == with_table(page), "python tests/tools/selectors_table.py --write"
