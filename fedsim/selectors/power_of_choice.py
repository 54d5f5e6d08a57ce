"""Power-of-choice: of a few candidates, those on whose data the model does worst.

Cho, Wang and Joshi, "Client selection in federated learning: convergence analysis and power-of-choice selection
strategies", 2020; "Towards understanding biased client selection in federated learning", AISTATS 2022.
"""

from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Probe, PublishedSelector, RoundView, check_whole, cohort_size
from fedsim.selectors.sampling import data_sizes, draw_distinct, lowest
from fedsim.selectors.validation import check_choice, check_numbers, check_wholes

PAPER = (
    "Cho, Wang and Joshi, Client Selection in Federated Learning: Convergence Analysis and Power-of-Choice Selection "
    "Strategies, 2020"
)
Weights = Literal["equal", "samples"]


class RpowD(PublishedSelector):
    """rpow-d: d candidates drawn in proportion to data, and of them the m with the largest last reported losses.

    It asks nobody: the loss is the one behind a client's last delivered update, and infinite before the first.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    candidates : int >= 1 or None
        Number of clients among which is chosen (d), drawn without replacement with probabilities n_k / n; at least
        m. As many as m is weighted sampling, all of them is greedy. None for 2 m, fedsim's choice: the paper varies
        it.
    weights : ``"equal"`` or ``"samples"``
        Average of the updates: 1/m each as in the paper, where data had its say in the draw, or by n_k.
    """

    paper = PAPER
    needs = ("loss",)
    communication = "a number up per update"

    def __init__(self, cohort: int, candidates: int | None = None, weights: Weights = "equal") -> None:
        check_whole("cohort", cohort, lowest=1)
        check_wholes(1, optional=True, candidates=candidates)
        check_choice("weights", weights, "equal", "samples")
        self.cohort, self.candidates, self.weights = cohort, candidates, weights

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the m of d candidates with the largest last losses, ties at random."""
        size = cohort_size(view, self.cohort)
        drawn = draw_distinct(data_sizes(view), pool_size(view, size, self.candidates), rng)
        loss = np.where(np.isnan(view.last_loss[drawn]), np.inf, view.last_loss[drawn])
        return cohort_of(view.client[drawn[lowest(-loss, size, rng)]], self.weights)


class PowD(PublishedSelector):
    """pow-d: d candidates drawn in proportion to data are asked for the model's loss, and the m largest are taken.

    Each of the d gets the model, evaluates it on all its data and sends a number; this takes time before the round.

    Parameters
    ----------
    cohort, candidates, weights : as of `RpowD`
    up_bits : float >= 0
        Size of an answer.
    wait_s : float > 0 or None
        Longest wait for answers; None for everybody's.

    Notes
    -----
    Where fewer than m answer, the places left go to candidates that were not asked, drawn in proportion to data,
    and then to those that were silent. Nobody is asked where d is not above m, as the losses would not matter.
    """

    paper = PAPER
    communication = "a model down and a number up for d candidates"

    def __init__(
        self,
        cohort: int,
        candidates: int | None = None,
        weights: Weights = "equal",
        up_bits: float = 32.0,
        wait_s: float | None = None,
    ) -> None:
        check_whole("cohort", cohort, lowest=1)
        check_wholes(1, optional=True, candidates=candidates)
        check_choice("weights", weights, "equal", "samples")
        check_numbers(0, up_bits=up_bits)
        check_numbers(0, above=True, optional=True, wait_s=wait_s)
        self.cohort, self.candidates, self.weights = cohort, candidates, weights
        self.up_bits, self.wait_s = up_bits, wait_s
        self._samples: int | None = None
        self._asked: IntArray = np.zeros(0, dtype=np.int64)

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        """Return the question to d candidates."""
        size = cohort_size(view, self.cohort)
        pool = pool_size(view, size, self.candidates)
        self._asked = np.zeros(0, dtype=np.int64)
        if pool <= size:
            return None
        self._asked = np.sort(view.client[draw_distinct(data_sizes(view), pool, rng)])
        return Probe(client=self._asked, asks="loss", up_bits=self.up_bits, samples=self._samples, wait_s=self.wait_s)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the m of those that answered with the largest losses, ties at random."""
        size = cohort_size(view, self.cohort)
        answered, loss = view.client[:0], np.zeros(0)
        if view.answers is not None:
            answered, loss = view.answers.client, view.answers.loss
        # A loss that is no number, as in a run without learning, says nothing for its client.
        order = lowest(np.where(np.isnan(loss), np.inf, -loss), min(size, answered.size), rng)
        others = self._others(view, answered, size - order.size, rng)
        return cohort_of(np.concatenate([answered[order], others]), self.weights)

    def _others(self, view: RoundView, answered: IntArray, size: int, rng: np.random.Generator) -> IntArray:
        """Return candidates that have not answered: those that were asked last."""
        if not size:
            return view.client[:0]
        places = np.flatnonzero(~np.isin(view.client, answered))
        weights = np.where(np.isin(view.client, self._asked), 0, data_sizes(view))[places]
        return np.asarray(view.client[places[draw_distinct(weights, size, rng)]])


class CpowD(PowD):
    """cpow-d: as pow-d, but each candidate evaluates the model on a mini-batch of its data only.

    Parameters
    ----------
    cohort, candidates, weights, up_bits, wait_s : as of `PowD`
    samples : int >= 1
        Size of the mini-batch.
    """

    communication = "a model down and a number up for d candidates, who look at a mini-batch only"

    def __init__(
        self,
        cohort: int,
        samples: int,
        candidates: int | None = None,
        weights: Weights = "equal",
        up_bits: float = 32.0,
        wait_s: float | None = None,
    ) -> None:
        super().__init__(cohort, candidates, weights, up_bits, wait_s)
        check_whole("samples", samples, lowest=1)
        self.samples = self._samples = samples


def pool_size(view: RoundView, size: int, candidates: int | None) -> int:
    """Return d: what was asked for or twice the cohort, at least the cohort and at most all there are."""
    return min(max(2 * size if candidates is None else candidates, size), view.client.size)


def cohort_of(client: IntArray, weights: Weights) -> Cohort:
    """Return a cohort in ascending order with equal weights, or with FedAvg's."""
    equal: FloatArray | None = np.full(client.size, 1.0 / max(client.size, 1)) if weights == "equal" else None
    return Cohort(np.sort(client), weights=equal)
