"""Clip and noise: a privacy mechanism as a step of an update."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.answers import unchecked
from fedsim.arrays import FloatArray, Mask, Vector
from fedsim.identity import copied, identity
from fedsim.learning.contracts import Release
from fedsim.learning.models.layout import ModelLayout
from fedsim.learning.steps.contracts import Message, Sender, StepRun, UpdateStep
from fedsim.privacy.central import NoiseAtServer
from fedsim.privacy.mechanisms import NoisesStatistics, StatedNoise, TellsClipping
from fedsim.streams import Streams


@dataclass(frozen=True)
class Releases:
    """Brings the step of a mechanism."""

    mechanism: Any

    def update_steps(self, run: StepRun) -> Sequence[UpdateStep]:
        return [ClipAndNoise(copied(self.mechanism), run.layout, run.streams)]


class ClipAndNoise(UpdateStep):
    """A mechanism on the trained numbers, and on statistics where it asks for them."""

    releases = True

    def __init__(self, mechanism: Any, layout: ModelLayout, streams: Streams) -> None:
        self._mechanism, self._layout, self._streams, self._identity = mechanism, layout, streams, identity(mechanism)
        # A checked part is asked for what it has not, and fails.
        whole = isinstance(unchecked(mechanism), NoisesStatistics) and mechanism.noise_statistics
        self._covered = slice(layout.initial.size if whole else layout.parameters)

    @property
    def made_of(self) -> object:
        return self._mechanism

    @property
    def note(self) -> str:
        """Statistics that no noise protects."""
        count = self._layout.initial.size - self._layout.parameters
        asked = isinstance(unchecked(self._mechanism), NoisesStatistics)
        if not count or (asked and self._mechanism.noise_statistics):
            return ""
        more = "; mechanism.noise_statistics = true gives them noise" if asked else ""
        return (
            f"privacy: {count:,} running statistics are averaged in clear, so that the guarantee is that of the "
            f"{self._layout.parameters:,} trained numbers alone{more}"
        )

    def acts_on(self, release: Release | None) -> bool:
        return release is not None

    def identity(self, sender: Sender) -> Sequence[str | bytes | float]:
        release = sender.release
        if release is None:
            return ()
        return self._identity, release.epsilon, self._streams.digest("privacy-noise", sender.client, release.index)

    def client(self, message: Message) -> None:
        release = message.sender.release
        if release is None:
            return
        rng = self._streams.generator("privacy-noise", message.sender.client, release.index)
        found = message.numbers.copy()
        covered, exempt, part = found[self._covered], self._layout.exempt[self._covered], message.part
        if part is None:
            covered[:] = self._mechanism.release(message.numbers[self._covered], release.epsilon, exempt, rng)
        else:
            held = part[self._covered]
            covered[held] = self._mechanism.release(covered[held], release.epsilon, exempt[held], rng)
        message.numbers = found

    def server(self, senders: Sequence[Sender], weights: FloatArray) -> Callable[[], FloatArray] | None:
        """Return what draws the mechanism's noise, if the server adds it.

        It is drawn from the stream ``("server-noise", client, index)`` for the client and the release of the first
        update, which no other aggregate has.
        """
        mechanism = self._mechanism
        first = next((one for one in senders if one.release is not None), None)
        if not isinstance(mechanism, NoiseAtServer) or first is None or first.release is None:
            return None
        client, index = first.client, first.release.index
        epsilon = [one.release.epsilon for one in senders if one.release is not None]
        clients = [one.client for one in senders]

        def draw() -> FloatArray:
            rng, noise = self._streams.generator("server-noise", client, index), np.zeros(self._layout.initial.size)
            exempt = self._layout.exempt[self._covered]
            noise[self._covered] = mechanism.aggregate_noise(epsilon, clients, weights.tolist(), exempt, rng)
            return noise

        return draw

    def noise_energy(self, release: Release, part: Mask | None) -> float:
        if not isinstance(self._mechanism, StatedNoise):
            return math.nan
        exempt = self._layout.exempt[: self._layout.parameters]
        held = exempt if part is None else exempt[part[: self._layout.parameters]]
        return float(self._mechanism.noise_energy(release.epsilon, held))

    @property
    def tells_clipping(self) -> bool:
        return isinstance(self._mechanism, TellsClipping)

    def clipped(self, update: Vector) -> Vector:
        found = update.copy()
        found[self._covered] = self._mechanism.clipped(update[self._covered], self._layout.exempt[self._covered])
        return found
