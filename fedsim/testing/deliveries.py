"""Check that a selector does not go on asking clients that never deliver."""

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.stats import hypergeom

from fedsim.selectors import Selector
from fedsim.testing.server import Server, Trial

_NAME: Final = "a crowd of which half never delivers"
_SPREAD: Final = 4.0
"""Standard deviations above the number that uniform cohorts would leave empty."""


def refuse_stalling(fresh: Callable[[], Selector], clients: int, rounds: int, seed: int) -> None:
    """Check the rounds without a delivery in a crowd of which half never delivers, chosen at random.

    In the last two thirds of the rounds there must not be many more than uniform cohorts of the same sizes would leave
    (by the hypergeometric law), unless the selector's attribute ``may_stall`` says why.
    """
    trial = Trial(_NAME, clients, delivering=1.0, answering=1.0, silent=0.5, features=4)
    server = Server(trial, seed, fresh())
    if server.selector.may_stall:
        return
    cohorts = [answered.cohort.client for answered in server.run(rounds)][rounds // 3 :]
    sizes = np.array([cohort.size for cohort in cohorts])
    chance = np.asarray(hypergeom.pmf(sizes, clients, int(server.silent.sum()), sizes))
    expected, spread = float(chance.sum()), float(np.sqrt((chance * (1 - chance)).sum()))
    empty = sum(bool(server.silent[cohort].all()) for cohort in cohorts)
    server.place = f"in the trial with {_NAME}"
    server.law(
        empty <= expected + _SPREAD * spread + 1.0,
        f"select left {empty} of the last {len(cohorts)} rounds without a delivery, where uniform cohorts of the same "
        f"sizes leave {expected:.1f}; a client that never delivered is not one that was never tried, or the attribute "
        "may_stall says why",
    )
