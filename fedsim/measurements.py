"""Measurements of updates, which a selector names and the learner takes, and the bound of shares of work."""

from collections.abc import Collection
from typing import Final

MEASUREMENTS: Final = ("loss", "loss_rms", "accuracy_gain", "update_norm", "noise_energy", "update")
"""Names of measurements of n updates of p parameters; `fedsim.rounds.Workload` has their cost in a run.

* ``"loss"``: mean training loss over the samples passed, shape (n,)
* ``"loss_rms"``: root mean square of the losses of single samples during the first pass over the client's data (what it
  did of it), shape (n,). Times the number of these samples it is the statistical utility of Oort (Lai et al., OSDI
  2021, section 4.2) and FedSUV's L (section 4.1).
* ``"accuracy_gain"``: FedSUV's Delta (section 4.1), shape (n,), in [-1, 1]: share of the client's own samples that its
  model gets right after local training, minus the same before. The paper does not say on which data accuracy is
  measured; here on all samples of the client, in evaluation mode. It takes the client two forward passes.
* ``"update_norm"``: Euclidean norm of ``"update"``, shape (n,)
* ``"noise_energy"``: expected squared Euclidean norm of the noise of privacy in the parameters of an update's release,
  before it is compressed, shape (n,); 0 without noise, NaN where the mechanism does not state it. The server knows it:
  epsilon and the mechanism are no secrets. A compressor may take noise away, or add to it: then the noise in
  ``"update"`` has another energy.
* ``"update"``: the parameters' part of what the server receives, noise of privacy included, float32 of shape (n, p).
  Buffers (running statistics, counters of batches) are left out: they are no gradients, and a counter would outweigh
  all else.
"""

HIDDEN: Final = ("signal_energy", "clipped")
"""Measurements that no server can take, for the tables of a run only; a selector that names one is refused.

* ``"signal_energy"``: squared Euclidean norm of the parameters of an update as the mechanism has clipped it, before
  noise and compression, shape (n,); of the update itself without privacy, NaN where the mechanism does not tell it
* ``"clipped"``: 1 where the mechanism had to change an update to clip it, 0 elsewhere, shape (n,); NaN where it does
  not tell it
"""

MOST_WORK: Final = 100.0
"""Largest share of the local work that a selector may prescribe; above 1 for a client that has time for more."""

NUMBERS: Final = frozenset({"loss", "loss_rms", "accuracy_gain"})
"""Measurements that a client sends as numbers beside its update; the others are computed from the update."""


def forward_passes(needs: Collection[str]) -> int:
    """Return how many extra forward passes over all its samples a client makes for measurements."""
    return 2 if "accuracy_gain" in needs else 0


def numbers_up(needs: Collection[str]) -> int:
    """Return how many numbers a client sends beside its update; the server computes the rest from the update."""
    return len(NUMBERS & set(needs))


def check_needs(needs: Collection[str]) -> None:
    for need in needs:
        if need not in (*MEASUREMENTS, *HIDDEN):
            raise ValueError(f"needs: {need!r} is not allowed; it must be some of {', '.join(MEASUREMENTS)}")
