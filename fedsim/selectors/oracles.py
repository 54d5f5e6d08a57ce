"""Oracles of duration: the fastest clients in expectation, and the fastest ones of the round that begins."""

import numpy as np

from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, OracleView, RoundView
from fedsim.selectors.sampling import CohortSelector, lowest


class Fastest(CohortSelector):
    """Take the candidates of least expected duration: an oracle, for comparison only.

    No server knows these means in advance. The same clients take part in every round in which they are candidates:
    their privacy budgets drain, and the data of all other clients are not used.

    Examples
    --------
    >>> from fedsim import Testbed
    >>> with Testbed("scenarios/testbed/cell.toml") as testbed:
    ...     known = testbed.view()
    >>> oracle = OracleView(**vars(known), expected_duration_s=np.linspace(4.0, 0.1, 40))
    >>> Fastest(cohort=3).select(oracle, np.random.default_rng(0)).client.tolist()
    [37, 38, 39]
    >>> Fastest(cohort=3).select(known, np.random.default_rng(0))
    Traceback (most recent call last):
        ...
    fedsim.errors.SelectorError: Fastest is an oracle: it needs a view with expected_duration_s
    """

    paper = (
        "Peleg et al., PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated Learning, "
        'section V-A, "fastest in expectation"'
    )
    oracle = True

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        if not isinstance(view, OracleView):
            raise SelectorError("Fastest is an oracle: it needs a view with expected_duration_s")
        first = np.argsort(view.expected_duration_s, kind="stable")[: self.cohort_size(view)]
        return Cohort(np.sort(view.client[first]))


class Soonest(CohortSelector):
    """Take the m candidates of least duration in the round that begins: an oracle.

    No server knows this round's fading, jitter and load. With dedicated bandwidth no cohort of m makes a shorter
    round. Over a shared medium the durations are those of each client alone, and another cohort may be better.
    """

    paper = "fedsim's own lower bound of the round time; no paper"
    oracle = True

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        if not isinstance(view, OracleView) or view.coming_duration_s is None:
            raise SelectorError("Soonest is an oracle: it needs a view with coming_duration_s")
        size = self.cohort_size(view)
        return Cohort(np.sort(view.client[lowest(view.coming_duration_s(), size, rng)]))
