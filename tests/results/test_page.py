"""The page of the run folder shows the columns that runs have."""

from pathlib import Path

import fedsim.results
from fedsim.history.schema import columns_page


def test_the_tables_of_columns_are_current():
    page = (Path(fedsim.results.__file__).parent / "README.md").read_text()
    assert columns_page().rstrip() in page, "print(columns_page()) gives what belongs at the end of the page"
