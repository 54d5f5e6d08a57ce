"""What a model looks like as one vector, whatever computes with it."""

from dataclasses import dataclass

from fedsim.arrays import Mask, Vector


@dataclass(frozen=True)
class ModelLayout:
    """A model as one float32 vector of d numbers: p parameters, then buffers.

    Attributes
    ----------
    initial : the model of version 0, shape (d,), read-only
    parameters : p
    exempt : which numbers a privacy mechanism may let pass in clear, shape (d,): all of batch normalisation, and
        buffers
    smallest_batch : fewest samples that a batch must have: 2 with batch normalisation, which cannot normalise one
        value, else 1
    """

    initial: Vector
    parameters: int
    exempt: Mask
    smallest_batch: int
