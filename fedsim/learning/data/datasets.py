"""Data sets as plain arrays; `fedsim.learning.models.inputs` alone makes of samples what a module takes."""

import functools
import hashlib
import os
from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.answers import Contract, InstanceOf
from fedsim.arrays import IntArray
from fedsim.errors import DataError, ScenarioError
from fedsim.inputs.files import expanded
from fedsim.learning.data.shapes import Shape, TokenShape, TypedShape
from fedsim.registry import Component, Registry
from fedsim.user_cache import user_cache

Images = NDArray[np.uint8]
Form = Literal["images", "numbers", "tokens", "vectors", "tensors"]

_AXES_OF_IMAGES: Final = 4
_AXES_OF_TEXTS: Final = 2
_KINDS: Final = "biuf"
"""Of NumPy's types: truth values, whole numbers, floating-point numbers."""


@dataclass(frozen=True)
class Dataset:
    """Samples with their targets, for training and for testing; the type of the samples says what they are.

    ========= ====================== =========================================================
    type      shape                  what a module gets
    ========= ====================== =========================================================
    uint8     (n, height, width, c)  images, float32 in [-1, 1] of shape (n, c, height, width)
    float32   (n, ...)               the numbers themselves
    int64     (n, length)            tokens, or with ``vectors`` their vectors: (n, length, m)
    any other (n, ...)               the numbers themselves, of their own type
    ========= ====================== =========================================================

    uint8 are images where ``pixel_max`` is given, and int64 are tokens where ``vocabulary`` is given. Samples of
    several lengths are filled up at their end: with the token ``token_fill``, whose vector the models for texts leave
    at zero, and targets with ``target_fill``, which fedsim's tasks leave out. Each is None where nothing was filled
    up. ``notes`` say how the set was made, for the notes of a run.
    """

    train_x: NDArray[Any]
    train_y: NDArray[Any]
    test_x: NDArray[Any]
    test_y: NDArray[Any]
    classes: int | None = None
    pixel_max: int | None = None
    train_users: IntArray | None = None
    vocabulary: int | None = None
    vectors: NDArray[np.float32] | None = None
    token_fill: int | None = None
    target_fill: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part, samples, targets in (("train", self.train_x, self.train_y), ("test", self.test_x, self.test_y)):
            self._check_samples(f"{part}_x", samples)
            self._check_targets(f"{part}_y", targets, len(samples))
            samples.flags.writeable = targets.flags.writeable = False
        for name, one, other in (("x", self.train_x, self.test_x), ("y", self.train_y, self.test_y)):
            if one.dtype != other.dtype or one.shape[1:] != other.shape[1:]:
                first, second = (f"{array.dtype} of shape {array.shape[1:]}" for array in (one, other))
                what = "samples" if name == "x" else "targets"
                raise DataError(
                    f"test_{name}: {what} are {second}; those of train_{name} are {first}, and both must be alike"
                )
        self._check_users()
        self._check_vectors()

    @property
    def form(self) -> Form:
        if self.vocabulary is not None:
            return "tokens" if self.vectors is None else "vectors"
        if self.pixel_max is not None:
            return "images"
        return "numbers" if self.train_x.dtype == np.float32 else "tensors"

    @property
    def labels(self) -> IntArray | None:
        """Label of each training sample, shape (n,); None where the targets are no labels."""
        return None if self.classes is None else self.train_y

    @property
    def targets_in_words(self) -> str:
        of = self.train_y
        known = "" if self.classes is None else f", labels of {self.classes} classes"
        return f"{of.dtype} of shape ({', '.join(map(str, ('n', *of.shape[1:])))}){known}"

    @property
    def shape(self) -> Shape:
        """Shape of a sample as a module gets it: channels, height and width of an image."""
        sizes = self.train_x.shape[1:]
        if self.form == "images":
            height, width, channels = sizes
            return channels, height, width
        if self.vocabulary is None:
            return sizes if self.form == "numbers" else TypedShape(sizes, str(self.train_x.dtype))
        if self.vectors is None:
            return TokenShape(sizes[0], self.vocabulary, self.token_fill)
        return sizes[0], self.vectors.shape[1]

    @property
    def tokens(self) -> int | None:
        """Number of tokens that texts may have; without the one that alone fills them up. None without texts."""
        return None if self.vocabulary is None else self.vocabulary - self._has_a_token_to_fill

    def copied(self) -> "Dataset":
        """Return the set with samples and targets in memory of its own."""
        parts = ("train_x", "train_y", "test_x", "test_y")
        return replace(self, **{name: getattr(self, name).copy() for name in parts})

    def filled_with_zeros(self) -> "Dataset":
        """Return the set for a model that knows the tokens of the texts alone: they are filled up with token 0."""
        if not self._has_a_token_to_fill:
            return self
        train_x, test_x = (np.where(one == self.token_fill, 0, one) for one in (self.train_x, self.test_x))
        notes = (*self.notes, "token 0 fills texts up and is one of theirs: a model cannot tell them apart")
        return replace(self, train_x=train_x, test_x=test_x, vocabulary=self.tokens, token_fill=None, notes=notes)

    @property
    def _has_a_token_to_fill(self) -> bool:
        """Whether the last token is none of the texts, and fills them up since token 0 is one of them."""
        return bool(self.token_fill) and self.vocabulary is not None and self.token_fill == self.vocabulary - 1

    def taken(self, rows: IntArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return samples and targets: those of rows from 0 on of the training set, of ``~row`` of the test set."""
        if rows.size and rows[0] < 0:
            return self.test_x[~rows], self.test_y[~rows]
        return self.train_x[rows], self.train_y[rows]

    @functools.cached_property
    def digest(self) -> str:
        digest = hashlib.blake2b(f"{self.classes} {self.pixel_max}".encode(), digest_size=16)
        for name, fill in {"token": self.token_fill, "target": self.target_fill}.items():
            digest.update(b"" if fill is None else f"{name}_fill {fill}".encode())
        more = {"users": self.train_users, "vectors": self.vectors}
        arrays = {str(place): x for place, x in enumerate((self.train_x, self.train_y, self.test_x, self.test_y))}
        for name, array in {**arrays, **{name: x for name, x in more.items() if x is not None}}.items():
            digest.update(f"{name * (name in more)}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        if self.form != "images":
            digest.update(f"{self.form} {self.vocabulary}".encode())
        if self.form == "tensors" or self.classes is None:
            digest.update(f"{self.train_x.dtype} {self.train_y.dtype}".encode())
        return digest.hexdigest()

    def _check_samples(self, name: str, samples: NDArray[Any]) -> None:
        found = f"{name}: {samples.dtype} of shape {samples.shape}"
        images, tokens = self.pixel_max is not None, self.vocabulary is not None
        if images and (samples.dtype != np.uint8 or samples.ndim != _AXES_OF_IMAGES):
            raise DataError(f"{found}, pixel_max: {self.pixel_max}; allowed: images of uint8 (n, h, w, c), or None")
        if tokens and (samples.dtype != np.int64 or samples.ndim != _AXES_OF_TEXTS):
            raise DataError(f"{found}, vocabulary: {self.vocabulary}; allowed: tokens of int64 (n, length), or None")
        if samples.dtype.kind not in _KINDS or samples.ndim < 2 or samples.size == 0:
            raise DataError(
                f"{found}; allowed: images of uint8 (n, h, w, c), numbers of float32 (n, ...), tokens of int64 "
                "(n, length), other numbers (n, ...), at least one"
            )
        _check_finite(name, samples)
        if self.vocabulary is not None and not 0 <= samples.min() <= samples.max() < self.vocabulary:
            raise DataError(f"{name}: tokens must lie in 0..{self.vocabulary - 1}")

    def _check_targets(self, name: str, targets: NDArray[Any], count: int) -> None:
        found = f"{name}: {targets.dtype} of shape {targets.shape}"
        if self.classes is not None:
            if targets.shape != (count,) or targets.dtype != np.int64:
                raise DataError(f"{found}; one int64 per sample is needed")
            wrong = np.flatnonzero((targets < 0) | (targets >= self.classes))
            if wrong.size:
                row, some = wrong[0], self.classes
                unknown = f"; for one that is not known y[y < 0] = {some}, with learning.task.ignore = {some}"
                raise DataError(
                    f"{name}: row {row} has the label {targets[row]}; labels must lie in 0..{some - 1}"
                    f"{unknown if targets[row] < 0 else ''}"
                )
        elif targets.dtype.kind not in _KINDS or targets.shape[:1] != (count,) or targets.size == 0:
            raise DataError(f"{found}; allowed: numbers of shape ({count}, ...)")
        else:
            _check_finite(name, targets)

    def _check_users(self) -> None:
        users = self.train_users
        if users is None:
            return
        if users.shape != self.train_y.shape[:1] or users.dtype != np.int64 or users.min() < 0:
            raise DataError(
                f"train_users: {users.dtype} of shape {users.shape}; one int64 from 0 on per sample is needed"
            )
        users.flags.writeable = False

    def _check_vectors(self) -> None:
        vectors = self.vectors
        if vectors is None:
            return
        if vectors.dtype != np.float32 or vectors.ndim != 2 or vectors.shape[0] != self.vocabulary:
            raise DataError(
                f"vectors: {vectors.dtype} of shape {vectors.shape}; one of float32 for each of "
                f"{self.vocabulary} tokens is needed"
            )
        if vectors.shape[1] == 0 or not np.isfinite(vectors).all():
            raise DataError("vectors: each must have at least one number, and all must be finite")
        vectors.flags.writeable = False


class DatasetPart(Protocol):
    """A data set as a scenario names it."""

    def load(self, data_dir: Path | None = None) -> Dataset:
        """Return the data set, or raise `DataError` if it is missing.

        Parameters
        ----------
        data_dir : folder of data sets, as `data_folder` takes it; None for that of the environment
        """
        ...


class PublishedPart(DatasetPart, Protocol):
    """A data set with published content, which ``fedsim data`` lists."""

    source: ClassVar[str]

    def where(self) -> str:
        """Return its file or folder in the data folder, or the library that it is a part of."""
        ...

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]: ...


DATASET_PART: Final = Contract("data set", DatasetPart, {"load": InstanceOf(Dataset)})


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Return the folder of data sets: the argument, else ``FEDSIM_DATA``, else the user's cache folder."""
    named = data_dir or os.environ.get("FEDSIM_DATA")
    return expanded(named, DataError) if named else user_cache()


class Limited(Component):
    """A data set that may be cut to its first samples.

    Attributes
    ----------
    train_limit : int >= 1, optional
        Number of training samples, the first ones in the order of the files (2,000 of MNIST's 60,000 in
        the PAUSE authors' ICASSP paper); the test set stays whole.
    """

    train_limit: Annotated[int, Field(ge=1)] | None = None

    def limited(self, data: Dataset) -> Dataset:
        limit = self.train_limit
        if limit is None:
            return data
        if limit > len(data.train_y):
            raise ScenarioError(
                f"learning.data.train_limit: {limit} is not allowed; the set has {len(data.train_y)} samples"
            )
        users = None if data.train_users is None else data.train_users[:limit]
        return replace(data, train_x=data.train_x[:limit], train_y=data.train_y[:limit], train_users=users)


class AlwaysThere(Limited):
    """A data set without files of its own in the data folder."""

    source: ClassVar[str] = "part of scikit-learn"
    place: ClassVar[str] = "scikit-learn"

    def where(self) -> str:
        return self.place

    def found(self, data_dir: Path | None = None) -> tuple[str, ...]:
        return (self.where(),)

    def available(self, data_dir: Path | None = None) -> bool:
        return True

    def load(self, data_dir: Path | None = None) -> Dataset:
        return self.limited(_made(self.model_copy(update={"train_limit": None})))

    @abstractmethod
    def read(self) -> Dataset:
        """Return the whole set."""


@functools.lru_cache(maxsize=4)
def _made(part: AlwaysThere) -> Dataset:
    return part.read()


DATASETS: Final = Registry(
    "data set",
    "fedsim.datasets",
    ("load",),
    {
        "digits": "fedsim.learning.data.images.digits:Digits",
        "diabetes": "fedsim.learning.data.diabetes:Diabetes",
        "mnist": "fedsim.learning.data.images.mnist:MNIST",
        "fashion-mnist": "fedsim.learning.data.images.mnist:FashionMNIST",
        "cifar-10": "fedsim.learning.data.images.cifar:CIFAR10",
        "cifar-100": "fedsim.learning.data.images.cifar:CIFAR100",
        "emnist": "fedsim.learning.data.images.emnist:EMNIST",
        "femnist": "fedsim.learning.data.images.femnist:FEMNIST",
        "omniglot": "fedsim.learning.data.images.omniglot:Omniglot",
        "spoken-digits": "fedsim.learning.data.sound.spoken_digits:SpokenDigits",
        "speech-commands": "fedsim.learning.data.sound.speech_commands:SpeechCommands",
        "mind": "fedsim.learning.data.text.news:MIND",
        "amazon-reviews": "fedsim.learning.data.text.reviews:AmazonReviews",
        "tiny-shakespeare": "fedsim.learning.data.text.plays:TinyShakespeare",
        "synthetic": "fedsim.learning.data.synthetic:Synthetic",
        "idx-files": "fedsim.learning.data.images.own_files:IdxFiles",
    },
    default="digits",
    foreign="fedsim.learning.data.handed:HandedData",
)
PUBLISHED: Final = tuple(kind for kind in DATASETS.builtin if kind != "idx-files")
"""Kinds that ``fedsim data`` lists: each is a `PublishedPart` with its default options."""
FETCHED: Final = ("mnist", "fashion-mnist", "cifar-10", "cifar-100")
"""Kinds that are downloaded on request, by `fedsim.learning.data.in_files.InFiles.download`."""


def _check_finite(name: str, numbers: NDArray[Any]) -> None:
    if numbers.dtype.kind == "f" and not (finite := np.isfinite(numbers)).all():
        row = int(finite.reshape(len(numbers), -1).all(1).argmin())
        raise DataError(f"{name}: numbers must be finite, of float32 at most 3.4e38; row {row} has others")
