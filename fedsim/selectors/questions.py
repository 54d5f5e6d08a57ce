"""Questions to clients before a selection, and their answers."""

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from fedsim.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class RandomizedResponse:
    """The answers to a question for sizes, and what their sum tells.

    With probability alpha a client answers with its size, at most M - 1, otherwise with a whole number drawn uniformly
    from 1..M-1 (Qi et al., "FedSampling: A better sampling strategy for federated learning", IJCAI 2023, equation 1).

    Attributes
    ----------
    threshold : M, at least 2
    alpha : probability of the true answer, in (0, 1]
    clips : whether sizes of M and more are answered as M - 1, as in the paper. Its published code does not clip: then
        the estimate stays unbiased, and a client with M samples or more has no privacy
    given_epsilon : from which alpha follows; None where alpha is given. From an alpha near 1 it could not be told

    Examples
    --------
    >>> response = RandomizedResponse(threshold=5, alpha=0.5)
    >>> response.probability(3, size=3), response.probability(2, size=3)  # 0.5 + 0.5 / 4, and 0.5 / 4
    (0.625, 0.125)
    >>> round(response.epsilon, 6), round(math.log(0.625 / 0.125), 6)
    (1.609438, 1.609438)
    >>> response.estimate(np.array([3, 2, 4]))  # (9 - 3 * 0.5 * 5 / 2) / 0.5
    10.5
    """

    threshold: int
    alpha: float
    clips: bool = True
    given_epsilon: float | None = None

    @classmethod
    def of_epsilon(cls, threshold: int, epsilon: float, clips: bool = True) -> Self:
        """Return the most truthful answers that are epsilon-LDP (Lemma 3.2, equation 21).

        Parameters
        ----------
        threshold : M, at least 2
        epsilon : above 0
        clips : as of the class; without it the answers are not epsilon-LDP
        """
        # (e^epsilon - 1) / (e^epsilon + M - 2), without numbers that no float holds.
        beyond = math.exp(-epsilon)
        alpha = -math.expm1(-epsilon) / (1.0 + (threshold - 2) * beyond)
        return cls(threshold, alpha, clips, given_epsilon=epsilon)

    @property
    def epsilon(self) -> float:
        """Cost of an answer; inf where an answer may tell the size for certain."""
        if self.clips and self.given_epsilon is not None:
            return self.given_epsilon
        if not self.clips or self.alpha >= 1.0:
            return math.inf
        return math.log(((self.threshold - 2) * self.alpha + 1.0) / (1.0 - self.alpha))

    def probability(self, answer: int, size: int) -> float:
        """Return the probability of an answer of a client of a size (equations 17 and 18).

        Parameters
        ----------
        answer : number that the client says
        size : number of its samples; less than 1 is answered as 1
        """
        true = max(1, min(size, self.threshold - 1) if self.clips else size)
        drawn = (1.0 - self.alpha) / (self.threshold - 1) if 1 <= answer < self.threshold else 0.0
        return drawn + (self.alpha if answer == true else 0.0)

    def answers(self, size: IntArray, truthful: FloatArray, drawn: FloatArray) -> IntArray:
        """Return what n clients answer, at least 1, shape (n,).

        Parameters
        ----------
        size : samples of each client, shape (n,)
        truthful, drawn : uniform numbers from (0, 1), which decide whether the answer is true, and what it is
            otherwise, shape (n,) each
        """
        true = np.clip(size, 1, self.threshold - 1) if self.clips else np.maximum(size, 1)
        false = 1 + (drawn * (self.threshold - 1)).astype(np.int64)
        return np.where(truthful < self.alpha, true, np.minimum(false, self.threshold - 1))

    def estimate(self, answers: IntArray) -> float:
        """Return the number of samples of n clients as their answers tell it, at least n.

        Before that floor it is unbiased if no size is clipped (equation 2). The floor is that of the published code:
        an estimate of few answers may be below 0.

        Parameters
        ----------
        answers : shape (n,), n at least 1
        """
        expected = (1.0 - self.alpha) * self.threshold * answers.size / 2.0
        return max((float(answers.sum()) - expected) / self.alpha, float(answers.size))


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A question to clients before the selection; it costs time and bits like every message.

    A selector's method ``probe(view, rng) -> Probe | None`` is called at the start of a round. Answers that arrive in
    time are the ``answers`` of the view that ``select`` gets afterwards.

    Attributes
    ----------
    client : array of shape (q,)
        Distinct ids among the candidates.
    asks : ``"loss"``, ``"resources"``, ``"update_norm"`` or ``"samples"``
        The mean loss of the current model on the client's data; the expected seconds of work and upload; the norm of
        the client's update from the current model, for which it does its whole local work; or the number of its
        samples, randomised. A cohort of clients with norms has nothing to do but to send, see `Cohort.trained`. Norms
        are asked for by synchronous servers, and only without privacy and without memory of what an update leaves out.
    down_bits : float or None
        Size of the question; None for a whole model, which a loss needs.
    up_bits : float
        Size of the answer.
    samples : int or None
        Number of its samples that a client evaluates for its loss; None for all.
    wait_s : float or None
        Longest wait for answers in seconds; None to wait for all of them.
    response : RandomizedResponse or None
        How clients randomise the number of their samples; needed for ``"samples"``, and None for other questions.

    Examples
    --------
    >>> import numpy as np
    >>> question = Probe(client=np.array([2, 5, 8]), asks="loss", up_bits=32.0, wait_s=4.0)
    >>> question.client.size, question.down_bits is None  # the whole model goes to each of the three
    (3, True)
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
    """Answers to a `Probe` that arrived in time; arrays have shape (a,), one element per answer.

    Attributes
    ----------
    client : ids, in the probe's order
    loss : mean loss of the current model on the client's data; NaN if it was not asked for
    compute_s, uplink_s : expected seconds of the local work and of the upload; NaN if they were not asked for
    update_norm : norm of the client's update; NaN without learning, and None if it was not asked for
    samples : the client's answer for the number of its samples; None if it was not asked for

    Examples
    --------
    >>> import numpy as np
    >>> unknown = np.full(3, np.nan)
    >>> answers = Answers(
    ...     client=np.array([2, 5, 8]), loss=np.array([0.4, 1.9, 1.1]), compute_s=unknown, uplink_s=unknown
    ... )
    >>> answers.client[np.argsort(-answers.loss)[:2]].tolist()  # those of the greatest losses, as pow-d selects
    [5, 8]
    """

    client: IntArray
    loss: FloatArray
    compute_s: FloatArray
    uplink_s: FloatArray
    update_norm: FloatArray | None = None
    samples: IntArray | None = None
