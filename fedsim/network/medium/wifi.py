"""How stations of a wireless LAN share a channel: equal packets for each, and contention that grows with them.

G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE J. Sel. Areas Commun.
18(3), 2000: n saturated stations, each with a window that doubles after a collision, and collisions that are
independent of the window. All frames last equally long.
"""

from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, ClassVar

from pydantic import Field

from fedsim.network.medium.disciplines import EqualSharing, Job
from fedsim.units import Seconds

_HALVINGS = 200


@lru_cache(maxsize=2**14)
def transmission_probability(stations: int, window: int, doublings: int) -> float:
    """Return tau, the probability that a station transmits in a slot; equations 7 and 9.

    ``tau = 2 (1 - 2p) / ((1 - 2p) (W + 1) + p W (1 - (2p)^m))`` falls with p, and ``p = 1 - (1 - tau)^(n - 1)`` rises
    with tau, so that there is one solution.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        tau = (low + high) / 2
        collides = 1.0 - (1.0 - tau) ** (stations - 1)
        # The factor (1 - (2p)^m) / (1 - 2p) is the sum of (2p)^i, also at p = 1/2.
        windows = sum((2.0 * collides) ** i for i in range(doublings))
        if tau < 2.0 / (window + 1 + collides * window * windows):
            low = tau
        else:
            high = tau
        if high - low <= 1e-15 * high:
            break
    return (low + high) / 2


@dataclass(frozen=True)
class Contention:
    """The times of a channel on which stations contend."""

    frame_s: float
    overhead_s: float
    idle_slot_s: float
    window: int
    doublings: int

    def carried_share(self, stations: int) -> float:
        """Return the share of time in which payload is carried; equation 13."""
        tau = transmission_probability(stations, self.window, self.doublings)
        idle = (1.0 - tau) ** stations
        success = stations * tau * (1.0 - tau) ** (stations - 1)
        slot_s = idle * self.idle_slot_s + (1.0 - idle) * (self.frame_s + self.overhead_s)
        return success * self.frame_s / slot_s


_DENOMINATOR_BITS = 1074


class RateFair(EqualSharing):
    """Equal rates in bit/s for all jobs present, so that airtime is divided in proportion to work per bit.

    Stations that take turns with packets of one size all have the rate of ``1 / sum(1 / r_k)``, where r_k is the rate
    that station k would have alone. The slowest one holds all back (Heusse, Rousseau, Berger-Sabbatel and Duda,
    "Performance anomaly of 802.11b", IEEE INFOCOM 2003).

    The virtual clock counts bits.
    """

    size_of: "ClassVar[attrgetter[float]]" = attrgetter("bits")

    def __init__(self) -> None:
        super().__init__()
        # Work per bit of all jobs present, as a whole number of the smallest floats, so that a sum has no rounding.
        self._exact, self._per_bit = 0, 0.0
        # The work of now over that of one station, bits of a job for the whole time of the channel, and those before
        # each job joined.
        self._share, self._occupied_bits, self._from_bits = 1.0, 0.0, dict[Job, float]()

    def join(self, job: Job) -> None:
        super().join(job)
        self._count(_whole(job.work / job.bits))
        if self.counts_air:
            self._from_bits[job] = self._occupied_bits

    def leave(self, job: Job) -> None:
        if job in self._virtual_finish:
            self._count(-_whole(job.work / job.bits))
            self._from_bits.pop(job, None)
        super().leave(job)

    def advance(self, work: float) -> None:
        bits = work / self._per_bit
        self._virtual_time += bits
        if self.counts_air:
            self._occupied_bits += bits / self._share

    def served(self, job: Job) -> float:
        return (self._virtual_time - (self._virtual_finish[job] - job.bits)) * (job.work / job.bits)

    def occupied(self, job: Job) -> float:
        """Return the job's part of the channel's time, of which collisions and backoff take theirs too."""
        return (self._occupied_bits - self._from_bits[job]) * (job.work / job.bits)

    def next_end(self) -> tuple[float, Job]:
        left, job = self._first_left()
        return left * self._per_bit, job

    def _count(self, change: int) -> None:
        self._exact += change
        self._per_bit = self._exact / 2**_DENOMINATOR_BITS


def _whole(number: float) -> int:
    """Return a float as a whole number of the smallest floats."""
    numerator, denominator = number.as_integer_ratio()
    return numerator << (_DENOMINATOR_BITS - denominator.bit_length() + 1)


class Dcf(RateFair):
    """Equal rates, and a channel that loses time to collisions and backoff as more stations contend.

    The work per second is that of one station alone, times ``S(n) / S(1)`` with Bianchi's saturation throughput S for
    the n stations present: what a station alone loses to backoff is part of the rate. Frames last `frame_s` on
    average. For uplinks: an access point that sends to n clients contends alone.

    Parameters
    ----------
    frame_s : payload of a frame; the defaults are those of the preset ``wifi``
    overhead_s : preamble (40 us), SIFS (16 us), acknowledgement (28 us) and DIFS (34 us)
    idle_slot_s : an idle slot
    window : number of values of a first backoff
    doublings : how often the window doubles after collisions
    """

    def __init__(
        self,
        frame_s: Annotated[Seconds, Field(ge=1e-6, le=1.0)] = 2e-3,
        overhead_s: Annotated[Seconds, Field(ge=0, le=1.0)] = 118e-6,
        idle_slot_s: Annotated[Seconds, Field(ge=1e-9, le=1.0)] = 9e-6,
        window: Annotated[int, Field(ge=2, le=2**16)] = 16,
        doublings: Annotated[int, Field(ge=0, le=16)] = 6,
    ) -> None:
        super().__init__()
        self.frame_s, self.overhead_s, self.idle_slot_s = frame_s, overhead_s, idle_slot_s
        self.window, self.doublings = window, doublings
        self._contention = Contention(frame_s, overhead_s, idle_slot_s, window, doublings)

    def rate_hz(self, bandwidth_hz: float) -> float:
        self._share = _share_of_one(self._contention, max(1, len(self._virtual_finish)))
        return bandwidth_hz * self._share


@lru_cache(maxsize=2**14)
def _share_of_one(contention: Contention, stations: int) -> float:
    return contention.carried_share(stations) / contention.carried_share(1)
