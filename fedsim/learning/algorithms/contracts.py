"""The contract of a local algorithm: what it changes in a client's training, its messages and the server's step.

An algorithm is written with NumPy alone, so that it works under every executor: executors add to each gradient the pull
and the offset that it states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from fedsim.answers import (
    AnswerError,
    Contract,
    Flag,
    Free,
    Given,
    Mask,
    Number,
    Numbers,
    OptionalOf,
    in_words,
    refuse_uncalled,
)
from fedsim.arrays import BoolArray, FloatArray, IntArray, TensorLike, Vector
from fedsim.learning.models.layout import ModelLayout
from fedsim.registry import Component, Registry

Memory = Mapping[str, Vector]
"""State of an algorithm between two trainings of a client, or between two steps of the server: arrays by name."""


@dataclass(frozen=True)
class LocalTask:
    """One training of one client."""

    layout: ModelLayout
    model: Vector
    shared: Memory
    memory: Memory
    part: BoolArray | None
    steps: int
    learning_rate: float
    clients: int


class Start(NamedTuple):
    """What a training starts from."""

    model: Vector
    offset: Vector | None = None
    anchors: Memory = MappingProxyType({})


class Batch(NamedTuple):
    """What an algorithm's own loss of a batch is made of: tensors of torch, of n samples."""

    data: Any
    scores: Any
    labels: Any
    representation: Any
    anchors: Mapping[str, Any]


@dataclass(frozen=True)
class Gathered:
    """What a server has gathered from n updates."""

    update: FloatArray
    drift: FloatArray
    count: int
    shared: Memory
    layout: ModelLayout
    clients: int


@dataclass(frozen=True)
class LocalSteps:
    """Weights of n updates as the scenario says, and steps and mean learning rates of their trainings, shape (n,)."""

    weight: FloatArray
    steps: IntArray
    learning_rate: FloatArray
    momentum: float
    pull: float


class Stepped(NamedTuple):
    """What a server adds to its model, float64 of shape (d,), and the algorithm's next state on the server."""

    update: FloatArray
    shared: Memory


class LocalAlgorithm(Component):
    """A local algorithm; derive from it, add options as fields, and write what differs from plain training.

    Attributes
    ----------
    corrects : bool
        Whether `begin` gives offsets.
    remembers : bool
        Whether a client keeps something from one training to its next. The memory is that of its last update that was
        aggregated, since a training that was never delivered is never run.
    server_keeps : bool
        Whether the server keeps something beside its model. Such an algorithm needs one synchronous server.
    changes_messages : bool
        Whether clients receive or send other numbers than a whole model and its update.
    reweighs : bool
        Whether trained numbers have other weights in the server's sum than the scenario says, see `weights`. Such an
        algorithm needs one synchronous server, and local training by SGD.
    personal : bool
        Whether the model that a client uses is another one than the server's, see `own_model`.
    has_loss : bool
        Whether `loss` is its own. Executors that train a cohort as one computation refuse it.

    Examples
    --------
    >>> class Shrinking(LocalAlgorithm):
    ...     corrects: ClassVar[bool] = True
    ...     strength: float = 0.1
    ...     def begin(self, task):
    ...         return Start(task.model, self.strength * task.model[: task.layout.parameters])
    >>> from fedsim.testing import check_local_algorithm
    >>> check_local_algorithm(Shrinking(), clients=2, rounds=2)
    >>> Shrinking(strength=0.5).strength, Shrinking().pull
    (0.5, 0.0)
    """

    corrects: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    server_keeps: ClassVar[bool] = False
    reweighs: ClassVar[bool] = False
    changes_messages: ClassVar[bool] = False
    personal: ClassVar[bool] = False
    has_loss: ClassVar[bool] = False

    @model_validator(mode="after")
    def _says_what_it_has(self) -> Self:
        refuse_uncalled(type(self), LocalAlgorithm, loss="has_loss", step="server_keeps", weights="reweighs")
        return self

    @property
    def pull(self) -> float:
        """Strength of the pull towards the start: every gradient gains ``pull * (w - w_start)``."""
        return 0.0

    @property
    def ratios(self) -> tuple[float, ...]:
        """Widths of the model that a client may train, as ratios, the largest one first and 1."""
        return (1.0,)

    @property
    def given_widths(self) -> tuple[float, ...] | None:
        """Width of each client, one of `ratios`; None where the deadline decides."""
        return None

    def shift(self, version: int) -> int:
        """Return the first channel of a narrower model's window in each layer, before the layer's width is reached.

        Parameters
        ----------
        version : of the model that a training starts from
        """
        return 0

    def part(self, layout: ModelLayout) -> BoolArray | None:
        """Return which numbers of the whole model clients receive, train and send, shape (d,); None for all.

        Parameters
        ----------
        layout : names, shapes and places of the model's arrays
        """
        return None

    def numbers_more(self, layout: ModelLayout) -> int:
        """Return how many float32 numbers a client receives beside its model, and sends beside its update.

        Parameters
        ----------
        layout : names, shapes and places of the model's arrays
        """
        return 0

    def own_model(self, layout: ModelLayout, model: Vector, memory: Memory) -> Vector:
        """Return the model that a client uses, shape (d,); by default the server's.

        Parameters
        ----------
        layout : of the model
        model : the server's, shape (d,), read-only
        memory : what the client keeps; empty before its first training
        """
        return model

    def begin(self, task: LocalTask) -> Start:
        """Return what a training starts from; by default the server's model.

        Parameters
        ----------
        task : the model, and the states of client and server
        """
        return Start(task.model)

    def loss(self, batch: Batch) -> Any:
        """Return the loss of a batch, a scalar of torch; by default that of the data, which alone is reported.

        Parameters
        ----------
        batch : scores, targets and representations of a batch, and the loss of the data
        """
        return batch.data

    def end(self, task: LocalTask, difference: Vector) -> Memory:
        """Return what the client keeps; by default nothing.

        Parameters
        ----------
        task : as it was at the start
        difference : trained model minus the start, shape (d,), also of numbers outside the part
        """
        return {}

    def drift_weight(self, steps: int, learning_rate: float) -> float:
        """Return the factor of a client's difference in `Gathered.drift`.

        Parameters
        ----------
        steps, learning_rate : of the client's training, the rate as its mean over the steps
        """
        return 0.0

    def weights(self, done: LocalSteps) -> FloatArray:
        """Return the weight of the trained numbers of each update, shape (n,); called only if it reweighs.

        Parameters
        ----------
        done : weights and steps of the clients of one sum
        """
        return done.weight

    def step(self, gathered: Gathered) -> Stepped:
        """Return the server's step; called only if the server keeps something.

        Parameters
        ----------
        gathered : from the updates of a round
        """
        return Stepped(gathered.update, gathered.shared)


def _start(answer: object, given: Given) -> Start:
    """Check a model, and that there is an offset only if the algorithm corrects gradients."""
    task: LocalTask = given["task"]
    if not isinstance(answer, Start):
        raise AnswerError(in_words(answer), "a Start")
    model = _vector(answer.model, task.model.size)
    if answer.offset is not None and not given["corrects"]:
        raise AnswerError("a Start with an offset", "one without, since corrects is False")
    offset = None if answer.offset is None else _vector(answer.offset, task.layout.parameters)
    return Start(model, offset, {name: _vector(one, model.size) for name, one in answer.anchors.items()})


def _own_model(answer: object, given: Given) -> Vector:
    return _vector(answer, given["model"].size)


def _stepped(answer: object, given: Given) -> Stepped:
    if not isinstance(answer, Stepped):
        raise AnswerError(in_words(answer), "a Stepped")
    update = np.asarray(answer.update)
    if update.dtype.kind != "f" or update.shape != given["gathered"].update.shape:
        raise AnswerError(in_words(answer.update), f"numbers of shape {given['gathered'].update.shape}")
    return Stepped(update.astype(np.float64), _memory(answer.shared, given))


def _loss(answer: Any, given: Given) -> Any:
    """Check a scalar tensor with a gradient with respect to the scores."""
    allowed = "a tensor of one floating-point number, made of the scores, which are not detached"
    if not isinstance(answer, TensorLike):
        raise AnswerError(in_words(answer), allowed)
    if any(length != 1 for length in answer.shape):
        raise AnswerError(f"numbers of shape {tuple(answer.shape)}", allowed)
    if not answer.is_floating_point():
        raise AnswerError(f"a number of type {answer.dtype}", allowed)
    if given["batch"].scores.requires_grad and not answer.requires_grad:
        raise AnswerError("a loss without a gradient", allowed)
    return answer


def _vector(values: object, size: int) -> Vector:
    found: NDArray[Any] = np.asarray(values)
    if found.dtype.kind != "f" or found.shape != (size,):
        raise AnswerError(in_words(values), f"floating-point numbers of shape {(size,)}")
    return found.astype(np.float32, copy=False)


def _memory(answer: object, _: Given) -> dict[str, Vector]:
    if not isinstance(answer, Mapping):
        raise AnswerError(in_words(answer), "arrays by their names")
    found = {}
    for name, values in answer.items():
        array: NDArray[Any] = np.asarray(values)
        if not isinstance(name, str) or array.dtype.kind != "f":
            raise AnswerError(f"{name!r} = {in_words(values)}", "arrays of floating-point numbers by their names")
        found[name] = array.astype(np.float32)
    return found


ALGORITHM: Final = Contract(
    "local algorithm",
    LocalAlgorithm,
    {
        "corrects": Flag(),
        "remembers": Flag(),
        "server_keeps": Flag(),
        "changes_messages": Flag(),
        "reweighs": Flag(),
        "weights": Numbers(lambda given: given["done"].weight.shape, least=0),
        "pull": Number(least=0),
        "ratios": Free(),
        "given_widths": Free(),
        "shift": Number(least=0, whole=True),
        "part": OptionalOf(Mask(lambda given: given["layout"].initial.shape)),
        "numbers_more": Number(least=0, whole=True),
        "personal": Flag(),
        "own_model": _own_model,
        "has_loss": Flag(),
        "loss": _loss,
        "begin": _start,
        "end": _memory,
        "drift_weight": Number(least=0),
        "step": _stepped,
    },
)


_HERE: Final = "fedsim.learning.algorithms"

LOCAL_ALGORITHMS: Final = Registry(
    "local algorithm",
    "fedsim.local_algorithms",
    ("begin", "end"),
    {
        "plain": f"{_HERE}.plain:Plain",
        "fedprox": f"{_HERE}.plain:FedProx",
        "fedbn": f"{_HERE}.personal:FedBN",
        "fednova": f"{_HERE}.fednova:FedNova",
        "heterofl": f"{_HERE}.widths:HeteroFL",
        "fedrolex": f"{_HERE}.widths:FedRolex",
        "scaffold": f"{_HERE}.scaffold:Scaffold",
        "feddyn": f"{_HERE}.feddyn:FedDyn",
        "moon": f"{_HERE}.moon:Moon",
        "fedper": f"{_HERE}.personal:FedPer",
    },
    default="plain",
)
