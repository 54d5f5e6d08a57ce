"""What a model looks like as one vector, whatever computes with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from fedsim.arrays import Mask, Vector


@dataclass(frozen=True)
class Entry:
    """Where one array of the module's state lies in the vector.

    Attributes
    ----------
    name : that the module gives it
    offset : of its first number
    shape : of the array
    dtype : of the array in the module, in NumPy's words; all numbers of the vector are float32
    """

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: str


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
    entries : arrays of the module's state that lie in the vector
    constants : the other arrays of the module's state, by name: buffers that training does not change
    trained : which parameters training changes, shape (p,); None for all. The others are frozen: the module says of
        them that they need no gradient
    """

    initial: Vector
    parameters: int
    exempt: Mask
    smallest_batch: int
    entries: tuple[Entry, ...] = ()
    constants: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    trained: Mask | None = None

    @property
    def tensors(self) -> tuple[int, ...]:
        """Number of parameters of each tensor, in their order; one tensor of all where no entries are given."""
        starts = sorted({entry.offset for entry in self.entries if entry.offset < self.parameters} | {0})
        return tuple(end - start for start, end in zip(starts, [*starts[1:], self.parameters], strict=True))

    def named(self, vector: Vector) -> dict[str, NDArray[Any]]:
        """Return the arrays of a module with the numbers of a model of shape (d,), by their names in the module."""
        named: dict[str, NDArray[Any]] = {}
        for entry in self.entries:
            size = 1
            for length in entry.shape:
                size *= length
            values = vector[entry.offset : entry.offset + size].reshape(entry.shape)
            named[entry.name] = values.astype(entry.dtype)
        return named | dict(self.constants)
