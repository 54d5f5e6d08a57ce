"""What the process of a run and its workers tell one another."""

from dataclasses import dataclass, field

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning.executors.contracts import TrainingJob, TrainingResult
from fedsim.learning.executors.workers.segments import Place


@dataclass(frozen=True)
class SharedArray:
    """An array in a segment.

    Attributes
    ----------
    segment : number of the segment
    place : where its bytes lie
    shape, dtype : of the array
    """

    segment: int
    place: Place
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class SharedData:
    """A data set whose arrays lie in a segment.

    Attributes
    ----------
    arrays : samples and labels for training, samples and labels for testing, and vectors if the set has some
    classes, pixel_max, vocabulary : as of `fedsim.learning.Dataset`
    """

    arrays: list[SharedArray]
    classes: int | None
    pixel_max: int | None
    vocabulary: int | None = None


@dataclass(frozen=True)
class SetupMessage:
    """A training setup.

    Attributes
    ----------
    number : names the setup from now on
    path : where the process of the run looks for modules at present
    settings : model, local training, seed, precision, local algorithm and task, as bytes
    data : SharedData
    """

    number: int
    path: list[str]
    settings: bytes
    data: SharedData


@dataclass(frozen=True)
class Trainings:
    """Clients to train.

    Attributes
    ----------
    jobs : n jobs; the base of each is an empty array where one of ``bases`` stands for it
    bases : n models that several jobs have in common, or None
    """

    jobs: list[TrainingJob]
    bases: list[SharedArray | None]


@dataclass(frozen=True)
class Scores:
    """Chunks to score.

    Attributes
    ----------
    models : the model of each of n chunks
    rows, places : as of `fedsim.learning.executors.chunks.Chunk`
    """

    models: list[SharedArray]
    rows: list[IntArray | None]
    places: list[tuple[int, int, bool]]


@dataclass(frozen=True)
class Request:
    """Work for a worker.

    Attributes
    ----------
    setup : number of its setup
    work : Trainings or Scores
    new_setup : that setup, when the worker meets it for the first time
    new_segments : numbers of the segments that come with the message
    old_segments, old_setups : numbers of those that are not used any more
    """

    setup: int
    work: Trainings | Scores
    new_setup: SetupMessage | None = None
    new_segments: list[int] = field(default_factory=list)
    old_segments: list[int] = field(default_factory=list)
    old_setups: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Reply:
    """What came of a request.

    Attributes
    ----------
    found : training results in the order of the jobs, or sums of each chunk, shape (m,) or (n, m), or an error as bytes
    duration_s : time that the worker took
    """

    found: list[TrainingResult] | list[FloatArray] | bytes
    duration_s: float
