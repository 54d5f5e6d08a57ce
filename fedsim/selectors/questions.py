"""Questions to clients before a selection, and their answers."""

from dataclasses import dataclass
from typing import Literal

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.randomized_response import RandomizedResponse


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
    """

    client: IntArray
    loss: FloatArray
    compute_s: FloatArray
    uplink_s: FloatArray
    update_norm: FloatArray | None = None
    samples: IntArray | None = None
