"""The rule which models stay."""

import pytest

from fedsim.errors import FedsimError
from fedsim.learning.lineage.known import Keeping


@pytest.mark.parametrize(
    ("text", "stay"), [("all", [0, 1, 2, 3, 4, 5, 6]), ("last", []), ("every 1", range(7)), ("every 3", [0, 3, 6])]
)
def test_superseded_models_that_stay(text, stay):
    rule = Keeping.parse(text)
    assert [version for version in range(7) if rule.stays(version)] == list(stay)
    assert Keeping.parse(str(rule)) == rule
    assert (rule == Keeping()) == (text in {"all", "every 1"}), "every model stays by default"


@pytest.mark.parametrize("text", ["", "none", "every", "every 0", "every -1", "every 1.5", "All", "every 2 "])
def test_other_texts_are_refused(text):
    with pytest.raises(FedsimError, match=r"keep-models: .* is not allowed; it must be all, last or every N"):
        Keeping.parse(text)
    with pytest.raises(FedsimError, match="keep-models: every 0 is not allowed"):
        Keeping(0)
