"""Messages between the process of a run and its workers."""

from dataclasses import dataclass, field

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.executors.contracts import TrainingJob, TrainingResult
from fedsim.learning.executors.workers.segments import Place


@dataclass(frozen=True)
class SharedArray:
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
    token_fill: int | None = None


@dataclass(frozen=True)
class SetupMessage:
    number: int
    path: list[str]
    settings: bytes
    data: SharedData


@dataclass(frozen=True)
class Trainings:
    jobs: list[TrainingJob]
    bases: list[SharedArray | None]


@dataclass(frozen=True)
class Scores:
    models: list[SharedArray]
    rows: list[IntArray | None]
    places: list[tuple[int, int, bool]]


@dataclass(frozen=True)
class Request:
    setup: int
    work: Trainings | Scores
    new_setup: SetupMessage | None = None
    new_segments: list[int] = field(default_factory=list)
    old_segments: list[int] = field(default_factory=list)
    old_setups: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Reply:
    found: list[TrainingResult] | list[FloatArray] | bytes
    duration_s: float
