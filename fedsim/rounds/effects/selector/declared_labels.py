"""Clients declare shares of labels before the first round, where a selector uses them."""

import math
from collections.abc import Mapping
from typing import Self

from fedsim.arrays import FloatArray
from fedsim.errors import ScenarioError
from fedsim.learning.sizes import Sizes
from fedsim.privacy import ExactHistograms, Privacy
from fedsim.privacy.label_histograms import LABEL_HISTOGRAM, released_histograms
from fedsim.rounds.effects.contract import BesidePhases, Shown
from fedsim.streams import Streams


class DeclaredLabels(BesidePhases):
    """Shares of labels as they are declared, shape (K, labels), and what that has cost each client."""

    def __init__(self, shares: FloatArray, epsilon: float) -> None:
        self._shares, self.epsilon = shares, epsilon

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

    def shows(self) -> Mapping[str, Shown]:
        return {"label_histogram": lambda client, _: self._shares[client]}
