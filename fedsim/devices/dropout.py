"""Laws of dropout: lost connections, closed applications, phones put away."""

from typing import ClassVar, Self

import numpy as np
from pydantic import model_validator

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices.contracts import Dropout
from fedsim.registry import Component, Registry
from fedsim.streams import Streams
from fedsim.units import NonNegative, PerSecond, Positive

DROPOUTS = Registry(
    "dropout law",
    "fedsim.dropouts",
    ("time_to_dropout_s", "phase_hazards"),
    {
        "never": "fedsim.devices.dropout:Never",
        "hazard": "fedsim.devices.dropout:Hazard",
        "phase-hazard": "fedsim.devices.dropout:PhaseHazard",
    },
    attributes=("possible",),
)


class Never(Component, Dropout):
    """No client vanishes.

    Examples
    --------
    >>> from fedsim.streams import Streams
    >>> Never().time_to_dropout_s(np.array([0, 3]), 1, Streams(0)).tolist()
    [inf, inf]
    """

    possible: ClassVar[bool] = False

    def time_to_dropout_s(
        self, client: IntArray, draw: int, streams: Streams, phases_s: FloatArray | None = None
    ) -> FloatArray:
        return np.full(np.shape(client), np.inf)


class Hazard(Component, Dropout):
    """A constant hazard: a participation of t seconds survives with probability ``exp(-rate_per_s * t)``.

    Attributes
    ----------
    rate_per_s : dropouts per second of participation

    Examples
    --------
    >>> from fedsim.streams import Streams
    >>> life_s = Hazard(rate_per_s=0.1).time_to_dropout_s(np.arange(10_000), 1, Streams(0))
    >>> bool(abs(life_s.mean() - 10.0) < 0.3), bool(abs((life_s > 5.0).mean() - np.exp(-0.1 * 5.0)) < 0.02)
    (True, True)
    """

    rate_per_s: Positive[PerSecond]

    def time_to_dropout_s(
        self, client: IntArray, draw: int, streams: Streams, phases_s: FloatArray | None = None
    ) -> FloatArray:
        return self.endurance(client, draw, streams) / self.rate_per_s


class PhaseHazard(Component, Dropout):
    """A constant hazard in each phase: radio links break and phones are put away at rates of their own.

    A participation survives with probability ``exp(-(sum of rate times duration))`` over its three phases. The
    instant of the dropout is the one at which the summed hazard reaches an exponential number of mean 1. Where the
    duration of a phase is not known in advance, its hazard counts from the instant at which it begins.

    Attributes
    ----------
    downlink_per_s, compute_per_s, uplink_per_s : dropouts per second in each phase; at least one above 0
    """

    downlink_per_s: NonNegative[PerSecond]
    compute_per_s: NonNegative[PerSecond]
    uplink_per_s: NonNegative[PerSecond]

    @model_validator(mode="after")
    def _some_hazard(self) -> Self:
        if not any(self.phase_hazards()):
            raise ValueError("all rates are 0; allowed: at least one above 0, or the kind 'never'")
        return self

    def phase_hazards(self) -> tuple[float, float, float]:
        return self.downlink_per_s, self.compute_per_s, self.uplink_per_s

    def time_to_dropout_s(
        self, client: IntArray, draw: int, streams: Streams, phases_s: FloatArray | None = None
    ) -> FloatArray:
        if phases_s is None:
            raise ValueError("phases_s: a hazard by phase needs the planned times of the phases")
        left = self.endurance(client, draw, streams)
        began_s, gone_s = np.zeros(left.shape), np.full(left.shape, np.inf)
        for rate, duration_s in zip(self.phase_hazards(), (*phases_s[:2], np.full(left.shape, np.inf)), strict=True):
            if rate > 0:
                now = np.isinf(gone_s) & (left < rate * duration_s)
                gone_s = np.where(now, began_s + left / rate, gone_s)
                left = np.where(now, left, left - rate * duration_s)
            began_s = began_s + duration_s
        return gone_s
