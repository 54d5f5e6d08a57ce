"""What clients declare of their data beside updates, where a selector asks for it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.learning.sizes import Sizes
from fedsim.privacy import ExactHistograms, Privacy
from fedsim.privacy.label_histograms import LABEL_HISTOGRAM, released_histograms
from fedsim.selectors import SelectorInfo
from fedsim.streams import Streams


@dataclass(frozen=True)
class DeclaredLabels:
    """The shares of labels that clients have declared before the first round, shape (K, labels)."""

    shares: FloatArray
    epsilon: float

    @classmethod
    def of(cls, learner: Sizes, streams: Streams, privacy: Privacy | None) -> Self | None:
        """Return what the clients of a run declare; None without labels.

        The noise of client k is drawn from the stream ``("label-histogram", k)``.
        """
        counts = learner.label_counts
        if counts is None:
            return None
        part = LABEL_HISTOGRAM.checked(ExactHistograms() if privacy is None else privacy.label_histograms)
        epsilon = 0.0
        if privacy is not None:
            total = float(privacy.budget.total)
            epsilon = float(part.cost(total))
            if not epsilon < total:
                share = "; a budget without an end has no tenth, state an epsilon" if math.isinf(total) else ""
                raise ScenarioError(
                    f"privacy.label_histograms: a cost of {epsilon!r} epsilon is not allowed; it must be below the "
                    f"budget of {total!r}{share}"
                )
        generators = (streams.generator("label-histogram", client) for client in range(len(counts)))
        return cls(released_histograms(part, counts, epsilon, generators), epsilon)

    def columns(self) -> dict[str, Callable[[IntArray, float], FloatArray]]:
        return {"label_histogram": lambda client, _: self.shares[client]}


def reserved_for_sizes(selector: SelectorInfo, privacy: Privacy, rounds: int) -> float:
    """Return the most epsilon that it costs a client to state the number of its samples, in a run."""
    most = selector.sizes_cost * (1 if selector.sizes_paid_once else rounds)
    total = float(privacy.budget.total)
    if most and not most < total:
        raise ScenarioError(
            f"selector: {selector.name} asks for numbers of samples, and that may cost a client {most:g} epsilon "
            f"({selector.sizes_cost:g} an answer); the budget of privacy is {total:g}; allowed: a larger budget, a "
            "smaller epsilon, query = 'once' or anonymous = true"
        )
    return most
