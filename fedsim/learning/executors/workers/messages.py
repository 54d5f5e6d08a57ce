"""What the process of a run and its workers tell one another."""

from dataclasses import dataclass, field

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.executors.contracts import TrainingJob, TrainingResult
from fedsim.learning.executors.workers.segments import Place


@dataclass(frozen=True)
class SharedArray:
    """An array in a segment."""

    segment: int
    place: Place
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class SharedData:
    """A data set whose arrays lie in a segment."""

    arrays: list[SharedArray]
    classes: int | None
    pixel_max: int | None
    vocabulary: int | None = None


@dataclass(frozen=True)
class SetupMessage:
    """A training setup."""

    number: int
    path: list[str]
    settings: bytes
    data: SharedData


@dataclass(frozen=True)
class Trainings:
    """Clients to train."""

    jobs: list[TrainingJob]
    bases: list[SharedArray | None]


@dataclass(frozen=True)
class Scores:
    """Chunks to score."""

    models: list[SharedArray]
    rows: list[IntArray | None]
    places: list[tuple[int, int, bool]]


@dataclass(frozen=True)
class Request:
    """Work for a worker."""

    setup: int
    work: Trainings | Scores
    new_setup: SetupMessage | None = None
    new_segments: list[int] = field(default_factory=list)
    old_segments: list[int] = field(default_factory=list)
    old_setups: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Reply:
    """What came of a request."""

    found: list[TrainingResult] | list[FloatArray] | bytes
    duration_s: float
