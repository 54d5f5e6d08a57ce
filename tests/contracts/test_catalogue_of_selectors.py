"""Every selector of the catalogue keeps the contract."""

import pytest

from fedsim.selectors import SELECTORS
from fedsim.testing import check_selector
from tests.golden.scenarios import ALL_SELECTORS, selector
from tests.support.families import first_kinds

# Joint bandwidth solves a problem of convex optimisation in each round, which takes seconds.
FIRST = [kind for kind in first_kinds(SELECTORS) if kind != "joint-bandwidth"]
# Beside the options of the frozen scenarios.
MORE = {
    "divfl": [{"cohort": 6, "start": "zero", "subset": 7, "refresh_every": 5}],
    "fedsuv": [{"undelivered": "mean", "batch": "hallucinated"}, {"undelivered": "nothing", "fit": "none"}],
    "pow-d": [{"cohort": 5, "candidates": 1}],
    "tifl": [{"interval": 3, "evaluation": "probe", "improvement": "absolute"}],
    "uniform": [{"cohort": 1000}],
    "weighted": [{"cohort": 1000, "weights": "samples"}],
}
# The first options of a kind of each family by default, the others in the slow tier.
CASES = [
    pytest.param(kind, options, id=f"{kind}-{i}", marks=[pytest.mark.slow] if i or kind not in FIRST else [])
    for kind in sorted(SELECTORS.builtin)
    for i, options in enumerate([*ALL_SELECTORS.get(kind, [{}]), *MORE.get(kind, [])])
]


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_selector_keeps_the_contract(kind, options):
    check_selector(SELECTORS.make(selector(kind, options)).build, clients=7, rounds=4, seed=2)
