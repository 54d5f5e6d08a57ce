"""Measurements of delivered updates, by name.

A selector names them (``needs = ("loss",)``) and the learner takes them; this module is all that both share.
"""

from collections.abc import Collection
from typing import Final

MEASUREMENTS: Final = ("loss", "loss_rms", "accuracy_gain", "update_norm", "update")
"""Names of measurements.

* ``"loss"``: mean training loss over the samples passed, shape (n,)
* ``"loss_rms"``: root mean square of the losses of single samples during the first pass over the client's data,
  shape (n,)
* ``"accuracy_gain"``: share of the client's own samples that its model gets right after local training, minus the
  same before, shape (n,)
* ``"update_norm"``: Euclidean norm of ``"update"``, shape (n,)
* ``"update"``: the parameters' part of what the server receives, noise of privacy included, shape (n, p)

`fedsim.learning.contracts.Learner.measure` defines each, and `fedsim.rounds.Workload` its cost in a run.
"""


def forward_passes(needs: Collection[str]) -> int:
    """Return how many extra forward passes over all its samples a client makes for measurements."""
    return 2 if "accuracy_gain" in needs else 0


def numbers_up(needs: Collection[str]) -> int:
    """Return how many numbers a client sends beside its update; the server computes the rest from the update."""
    return len({"loss", "loss_rms", "accuracy_gain"} & set(needs))


def check_needs(needs: Collection[str]) -> None:
    """Refuse unknown measurements.

    Raises
    ------
    ValueError
        With the first unknown name and the allowed ones.
    """
    for need in needs:
        if need not in MEASUREMENTS:
            raise ValueError(f"needs: {need!r} is not allowed; it must be some of {', '.join(MEASUREMENTS)}")
