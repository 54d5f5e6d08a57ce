"""Power-of-choice: the clients of largest loss among d candidates that are drawn in proportion to samples."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Probe, RoundView
from fedsim.selectors.options import Above0, AtLeast0, Count, Several
from fedsim.selectors.sampling import CohortSelector, data_sizes, draw_distinct, lowest, never_delivered
from fedsim.units import Bits, Seconds

PAPER = (
    "Cho, Wang and Joshi, Client Selection in Federated Learning: Convergence Analysis and Power-of-Choice Selection "
    "Strategies, 2020"
)
Weights = Literal["equal", "samples"]


@dataclass(eq=False, repr=False)
class RpowD(CohortSelector):
    """rpow-d: d candidates are drawn in proportion to samples; the m of largest last reported loss are selected.

    There is no question to clients: the loss is the training loss of the last delivered update, and infinite before a
    client's first selection. A client that was selected and has not delivered yet has lost its infinite value: it comes
    after the clients of known loss.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    candidates : int >= 1 or None
        Number of clients drawn (d), at least m, without replacement, with probabilities n_k / n. d = m is weighted
        sampling, d = K is greedy. None for 2 m, a choice of fedsim: the paper varies d.
    weights : ``"equal"`` or ``"samples"``
        Aggregation weights: 1/m each as in the paper, whose draw accounts for the data, or n_k.
    """

    paper = PAPER
    needs = ("loss",)
    communication = "a number up per update"

    candidates: Count | None = None
    weights: Weights = "equal"

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        drawn = draw_distinct(data_sizes(view), pool_size(view, size, self.candidates), rng)
        loss = np.where(np.isnan(view.last_loss), np.inf, view.last_loss)
        loss = np.where(never_delivered(view), -np.inf, loss)[drawn]
        return cohort_of(view.client[drawn[lowest(-loss, size, rng)]], self.weights)


@dataclass(eq=False, repr=False)
class PowD(CohortSelector):
    """pow-d: d candidates drawn in proportion to samples report the model's loss; the m of largest loss are selected.

    Each of the d clients receives the model, evaluates it on all its data and sends a number, before the round.

    Parameters
    ----------
    cohort, candidates, weights : as of `RpowD`
    up_bits : float >= 0
        Size of an answer.
    wait_s : float > 0 or None
        Longest wait for answers; None for all of them.

    Notes
    -----
    With fewer than m answers, the free places go to candidates that were not asked, drawn in proportion to samples,
    and then to those without an answer. With d <= m there is no question, as the losses would have no effect.
    """

    paper = PAPER
    communication = "a model down and a number up for d candidates"
    asks_losses = True

    candidates: Count | None = None
    weights: Weights = "equal"
    up_bits: AtLeast0[Bits] = 32.0
    wait_s: Above0[Seconds] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._samples: int | None = None
        self._asked: IntArray = np.zeros(0, dtype=np.int64)

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        size = self.cohort_size(view)
        pool = pool_size(view, size, self.candidates)
        self._asked = np.zeros(0, dtype=np.int64)
        if pool <= size:
            return None
        self._asked = np.sort(view.client[draw_distinct(data_sizes(view), pool, rng)])
        return Probe(client=self._asked, asks="loss", up_bits=self.up_bits, samples=self._samples, wait_s=self.wait_s)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size = self.cohort_size(view)
        answered, loss = view.client[:0], np.zeros(0)
        if view.answers is not None:
            answered, loss = view.answers.client, view.answers.loss
        # A run without learning has no losses: such clients come last.
        order = lowest(np.where(np.isnan(loss), np.inf, -loss), min(size, answered.size), rng)
        others = self._others(view, answered, size - order.size, rng)
        return cohort_of(np.concatenate([answered[order], others]), self.weights)

    def _others(self, view: RoundView, answered: IntArray, size: int, rng: np.random.Generator) -> IntArray:
        """Return candidates without an answer: first those that were not asked."""
        if not size:
            return view.client[:0]
        places = np.flatnonzero(~np.isin(view.client, answered))
        weights = np.where(np.isin(view.client, self._asked), 0, data_sizes(view))[places]
        return np.asarray(view.client[places[draw_distinct(weights, size, rng)]])


@dataclass(eq=False, repr=False)
class CpowD(PowD):
    """cpow-d: pow-d with losses on a mini-batch of each client's data.

    Parameters
    ----------
    cohort, candidates, weights, up_bits, wait_s : as of `PowD`
    samples : int >= 1
        Size of the mini-batch.
    """

    communication = "a model down and a number up for d candidates, who evaluate a mini-batch only"

    samples: Count = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._samples = self.samples


def pool_size(view: RoundView, size: int, candidates: int | None) -> int:
    """Return d: as set or twice the cohort, at least the cohort and at most all candidates."""
    return min(max(2 * size if candidates is None else candidates, size), view.client.size)


def cohort_of(client: IntArray, weights: Weights) -> Cohort:
    """Return a cohort in ascending order with equal weights, or with those of FedAvg."""
    equal: FloatArray | None = np.full(client.size, 1.0 / max(client.size, 1)) if weights == "equal" else None
    return Cohort(np.sort(client), weights=equal)


@dataclass(eq=False, repr=False)
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

    candidates: Count | None = field(default=None, init=False)
    first: Count | None = None
    until: Several = 100
    decay: Literal["linear", "geometric"] = "linear"

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        self.candidates = self.asked(view)
        return super().probe(view, rng)

    def asked(self, view: RoundView) -> int:
        last = max(self.cohort_size(view), 1)
        first = max(view.clients if self.first is None else self.first, last)
        left = max(1.0 - (view.round - 1) / (self.until - 1), 0.0)
        d = last + (first - last) * left if self.decay == "linear" else last * (first / last) ** left
        return max(round(d), last)
