"""adapow-d: power-of-choice with fewer and fewer candidates."""

from typing import Literal

import numpy as np

from fedsim.selectors.contracts import Probe, RoundView
from fedsim.selectors.power_of_choice import PAPER, PowD, Weights
from fedsim.selectors.validation import check_choice, check_whole_numbers
from fedsim.units import Bits, Seconds


class AdaPowD(PowD):
    """adapow-d: pow-d with fewer candidates in each round, from a first d down to m.

    Greedy choice is fast at first, and its bias hurts later. So the number of clients that report their loss falls from
    round to round until it is the size of the cohort; from then on no client is asked.

    Parameters
    ----------
    cohort, weights, up_bits, wait_s : as of `fedsim.selectors.power_of_choice.PowD`
    first : int >= 1 or None
        d in the first round; None for all clients, K.
    until : int >= 2
        Round from which on d = m.
    decay : ``"linear"`` or ``"geometric"``
        Whether d falls by equal differences or by equal ratios.

    Notes
    -----
    That d falls gradually to m is the paper's; its text was not at hand, and the form of the fall and the default of
    `until` are fedsim's.
    """

    paper = PAPER + "; the variant of decreasing d"
    communication = "a model down and a number up for d candidates, fewer in each round"

    def __init__(
        self,
        cohort: int,
        first: int | None = None,
        until: int = 100,
        decay: Literal["linear", "geometric"] = "linear",
        weights: Weights = "equal",
        up_bits: Bits = 32.0,
        wait_s: Seconds | None = None,
    ) -> None:
        super().__init__(cohort, None, weights, up_bits, wait_s)
        check_whole_numbers(1, optional=True, first=first)
        check_whole_numbers(2, until=until)
        check_choice("decay", decay, "linear", "geometric")
        self.first, self.until, self.decay = first, until, decay

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        self.candidates = self.asked(view)
        return super().probe(view, rng)

    def asked(self, view: RoundView) -> int:
        last = max(self.cohort_size(view), 1)
        first = max(view.clients if self.first is None else self.first, last)
        left = max(1.0 - (view.round - 1) / (self.until - 1), 0.0)
        d = last + (first - last) * left if self.decay == "linear" else last * (first / last) ** left
        return max(round(d), last)
