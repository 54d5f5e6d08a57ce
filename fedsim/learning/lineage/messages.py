"""What leaves a client: its difference, made private, with what earlier messages left out, compressed."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.learning.compression.compressors import COMPRESSOR, Compressor
from fedsim.learning.executors.contracts import OptimizerState
from fedsim.learning.lineage.behaviour import identity_of_rule
from fedsim.learning.lineage.digests import digest_of
from fedsim.learning.lineage.handles import LEFT_OUT, Training
from fedsim.learning.model_and_update import Release
from fedsim.learning.models.layout import ModelLayout
from fedsim.streams import Streams
from fedsim.units import BITS_PER_FLOAT32


@runtime_checkable
class _StatesNoise(Protocol):
    """A privacy mechanism that states the expected squared norm of its noise (`fedsim.privacy.StatedNoise`)."""

    def noise_energy(self, epsilon: float, buffers: Mask) -> float: ...


@runtime_checkable
class _TellsClipping(Protocol):
    """A privacy mechanism that gives a release without its noise (`fedsim.privacy.TellsClipping`)."""

    def clipped(self, update: Vector, buffers: Mask) -> Vector: ...


@runtime_checkable
class _AddsAtServer(Protocol):
    """A privacy mechanism whose noise the server adds to an aggregate (`fedsim.privacy.NoiseAtServer`)."""

    def aggregate_noise(
        self,
        epsilon: Sequence[float],
        client: Sequence[int],
        weight: Sequence[float],
        buffers: Mask,
        rng: np.random.Generator,
    ) -> FloatArray: ...


class Messages:
    """The messages of one run.

    A release is made first, and compressed then: no processing of a private release makes it less private. Buffers of
    the model are sent as they are.
    """

    part: Callable[[Training], Mask | None]

    def __init__(self, layout: ModelLayout, streams: Streams, mechanism: Any, compressor: Compressor) -> None:
        self.part = _whole
        self._layout, self._streams, self._mechanism = layout, streams, mechanism
        self._compressor = COMPRESSOR.checked(compressor)
        self.lossless: Final = self._compressor.lossless
        self._tensors = layout.tensors
        self.remembers: Final = not self.lossless and self._compressor.remembers
        self._identities = identity_of_rule(mechanism), identity_of_rule(compressor)
        buffers = BITS_PER_FLOAT32 * (layout.initial.size - layout.parameters)
        self.bits: Final = self._compressor.bits(self._tensors) + buffers

    def digest(self, training: Training) -> str:
        digest, release = training.work_digest, training.release
        if release is not None:
            noise = self._streams.digest("privacy-noise", training.client, release.index)
            digest = digest_of("release", digest, self._identities[0], release.epsilon, noise)
        if self.lossless:
            return digest
        draws = self._streams.digest("compression", training.client, training.base.version, training.repeat)
        return digest_of("compressed", digest, self._identities[1], draws)

    def memory_digest(self, release: Release | None) -> str:
        """Return the digest of what decides how a training changes its client's memory, beside the training."""
        told = () if release is None else (self._identities[0], release.epsilon, release.index)
        return digest_of("memory", self._identities[1], *told)

    def sent(self, training: Training) -> Vector:
        """Return what the server receives, the training having run, shape (d,)."""
        if training.outgoing is not None and training.outgoing.sent is not None:
            return training.outgoing.sent
        difference = training.difference
        if difference is None:
            raise RuntimeError(f"the difference of training {training.work_digest} is not in memory")
        released = self._released(training, difference, training.release)
        return released if self.lossless else self._compressed(training, released)

    def settle(self, training: Training, difference: Vector) -> OptimizerState:
        """Make the message of a client that remembers what was left out; return its memory after that, by name."""
        outgoing = training.outgoing
        if outgoing is None:
            return {}
        owed = self._released(training, difference, outgoing.release).copy()
        parameters, before = owed[: self._layout.parameters], training.left_out
        if before is not None:
            parameters += before
        outgoing.sent = self._compressed(training, owed)
        return {LEFT_OUT: parameters - outgoing.sent[: self._layout.parameters]}

    def noise_energy(self, update: Training) -> float:
        """Return the expected squared norm of the noise in an update before compression; NaN if it is not stated."""
        release, part = update.release, self.part(update)
        if release is None:
            return 0.0
        if not isinstance(self._mechanism, _StatesNoise):
            return math.nan
        parameters = self._layout.exempt[: self._layout.parameters]
        if part is not None:
            parameters = parameters[part[: self._layout.parameters]]
        return float(self._mechanism.noise_energy(release.epsilon, parameters))

    def server_noise(self, updates: Sequence[Training], weights: FloatArray) -> Callable[[], FloatArray] | None:
        """Return what draws the noise that a server adds to an aggregate, shape (d,); None where it adds none.

        It is drawn from the stream ``("server-noise", client, index)`` for the client and the release of the first
        update, which no other aggregate has.
        """
        mechanism = self._mechanism
        if mechanism is None or not isinstance(mechanism, _AddsAtServer):
            return None
        first = next((one for one in updates if one.release is not None), None)
        if first is None or first.release is None:
            return None
        client, index = first.client, first.release.index
        epsilon = [one.release.epsilon for one in updates if one.release is not None]
        clients = [one.client for one in updates]

        def draw() -> FloatArray:
            rng = self._streams.generator("server-noise", client, index)
            return mechanism.aggregate_noise(epsilon, clients, weights.tolist(), self._layout.exempt, rng)

        return draw

    @property
    def tells_clipping(self) -> bool:
        return self._mechanism is None or isinstance(self._mechanism, _TellsClipping)

    def before_noise(self, update: Training) -> tuple[Vector, bool]:
        """Return an update as the mechanism has clipped it, shape (d,), and whether that changed it.

        The training must have run. Neither what earlier messages left out nor compression is part of it.
        """
        difference = update.difference
        if difference is None:
            raise RuntimeError(f"the difference of training {update.work_digest} is not in memory")
        if update.release is None:
            return difference, False
        kept = np.asarray(self._mechanism.clipped(difference, self._layout.exempt), dtype=np.float32)
        return kept, not np.array_equal(kept, difference)

    def _released(self, training: Training, difference: Vector, release: Release | None) -> Vector:
        if release is None:
            return difference
        rng = self._streams.generator("privacy-noise", training.client, release.index)
        part = self.part(training)
        if part is None:
            sent = self._mechanism.release(difference, release.epsilon, self._layout.exempt, rng)
            return np.asarray(sent, dtype=np.float32)
        found = np.zeros_like(difference)
        found[part] = self._mechanism.release(difference[part], release.epsilon, self._layout.exempt[part], rng)
        return found

    def _compressed(self, training: Training, update: Vector) -> Vector:
        rng = self._streams.generator("compression", training.client, training.base.version, training.repeat)
        shown = update[: self._layout.parameters].view()
        shown.flags.writeable = False
        found = update.copy()
        found[: self._layout.parameters] = self._compressor.compress(shown, self._tensors, rng)
        return found


def _whole(training: Training) -> None:
    """Return None: all numbers are sent."""
