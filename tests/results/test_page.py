"""The page of the run folder shows the columns that runs have."""

from tests.tools.columns_table import PAGE, with_columns


def test_the_tables_of_columns_are_current():
    page = PAGE.read_text()
    assert page == with_columns(page), "python tests/tools/columns_table.py --write"
