"""A model as one vector, whatever computes with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from fedsim.arrays import Mask, Vector


@dataclass(frozen=True)
class Entry:
    """Where one array of the module's state lies in the vector."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class ModelLayout:
    """A model in three groups of numbers: p trained parameters and then statistics in one vector, and constants.

    ========== ================================= ==================== ============= ======================
    group      what                              bits                 noise, steps  server
    ========== ================================= ==================== ============= ======================
    trained    parameters that want a gradient   32, or compressed    yes           its optimiser's step
    statistics buffers that training changes     32                   when asked    averaged
    constants  all other numbers                 none                 none          untouched
    ========== ================================= ==================== ============= ======================
    """

    initial: Vector
    parameters: int
    exempt: Mask
    smallest_batch: int
    entries: tuple[Entry, ...] = ()
    constants: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    executed: tuple[str, ...] = ()

    @property
    def layers(self) -> tuple[Entry, ...]:
        places = {name: place for place, name in enumerate(self.executed)}
        return tuple(sorted(self.entries, key=lambda entry: places.get(entry.name, 0)))

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
