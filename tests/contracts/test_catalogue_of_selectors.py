"""Every selector of the catalogue keeps the contract."""

import pytest

from fedsim.selectors import SELECTORS
from fedsim.testing import check_selector
from tests.support.options import SELECTOR_OPTIONS

CASES = [
    (kind, options) for kind in sorted(SELECTORS.builtin) for options in SELECTOR_OPTIONS.get(kind, [{"cohort": 5}])
]


def build(kind, options):
    taken = {name: value for name, value in options.items() if name in SELECTORS.option_names(kind)}
    return SELECTORS.make_recipe({"kind": kind, **taken}).build()


@pytest.mark.parametrize(("kind", "options"), CASES, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(CASES)])
def test_selector_keeps_the_contract(kind, options):
    check_selector(build(kind, options), seed=1)
    check_selector(lambda: build(kind, options), clients=7, rounds=12, seed=2)
