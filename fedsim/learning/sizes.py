"""What a round needs of a learner, of which a run about timing only knows nothing else."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol, Self

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import FedsimError
from fedsim.learning.models.layout import Widths
from fedsim.learning.models.settings import Architecture


@dataclass(frozen=True)
class ExecutorUsed:
    """The executor of a run, as ``run.json`` records it."""

    kind: str
    device: str
    precision: str
    fingerprint: str
    fast: bool = False

    @property
    def asked(self) -> dict[str, Any]:
        """By which arguments of a simulation it is had again."""
        return {"executor": self.kind, "device": self.device, "precision": self.precision, "fast": self.fast}

    def to_json(self) -> dict[str, str | bool]:
        return asdict(self)

    @classmethod
    def from_json(cls, table: object) -> Self:
        names = [field.name for field in fields(cls) if field.name != "fast"]
        texts = isinstance(table, Mapping) and all(isinstance(table.get(name), str) for name in names)
        if not (isinstance(table, Mapping) and texts and isinstance(table.get("fast"), bool)):
            raise FedsimError(
                f"executor: {table!r} is not allowed; it must be a table of the texts {', '.join(names)}, and of fast, "
                "which is true or false"
            )
        return cls(**{name: table[name] for name in (*names, "fast")})


@dataclass(frozen=True)
class Work:
    """How many results a learner has computed, and how many it has found in a store."""

    trained: int = 0
    trainings_found: int = 0
    evaluated: int = 0
    evaluations_found: int = 0
    probed: int = 0
    probes_found: int = 0


class Sizes(Protocol):
    """What a round needs of what is learned: samples, bits, operations, and what a run says of itself."""

    @property
    def samples(self) -> IntArray:
        """Training samples of every client, shape (K,); zero in a run about timing only that does not state them."""

    @property
    def label_counts(self) -> IntArray | None:
        """Training samples of every client with each label, shape (K, labels); None without labels."""

    @property
    def flops_per_sample(self) -> float | None:
        """Floating-point operations to train on one sample, forward and backward; None if unknown."""

    @property
    def model_bits(self) -> float | None:
        """Bits of the model when it is sent; None if unknown."""

    @property
    def update_bits(self) -> float | None:
        """Bits of an update when it is sent; None if unknown."""

    @property
    def remembers(self) -> bool:
        """Whether an update depends on those that the client sent before, as with error feedback.

        The server then asks for each update as soon as it has arrived, once: `updates` goes on from what the client's
        update of the call before left. An update that never arrives is not asked for, and leaves nothing.
        """

    @property
    def widths(self) -> Widths | None:
        """Widths of the model among which that of each participation is chosen; None for the whole model always."""

    def work_samples(self, client: IntArray, work: FloatArray | None = None, got: IntArray | None = None) -> FloatArray:
        """Return how many samples each client passes through its model in one local training, shape (n,).

        Parameters
        ----------
        client : ids, shape (n,)
        work : share of the local work that each does, in (0, 100], shape (n,); all of it if None
        got : samples that each client has drawn to work on, shape (n,); all of its own if None
        """

    def whole_steps(self, client: IntArray, work: FloatArray, *, up: bool) -> FloatArray:
        """Return the share of each client's work nearest to a wish that is a whole number of its steps, at least one.

        Parameters
        ----------
        client : ids, shape (n,)
        work : wished shares, in (0, 100], shape (n,)
        up : whether to round up, as `updates` does, or down
        """

    def probe_samples(self, client: IntArray, samples: int | None) -> FloatArray:
        """Return the work of a probe as a number of samples trained on, for each client, shape (n,).

        A forward pass is a third of a training pass, see `fedsim.learning.local_training.FORWARD_AND_BACKWARD`.

        Parameters
        ----------
        client : ids, shape (n,)
        samples : that the probe looks at; None for all of the client's
        """

    @property
    def architecture(self) -> Architecture | None:
        """The model without its numbers; None without learning."""

    @property
    def data_digest(self) -> str | None:
        """Digest of the data set; None without learning."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the data and what counts of them, for the notes of a run."""

    @property
    def executor_used(self) -> ExecutorUsed | None:
        """What computes trainings and evaluations; None without learning."""
