"""Active Federated Learning: a softmax of valuations without the least valued clients, and a uniform part.

The rules come from published descriptions; the paper's text was not at hand.
"""

from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.options import AtLeast0, Share
from fedsim.selectors.sampling import CohortSelector, draw_by_logarithms, whole


@dataclass(eq=False, repr=False)
class ActiveLearning(CohortSelector):
    """Draw clients by a softmax of their valuations, without the least valued, and some uniformly: Active FL.

    The valuation of client k is the sum of its samples' losses over the square root of their number, of the last time
    it took part. The share alpha1 of the candidates with the smallest valuations is left out. Of m clients (1 - alpha3)
    m are drawn without replacement with probabilities in proportion to ``exp(alpha2 v_k)``, and alpha3 m uniformly
    among all the others (Algorithm 1).

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (m); all candidates if there are no more than that.
    alpha1 : float in [0, 1]
        Share of the clients left out (0.75 in the paper).
    alpha2 : float >= 0
        Temperature of the softmax (0.01 in the paper).
    alpha3 : float in [0, 1]
        Share of the clients drawn uniformly (0.1 in the paper).

    Notes
    -----
    The loss is the mean training loss of a client's last delivered update; the paper's is that of the received model on
    the client's data. A client that was never selected counts as the highest valued one, and a client that was selected
    and has never delivered as the least valued one; the paper leaves the start open. Shares of clients that are not
    whole are rounded up or down at random, so that the mean is right. If fewer than (1 - alpha3) m clients are not left
    out, those left out fill the places at random. Updates are averaged by samples.
    """

    paper = "Goetz, Malik, Bui, Moon, Liu and Kumar, Active Federated Learning, 2019, Algorithm 1"
    needs = ("loss",)
    communication = "a number up per update"

    alpha1: Share = 0.75
    alpha2: AtLeast0[float] = 0.01
    alpha3: Share = 0.1

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        size, n = self.cohort_size(view), view.client.size
        by_value = size - _rounded(self.alpha3 * size, rng)
        log_weight = self.log_weights(self.valuations(view), _rounded(self.alpha1 * n, rng), rng)
        first = draw_by_logarithms(log_weight, by_value, rng)
        rest = np.setdiff1d(np.arange(n), first, assume_unique=True)
        second = rng.permutation(rest)[: size - by_value]
        return Cohort(view.client[np.sort(np.concatenate([first, second]))])

    def valuations(self, view: RoundView) -> FloatArray:
        known = np.isfinite(view.last_loss)
        value = np.sqrt(np.maximum(view.samples, 1)) * np.where(known, view.last_loss, 0.0)
        most, least = (value[known].max(), value[known].min()) if known.any() else (0.0, 0.0)
        return np.asarray(np.where(known, value, np.where(view.participations == 0, most, least)))

    def log_weights(self, value: FloatArray, left_out: int, rng: np.random.Generator) -> FloatArray:
        """Return ``alpha2 v_k`` of the greatest of them, -inf for the least valued, ties at random; shape (n,)."""
        log_weight = self.alpha2 * value
        shuffled = rng.permutation(value.size)
        least: IntArray = shuffled[np.argsort(value[shuffled], kind="stable")][:left_out]
        log_weight[least] = -np.inf
        return np.asarray(log_weight)


def _rounded(number: float, rng: np.random.Generator) -> int:
    """Return a number rounded up with the probability of its fraction, and down otherwise."""
    least = int(whole(number))
    return least + int(rng.random() < number - least - 1e-9)
