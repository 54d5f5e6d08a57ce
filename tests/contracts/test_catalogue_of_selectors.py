"""Every selector of the catalogue keeps the contract."""

import pytest

from fedsim.selectors import SELECTORS
from fedsim.testing import check_selector
from tests.support.families import first_kinds
from tests.support.options import SELECTOR_OPTIONS

# Joint bandwidth solves a problem of convex optimisation in each round, which takes seconds.
FIRST = [kind for kind in first_kinds(SELECTORS) if kind != "joint-bandwidth"]
# The first options of a kind of each family by default, the others in the slow tier.
CASES = [
    pytest.param(kind, options, id=f"{kind}-{i}", marks=[pytest.mark.slow] if i or kind not in FIRST else [])
    for kind in sorted(SELECTORS.builtin)
    for i, options in enumerate(SELECTOR_OPTIONS.get(kind, [{"cohort": 5}]))
]


def build(kind, options):
    taken = {name: value for name, value in options.items() if name in SELECTORS.option_names(kind)}
    return SELECTORS.make_recipe({"kind": kind, **taken}).build()


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_selector_keeps_the_contract(kind, options):
    check_selector(lambda: build(kind, options), clients=7, rounds=12, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", first_kinds(SELECTORS))
def test_selector_keeps_the_contract_in_the_usual_crowd(kind):
    check_selector(build(kind, SELECTOR_OPTIONS.get(kind, [{"cohort": 5}])[0]), seed=1)
