"""Every selector of the catalogue, with several sets of options, chooses and asks as it did yesterday."""

import numpy as np
import pytest

from fedsim.selectors import SELECTORS
from fedsim.testing.server import AsynchronousServer, Server, Trial
from tests.golden import freeze
from tests.support.frozen_answers import check_frozen
from tests.support.options import SELECTOR_OPTIONS

CASES = {
    f"{kind} {number}": freeze.selector(kind, options)
    for kind in sorted(SELECTORS.builtin)
    for number, options in enumerate(freeze.SELECTORS.get(kind, SELECTOR_OPTIONS.get(kind, [{}])))
}
TRIALS = (
    (Server, Trial("some are away", 11, present=0.8, features=3), 10),
    (Server, Trial("without privacy, few or many", 14, budget=None, features=3, wanted=(None, 2, 6)), 5),
    (AsynchronousServer, Trial("one by one", 11, features=3, wanted=(1,), asynchronous=True), 10),
)


def shown(answer):
    """Return a cohort and the question before it, without what a method leaves out."""
    parts = [{} if part is None else vars(part) for part in (answer.probe, answer.cohort)]
    return [{name: value for name, value in part.items() if value is not None} for part in parts]


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_selector_chooses_as_before(case):
    found = []
    for server, trial, rounds in TRIALS:
        made = SELECTORS.make_recipe(CASES[case]).build()
        found.append([shown(answer) for answer in server(trial, 5, made).run(rounds)])
    assert any(np.size(answer[1]["client"]) for answer in found[0])
    check_frozen("cohorts", case, found)
