"""Capacities over time, constant between given instants, that begin anew after a period or end; integrated exactly."""

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np

from fedsim.arrays import FloatArray, IntArray, count_until
from fedsim.errors import DataError
from fedsim.inputs.tables import After

_FOR_EVER_S: Final = 1e13
"""Beyond the latest second of a run."""
_SAME: Final = 1e-12
"""Share of the bits of a trace that a transfer may need beyond them, by rounding."""


@dataclass(frozen=True)
class Capacities:
    """The capacities of n traces, one after the other.

    Trace t has the edges ``first[t]`` to ``first[t + 1] - 1``: 0 first and its period last. `bits` are those carried
    from the start of the period until each edge, and `rate_bps` holds from each edge on. `length_s` is that of the
    rows of each trace. Where capacities end, nothing is carried after the period.
    """

    first: IntArray
    edge_s: FloatArray
    bits: FloatArray
    rate_bps: FloatArray
    length_s: FloatArray
    ends: bool = False

    @classmethod
    def of(cls, traces: list[tuple[FloatArray, FloatArray]], after: After = "repeat", where: str = "rates") -> Self:
        """Return capacities of traces, each given by k + 1 edges in seconds that rise from 0, and k rates in bit/s."""
        bits, length_s = [], np.array([edge_s[-1] for edge_s, _ in traces])
        if after == "hold":
            traces = [(np.append(edge_s[:-1], _FOR_EVER_S), rate_bps) for edge_s, rate_bps in traces]
        for number, (edge_s, rate_bps) in enumerate(traces):
            if not np.any(rate_bps > 0):
                raise DataError(f"{where}: trace {number} carries nothing; allowed: a rate above 0 at some time")
            bits.append(np.concatenate([[0.0], np.cumsum(np.diff(edge_s) * rate_bps)]))
        sizes = [edge_s.size for edge_s, _ in traces]
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([edge_s for edge_s, _ in traces]),
            np.concatenate(bits),
            np.concatenate([np.append(rate_bps, 0.0) for _, rate_bps in traces]),
            length_s,
            after != "repeat",
        )

    @property
    def traces(self) -> int:
        return self.first.size - 1

    @property
    def period_s(self) -> FloatArray:
        return self.edge_s[self.first[1:] - 1]

    @property
    def mean_bps(self) -> FloatArray:
        if not self.ends:
            return np.asarray(self.bits[self.first[1:] - 1] / self.period_s)
        return self.carried_bits(np.arange(self.traces), self.length_s) / self.length_s

    def carried_bits(self, trace: IntArray, phase_s: FloatArray) -> FloatArray:
        """Return the bits that each trace carries from its beginning to an instant within its period."""
        low, high = self.first[trace], self.first[trace + 1]
        edge = low + count_until(self.edge_s, low, high, phase_s) - 1
        return np.asarray(self.bits[edge] + self.rate_bps[edge] * (phase_s - self.edge_s[edge]))

    def between_bits(self, trace: IntArray, from_s: FloatArray, until_s: FloatArray) -> FloatArray:
        """Return the bits that each trace carries between two instants, from 0 on, of its repetitions."""
        period_s, whole = self.period_s[trace], self.bits[self.first[trace + 1] - 1]
        (loops, phase_s), (more, end_s) = (self._phase(time_s, period_s) for time_s in (from_s, until_s))
        carried = self.carried_bits(trace, end_s) - self.carried_bits(trace, phase_s)
        return np.asarray((more - loops) * whole + carried)

    def between_s(self, trace: IntArray, from_s: FloatArray, until_s: FloatArray) -> FloatArray:
        return until_s - from_s if self._carries is None else self._carries.between_bits(trace, from_s, until_s)

    @cached_property
    def _carries(self) -> "Capacities | None":
        """The same traces with a rate of 1 where they carry something; None where they do all the time."""
        rate = (self.rate_bps > 0).astype(np.float64)
        last = self.first[1:] - 1
        if not self.ends and np.delete(rate, last).all():
            return None
        # Trace by trace: beside the 1e13 s of a last rate that holds, a sum over all of them has no digits left.
        pieces = [slice(low, high - 1) for low, high in itertools.pairwise(self.first.tolist())]
        steps_s = np.append(np.diff(self.edge_s), 0.0) * rate
        seconds = np.concatenate([np.append(0.0, np.cumsum(steps_s[piece])) for piece in pieces])
        return replace(self, bits=seconds, rate_bps=rate)

    def transfer_s(self, trace: IntArray, start_s: FloatArray, bits: float | FloatArray) -> FloatArray:
        period_s, last = self.period_s[trace], self.first[trace + 1] - 1
        phase_s = self._phase(start_s, period_s)[1]
        target = self.carried_bits(trace, phase_s) + bits
        whole = self.bits[last]
        # Of the bits counted from the beginning of the period: those of whole repetitions, and above 0 a rest.
        loops = np.maximum(np.ceil(target / whole) - 1.0, 0.0)
        rest = np.clip(target - loops * whole, 0.0, whole)
        low = self.first[trace]
        edge = np.clip(low + count_until(self.bits, low, last + 1, np.nextafter(rest, -1.0)) - 1, low, last - 1)
        rate_bps = self.rate_bps[edge]
        # The piece in which the bits rise to the rest, so that its rate is above 0 but for bits of 0.
        within_s = np.divide(rest - self.bits[edge], rate_bps, out=np.zeros(rest.size), where=rate_bps > 0)
        end_s = np.minimum(self.edge_s[edge] + within_s, self.edge_s[edge + 1])
        took_s = np.maximum(loops * period_s + (end_s - phase_s), 0.0)
        if self.ends:
            took_s = np.where(target > whole * (1 + _SAME), np.inf, took_s)
        return np.where(np.broadcast_to(bits, took_s.shape) > 0, took_s, 0.0)

    def _phase(self, time_s: FloatArray, period_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the number of whole periods before each instant, and the rest, which is below the period."""
        if self.ends:
            return np.zeros(np.shape(time_s)), np.minimum(time_s, period_s)
        loops = np.floor(time_s / period_s)
        return loops, np.clip(time_s - loops * period_s, 0.0, np.nextafter(period_s, 0.0))
