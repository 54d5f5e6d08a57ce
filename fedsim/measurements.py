"""What a selector may have measured of delivered updates, by name.

A selector names them (``needs = ("loss",)``), the learner measures them, and neither room knows the other.
"""

from collections.abc import Collection
from typing import Final

MEASUREMENTS: Final = ("loss", "loss_rms", "accuracy_gain", "update_norm", "update")
"""What a server can be told of delivered updates.

* ``"loss"``: mean training loss over the samples passed, shape (n,)
* ``"loss_rms"``: root mean square of the losses of single samples during the first pass over the client's data,
  shape (n,)
* ``"accuracy_gain"``: share of the client's own samples that its model gets right after local training, minus the
  same before, shape (n,)
* ``"update_norm"``: Euclidean norm of ``"update"``, shape (n,)
* ``"update"``: the parameters' part of what the server receives, noise of privacy included, shape (n, p)

`fedsim.learning.contracts.Learner.measure` says how each is measured, `fedsim.rounds.Workload` what that takes in a
run.
"""


def forward_passes(needs: Collection[str]) -> int:
    """Return how often a client passes all its samples forward to measure what training does not show by itself."""
    return 2 if "accuracy_gain" in needs else 0


def numbers_up(needs: Collection[str]) -> int:
    """Return how many numbers a client sends beside its update; the rest is told by the update itself."""
    return len({"loss", "loss_rms", "accuracy_gain"} & set(needs))


def check_needs(needs: Collection[str]) -> None:
    """Refuse to measure what nobody knows how to.

    Raises
    ------
    ValueError
        Naming the first unknown one and what is allowed.
    """
    for need in needs:
        if need not in MEASUREMENTS:
            raise ValueError(f"needs: {need!r} is not allowed; it must be some of {', '.join(MEASUREMENTS)}")
