"""Local training of a client in one participation: settings and arithmetic, no torch."""

from typing import Annotated, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.learning.schedules import SCHEDULES, ConstantRate, Schedule
from fedsim.registry import Settings, Slot
from fedsim.units import Bound

FORWARD_AND_BACKWARD: Final = 3
"""Operations of a training pass over those of its forward part.

The backward pass computes the gradient with respect to a layer's inputs and its weights, two products of the same size
as the one forward (Kaplan et al., "Scaling laws for neural language models", 2020, section 2.1).
"""

# Shares of work such as 0.7 have no exact binary form; 0.7 of 10 batches are 7 and not 8.
_ROUNDING = 1e-9


class LocalTraining(Settings):
    """Mini-batch training on a client's own data, down the mean loss of the task.

    Every epoch passes once over the client's samples in a new random order, in batches of ``batch_size``.

    Attributes
    ----------
    optimizer : ``"sgd"`` or ``"adam"``
        Adam with torch's defaults for everything but the learning rate.
    learning_rate : float > 0
    momentum : float in [0, 1)
        Of SGD only.
    proximal : float >= 0
        Strength of the pull towards the model that the client started from: the loss gains
        ``proximal / 2 * |w - w_start|^2``. It is mu of FedProx (Li et al., "Federated optimization in heterogeneous
        networks", MLSys 2020, equation 2) and rho of FedAsync (0.005 in Xie et al. 2019). Losses reported to the server
        are those of the data alone.
    schedule : entry of `fedsim.learning.SCHEDULES`
        How the learning rate changes with rounds and steps.
    weight_decay : float >= 0
        Strength of the pull towards zero, as torch's: each gradient gains ``weight_decay * w``, after clipping.
    clip_norm : float > 0, optional
        Longest gradient; a longer one is shortened to it. It is that of a batch, with all pulls and corrections.
    epochs : int >= 1
    steps : int >= 1, optional
        Number of batches per participation, in place of epochs.
    batch_size : int >= 1
    max_batches : int >= 1, optional
        Most batches of the local work (100 in the PAUSE code); further ones are not done, whatever ``epochs``. A
        selector that prescribes more than the local work multiplies it.
    short_batch : ``"keep"`` or ``"skip"``
        What becomes of an epoch's last batch when it is not full. ``"skip"`` is the later PAUSE code: leave it
        out, except that a client with fewer samples than one batch trains on its one small batch. A batch of a
        single sample is left out in either case when the model has batch normalisation, which cannot normalise
        one value.
    keep_optimizer_state : bool
        Let each client go on with the moments (and step count) of its optimiser from its last update that was
        aggregated, as in the PAUSE code; its weights are the global model's in any case. A training that was
        never delivered leaves the moments as they were: it is never run.

    Examples
    --------
    >>> local = LocalTraining(batch_size=20, epochs=2)
    >>> local.batches_per_epoch([100, 45]).tolist()
    [5, 3]
    >>> LocalTraining(batch_size=20, short_batch="skip").batches_per_epoch([100, 45, 7]).tolist()
    [5, 2, 1]
    """

    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: Annotated[float, Field(gt=0)] = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    proximal: Annotated[float, Field(ge=0)] = 0.0
    schedule: Annotated[Schedule, Slot(SCHEDULES)] = ConstantRate()
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    clip_norm: Annotated[float, Field(gt=0)] | None = None
    epochs: Annotated[int, Field(ge=1), Bound(0, 10**6)] = 1
    steps: Annotated[int, Field(ge=1), Bound(0, 10**8)] | None = None
    batch_size: Annotated[int, Field(ge=1)] = 20
    max_batches: Annotated[int, Field(ge=1)] | None = None
    short_batch: Literal["keep", "skip"] = "keep"
    keep_optimizer_state: bool = False

    @model_validator(mode="after")
    def _momentum_is_of_sgd(self) -> Self:
        if self.optimizer != "sgd" and self.momentum:
            raise ValueError(f"momentum = {self.momentum!r} belongs to sgd; {self.optimizer} takes none")
        return self

    def batches_per_epoch(self, samples: ArrayLike, smallest_batch: int = 1) -> IntArray:
        size = np.asarray(samples, dtype=np.int64)
        full, rest = np.divmod(size, self.batch_size)
        kept = (rest >= smallest_batch) & ((self.short_batch == "keep") | (full == 0))
        return np.asarray(full + kept)

    def batches(self, samples: ArrayLike, work: ArrayLike = 1.0, smallest_batch: int = 1) -> IntArray:
        """Return how many batches each client does for a share of the work: ``ceil(work * all of them)``."""
        each = self.batches_per_epoch(samples, smallest_batch)
        planned = self.epochs * each if self.steps is None else np.where(each > 0, self.steps, 0)
        if self.max_batches is not None:
            planned = np.minimum(planned, self.max_batches)
        share = np.ceil(np.asarray(work, dtype=np.float64) * planned - _ROUNDING)
        return np.where(planned > 0, np.maximum(share.astype(np.int64), 1), 0)

    def whole_steps(self, samples: ArrayLike, work: ArrayLike, smallest_batch: int = 1, *, up: bool) -> FloatArray:
        """Return the nearest share of the work that is a whole number of batches, at least one."""
        planned = self.batches(samples, 1.0, smallest_batch)
        done = self.batches(samples, work, smallest_batch)
        wished = np.asarray(work, dtype=np.float64) * planned
        below = done - (done > wished + _ROUNDING)
        return np.asarray((done if up else np.maximum(below, 1)) / np.maximum(planned, 1), dtype=np.float64)

    def work_samples(self, samples: ArrayLike, work: ArrayLike = 1.0, smallest_batch: int = 1) -> FloatArray:
        size = np.asarray(samples, dtype=np.int64)
        each = self.batches_per_epoch(size, smallest_batch)
        per_epoch = np.minimum(size, each * self.batch_size)
        epochs, rest = np.divmod(self.batches(size, work, smallest_batch), np.maximum(each, 1))
        return np.asarray(epochs * per_epoch + rest * self.batch_size, dtype=np.float64)


def probe_samples(samples: IntArray, most: int | None) -> FloatArray:
    """Return the work of evaluating a model on each client's data, as a number of samples trained on, shape (n,)."""
    passed = samples if most is None else np.minimum(samples, checked_probe(most))
    return np.asarray(passed / FORWARD_AND_BACKWARD, dtype=np.float64)


def checked_probe(samples: int) -> int:
    if samples < 1:
        raise ValueError(f"samples: {samples!r} is not allowed; a probe takes at least 1 sample, or None for all")
    return samples


def check_batches(local: LocalTraining, samples: IntArray, least: int, *, allow_empty: bool) -> None:
    """Refuse clients without a batch."""
    if local.batch_size < least:
        raise ScenarioError(
            f"learning.local.batch_size: {local.batch_size} is not allowed; a model with batch normalisation needs "
            f"batches of at least {least} samples"
        )
    idle = np.flatnonzero(local.batches_per_epoch(samples, least) == 0)
    if allow_empty and idle.size == samples.size:
        raise ScenarioError(
            f"learning.split: none of the {idle.size} clients has samples for one batch, which takes {least}; "
            "allowed: a split that gives at least one client as many"
        )
    if idle.size and not allow_empty:
        raise ScenarioError(
            f"learning.split: client {idle[0]} has {samples[idle[0]]} sample(s), too few for one batch: "
            f"this model needs at least {least}; allowed: a split that gives every client at least as many, or "
            "learning.allow_empty = true"
        )
