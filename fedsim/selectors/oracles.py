"""The fastest in expectation: what a server would choose if it knew the mean times and cared for nothing else."""

import numpy as np

from fedsim.errors import SelectorError
from fedsim.selectors.contracts import Cohort, OracleView, PublishedSelector, RoundView, check_whole, cohort_size
from fedsim.selectors.sampling import lowest


class Fastest(PublishedSelector):
    """Take the candidates with the least expected duration: an oracle, for comparison only.

    No server knows these means in advance. The same clients are taken in every round in which they are
    candidates, so their privacy budgets drain and all other clients' data go unused.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    """

    paper = (
        "Peleg et al., PAUSE: Low-Latency and Privacy-Aware Active User Selection for Federated Learning, "
        'section V-A, "fastest in expectation"'
    )
    oracle = True

    def __init__(self, cohort: int) -> None:
        check_whole("cohort", cohort, lowest=1)
        self.cohort = cohort

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the ``cohort`` candidates of least expected duration, lower ids first among equals.

        Raises
        ------
        SelectorError
            If the view is that of a real server, without expected durations.
        """
        if not isinstance(view, OracleView):
            raise SelectorError("Fastest is an oracle: it needs a view with expected_duration_s")
        first = np.argsort(view.expected_duration_s, kind="stable")[: cohort_size(view, self.cohort)]
        return Cohort(np.sort(view.client[first]))


class Soonest(PublishedSelector):
    """Take the m candidates whose participation would take the least time if it started now.

    An oracle: no server knows this round's fading, jitter and load. With dedicated bandwidth no cohort of m makes a
    shorter round; over a shared medium durations are those of each client alone, and another cohort may be better.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    """

    paper = "fedsim's own lower bound of the round time; no paper"
    oracle = True

    def __init__(self, cohort: int) -> None:
        check_whole("cohort", cohort, lowest=1)
        self.cohort = cohort

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the m candidates of least coming duration, ties at random.

        Raises
        ------
        SelectorError
            If the view is that of a real server, without coming durations.
        """
        if not isinstance(view, OracleView) or view.coming_duration_s is None:
            raise SelectorError("Soonest is an oracle: it needs a view with coming_duration_s")
        size = cohort_size(view, self.cohort)
        return Cohort(np.sort(view.client[lowest(view.coming_duration_s(), size, rng)]))
