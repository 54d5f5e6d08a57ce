"""Questions to clients before a selection, and their answers."""

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from fedsim.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class RandomizedResponse:
    """Randomised answers to a question for sizes, and the estimate that follows from their sum.

    With probability alpha a client answers with its size, at most M - 1, otherwise with a whole number drawn uniformly
    from 1..M-1 (Qi et al., "FedSampling: A better sampling strategy for federated learning", IJCAI 2023, equation 1).
    """

    threshold: int
    alpha: float
    clips: bool = True
    given_epsilon: float | None = None

    @classmethod
    def of_epsilon(cls, threshold: int, epsilon: float, clips: bool = True) -> Self:
        """Return the most truthful answers that are epsilon-LDP (Lemma 3.2, equation 21)."""
        # (e^epsilon - 1) / (e^epsilon + M - 2), without numbers that no float holds.
        beyond = math.exp(-epsilon)
        alpha = -math.expm1(-epsilon) / (1.0 + (threshold - 2) * beyond)
        return cls(threshold, alpha, clips, given_epsilon=epsilon)

    @property
    def epsilon(self) -> float:
        """Cost of an answer; inf where an answer may disclose the size for certain."""
        if self.clips and self.given_epsilon is not None:
            return self.given_epsilon
        if not self.clips or self.alpha >= 1.0:
            return math.inf
        return math.log(((self.threshold - 2) * self.alpha + 1.0) / (1.0 - self.alpha))

    def probability(self, answer: int, size: int) -> float:
        """Return the probability of an answer of a client of a size (equations 17 and 18)."""
        true = max(1, min(size, self.threshold - 1) if self.clips else size)
        drawn = (1.0 - self.alpha) / (self.threshold - 1) if 1 <= answer < self.threshold else 0.0
        return drawn + (self.alpha if answer == true else 0.0)

    def answers(self, size: IntArray, truthful: FloatArray, drawn: FloatArray) -> IntArray:
        """Return what n clients answer, at least 1, shape (n,)."""
        true = np.clip(size, 1, self.threshold - 1) if self.clips else np.maximum(size, 1)
        false = 1 + (drawn * (self.threshold - 1)).astype(np.int64)
        return np.where(truthful < self.alpha, true, np.minimum(false, self.threshold - 1))

    def estimate(self, answers: IntArray) -> float:
        """Return the estimate of the number of samples of n clients, at least n.

        Before that floor it is unbiased if no size is clipped (equation 2). The floor is that of the published code:
        an estimate of few answers may be below 0.
        """
        expected = (1.0 - self.alpha) * self.threshold * answers.size / 2.0
        return max((float(answers.sum()) - expected) / self.alpha, float(answers.size))


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A question to clients before the selection; it costs time and bits like every message.

    A selector's method ``probe(view, rng) -> Probe | None`` is called at the start of a round. Answers that arrive in
    time are the ``answers`` of the view that ``select`` gets afterwards.
    """

    client: IntArray
    asks: Literal["loss", "resources", "update_norm", "samples"]
    down_bits: float | None = None
    up_bits: float
    samples: int | None = None
    wait_s: float | None = None
    response: RandomizedResponse | None = None


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers to a `Probe` that arrived in time; arrays have shape (a,), one element per answer."""

    client: IntArray
    loss: FloatArray
    compute_s: FloatArray
    uplink_s: FloatArray
    update_norm: FloatArray | None = None
    samples: IntArray | None = None
