"""FedCor: the clients whose losses are most informative of all others'.

Rules and numbers were taken from the published code (Yoruko-Tang/FedCor) and from descriptions of the paper, not
checked against its text; its section numbers are those of the preprint.

Client k has a point x_k of few dimensions. The covariance of the changes of clients i and k is ``x_i . x_k``, and the
square of the noise more for i = k: the linear kernel of FedCor (section 4.3 and its published code). The published code
climbs to points of high marginal likelihood by Adam. For the linear kernel and a given noise the greatest marginal
likelihood has a closed form, which is used here: the principal components of the samples, with their variances less
that of the noise (Tipping and Bishop, "Probabilistic Principal Component Analysis", Journal of the Royal Statistical
Society B 61(3), 1999, equation 7).
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Answers, Cohort, Probe, RoundView
from fedsim.selectors.options import Above0, AtLeast0, Count, PositiveShare, Several, Share
from fedsim.selectors.power_of_choice import Weights, cohort_of
from fedsim.selectors.sampling import CohortSelector, grown
from fedsim.units import Bits, Seconds

_LEAST_VARIANCE: Final = 1e-300


class LossProcess:
    """The covariance of changes of loss, from samples of all clients."""

    def __init__(self, dimension: int, noise: float, history: int, gamma: float, *, centred: bool) -> None:
        self.dimension, self.noise, self.history, self.gamma = dimension, noise, history, gamma
        self.centred = centred
        self.points: FloatArray = np.zeros((0, 0))
        self.own: FloatArray = np.zeros(0)
        self._samples: dict[int, tuple[IntArray, FloatArray]] = {}

    @property
    def knows(self) -> bool:
        """Whether there is a covariance."""
        return self.points.size > 0

    def learn(self, round_: int, client: IntArray, change: FloatArray) -> None:
        """Add the changes of clients' losses in a round, of shape (n,), and forget samples that are too old."""
        if client.size:
            self._samples[round_] = client, change
        self._samples = {number: told for number, told in self._samples.items() if number + self.history >= round_}

    def fit(self, clients: int) -> None:
        """Fit the covariance of K clients to the samples; without samples it stays as it is."""
        if not self._samples:
            return
        change, weight = self._matrix(clients)
        known = ~np.isnan(change)
        total = np.maximum(weight @ known, _LEAST_VARIANCE)
        mean = weight @ np.where(known, change, 0.0) / total if self.centred else np.zeros(clients)
        # A change that is not known counts as the mean.
        rest = np.where(known, change - mean, 0.0) * np.sqrt(weight / weight.sum())[:, None]
        _, scale, axes = np.linalg.svd(rest, full_matrices=False)
        spread = np.sqrt(np.maximum(scale**2 - self.noise**2, 0.0))[: self.dimension]
        self.points = axes[: self.dimension].T * spread
        self.own = np.full(clients, self.noise**2)
        met = known.any(axis=0)
        self.own[~met] += float(np.square(self.points[met]).sum(axis=1).mean())

    def _matrix(self, clients: int) -> tuple[FloatArray, FloatArray]:
        """Return the samples, NaN where one is not known, shape (S, K), and their weights, shape (S,)."""
        newest = max(self._samples)
        change = np.full((len(self._samples), clients), np.nan)
        for row, (client, value) in enumerate(self._samples.values()):
            change[row, client] = value
        return change, np.array([self.gamma ** (newest - number) for number in self._samples])

    def greedy(self, size: int, share: FloatArray, allowed: BoolArray, discount: FloatArray) -> IntArray:
        """Return the clients that are expected to lower the global loss most, one after the other.

        The next one has the greatest ``discount_k sum_i p_i S_ik / sqrt(S_kk)`` (section 4.2): by how much the mean
        change of the global loss falls when that of client k falls by one standard deviation. After each one, S becomes
        the covariance given its change, ``S_ij - S_ik S_kj / S_kk``.
        """
        self.points = _rows(self.points, share.size)
        self.own = grown(self.own, share.size, float(self.own.max(initial=0.0)))
        points, free = self.points, allowed.copy()
        total = points @ (points.T @ share) + self.own * share
        variance = np.square(points).sum(axis=1) + self.own
        taken: list[int] = []
        columns: list[FloatArray] = []
        for _ in range(size):
            index = discount * total / np.sqrt(np.maximum(variance, _LEAST_VARIANCE))
            k = int(np.argmax(np.where(free, index, -np.inf)))
            taken.append(k)
            free[k] = False
            column = points @ points[k]
            column[k] += self.own[k]
            for earlier in columns:
                column -= earlier * earlier[k]
            column /= np.sqrt(max(column[k], _LEAST_VARIANCE))
            columns.append(column)
            total = total - column * float(column @ share)
            variance = np.maximum(variance - np.square(column), 0.0)
        return np.array(taken, dtype=np.int64)


def _rows(points: FloatArray, clients: int) -> FloatArray:
    """Return points with a row of zeros for each client that has none."""
    return np.pad(points, ((0, max(clients - len(points), 0)), (0, 0)))


@dataclass(eq=False, repr=False)
class FedCor(CohortSelector):
    """Select one client after the other by the reduction of the expected global loss that its own loss brings.

    In the rounds of a warm-up, and in each ``interval``-th round after it, cohorts are drawn uniformly, and all
    candidates are asked for the loss of the model before and after the round. The changes are samples of a Gaussian
    process over clients (`LossProcess`). In the other rounds clients are taken greedily (`LossProcess.greedy`), where a
    client that was selected t times since the last fit has the factor ``beta^t``.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates if there are no more than that.
    warmup : int >= 1
        Rounds of the warm-up (15 in the published commands for FMNIST, 20 for CIFAR-10).
    interval : int >= 2
        Rounds from one fit to the next after it, Delta t (10 for FMNIST, 50 for CIFAR-10).
    beta : float in [0, 1]
        Annealing coefficient (0.9).
    gamma : float in (0, 1]
        Weight of a sample that is one round older (0.95 for FMNIST, 0.99 for CIFAR-10).
    dimension : int >= 1
        Of the clients' points (15 in the code).
    history : int >= 1
        Rounds after which a sample is forgotten, M (100 for FMNIST, 500 for CIFAR-10).
    noise : float > 0
        Standard deviation of the noise of a change (0.01 in the code).
    mean : ``"samples"`` or ``"zero"``
        Mean of a client's changes, which counts for the covariance alone: that of its samples, as in the published
        commands, or 0.
    weights : ``"samples"`` or ``"equal"``
        Aggregation weights: n_k, or 1/m each as in the code.
    up_bits : float >= 0
        Size of an answer.
    wait_s : float > 0 or None
        Longest wait for answers; None for all of them.

    Notes
    -----
    In the code a sample after the warm-up comes from a training of random clients whose model is thrown away, and no
    time passes; here such a round is one of the run. The code evaluates all clients at no cost in each round. A client
    without an answer before or after a round has no sample of it. A client without any sample has the mean variance of
    the others and no correlation. Without any sample, as in a run about timing only, cohorts are drawn uniformly.

    The weight of a client in the global loss is its share of the samples of all clients met so far.
    """

    paper = (
        "Tang, Ning, Wang, Sun, Wang, Li and Chen, FedCor: Correlation-Based Active Client Selection Strategy for "
        "Heterogeneous Federated Learning, CVPR 2022"
    )
    communication = "a model down and a number up for all candidates, in the warm-up and about each fit after it"
    asks_losses = True

    warmup: Count = 15
    interval: Several = 10
    beta: Share = 0.9
    gamma: PositiveShare = 0.95
    dimension: Count = 15
    history: Count = 100
    noise: Above0[float] = 0.01
    mean: Literal["samples", "zero"] = "samples"
    weights: Weights = "samples"
    up_bits: AtLeast0[Bits] = 32.0
    wait_s: Above0[Seconds] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        centred = self.mean == "samples"
        self._process = LossProcess(self.dimension, self.noise, self.history, self.gamma, centred=centred)
        self._samples: IntArray = np.zeros(0, dtype=np.int64)
        self._discount: FloatArray = np.ones(0)
        self._loss: FloatArray = np.zeros(0)
        self._asked = self._answered = 0

    def samples_round(self, round_: int) -> bool:
        """Return whether the change of losses in a round is a sample, whose cohort is drawn uniformly."""
        after = round_ - self.warmup
        return after <= 0 or after % self.interval == 0

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        due = self.samples_round(view.round) or self.samples_round(max(view.round - 1, 1))
        if not due or self._asked == view.round:
            return None
        self._asked = view.round
        return Probe(client=view.client, asks="loss", up_bits=self.up_bits, wait_s=self.wait_s)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._samples = grown(self._samples, view.clients)
        self._discount = grown(self._discount, view.clients, 1.0)
        self._samples[view.client] = view.samples
        if view.answers is not None and self._answered != view.round:
            self._take(view.round, view.clients, view.answers)
        size = self.cohort_size(view)
        if self.samples_round(view.round) or not self._process.knows:
            return cohort_of(rng.permutation(view.client)[:size], self.weights)
        allowed = np.zeros(self._samples.size, dtype=np.bool_)
        allowed[view.client] = True
        share = self._samples / max(int(self._samples.sum()), 1)
        chosen = self._process.greedy(size, share, allowed, self._discount)
        self._discount[chosen] *= self.beta
        return cohort_of(chosen, self.weights)

    def _take(self, round_: int, clients: int, answers: Answers) -> None:
        """Store losses at the beginning of a round, and the changes in the round before it if that is a sample."""
        loss = np.full(max(clients, self._loss.size), np.nan)
        finite = np.isfinite(answers.loss)
        loss[answers.client[finite]] = answers.loss[finite]
        if self._answered == round_ - 1 and round_ > 1 and self.samples_round(round_ - 1):
            change = loss - grown(self._loss, loss.size, np.nan)
            known = np.flatnonzero(~np.isnan(change))
            self._process.learn(round_ - 1, known, change[known])
            if round_ > self.warmup:
                self._process.fit(loss.size)
                self._discount[:] = 1.0
        self._loss, self._answered = loss, round_
