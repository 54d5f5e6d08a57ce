"""What the clients of one cohort are to do, and what has become of each, as arrays."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray, all_equal, filled, positions
from fedsim.history.outcomes import NOT_CUT, PHASES
from fedsim.network import Links
from fedsim.per_client import Values, is_one


@lru_cache(maxsize=16)
def _codes(size: int) -> NDArray[np.int8]:
    """Return the outcomes of n members at the start of a cohort, and the phases in which they are cut, shape (2, n)."""
    codes = np.zeros((2, size), dtype=np.int8)
    codes[1] = NOT_CUT
    return codes


class Look(NamedTuple):
    """When clients were found available: the instant, and the draw of availability that held then."""

    time_s: float
    draw: int


class Plan:
    """A message down, local work and a message up for each of the n members of a cohort, and what has become of each.

    Members are named by their positions. Effects may change `bits`, `samples`, `compute_s` and `work` before the cohort
    is sent (`Effect.plan`), and `work` until it is due (`Effect.due`).

    Attributes
    ----------
    client : ids, shape (n,)
    number, draw : round, and the key of the random numbers: the round too if no client is sent twice in it
    look : for which the clients were found available
    bits : sizes of the message down and of the message up, each one number or of shape (n,)
    samples, compute_s : samples and seconds of the whole work, shape (n,)
    work : share of the whole work that each member does, shape (n,)
    deadline_s : instant after which the server does not wait, inf for none
    start_s : instant at which the cohort is sent
    cohort : what the selector has prescribed for these clients; None for a question or another message
    question : what a message asks for; None for others
    drawn, silent : samples that members have drawn, and those without any, which send a message without bits; None
        where none draw
    counted : samples by which updates are weighted, shape (n,); None for those of the clients
    level : place of the part of the model that each trains, 0 for the whole, shape (n,); None where all train the whole
    releases, number_releases, spent : by position, what has been charged when a message up began
    update : whether the message up is an update, not a response to a question
    ends_together : whether nothing depends on when a member ends but the whole cohort's delivery and the deadline
    waits_for_all, why_all : whether the server waits for all members, and what else is allowed
    links : of this cohort alone; None for those of the run
    cpu_frequency, transmit_power_dbm : share of the full clock frequency, and radiated power; None for the usual
    on_upload : called with a position when its message up begins
    begun_s : instant at which each phase was due, shape (3, n); NaN where unknown
    queue_s, setup_s, spent_s : seconds in each phase of waiting, of setting up, and of setting up and doing it, each of
        shape (3, n); until a member ends, those planned, inf where unknown
    counts_air : whether an effect asks for the seconds on the air of transfers over a shared medium
    on_air_s : those seconds of downlink and uplink, shape (2, n), of phases that have ended
    sent_bits : bits carried down and up, shape (2, n); until a member ends, those planned
    end_s, outcome, cut_in : end of each participation, how it ended, and the phase in which it was cut short
    cause : by position, the effect that has ended a participation
    notes : what each effect stores for this cohort
    columns : what effects add to the records of participations, by name, each of shape (n,)
    """

    deadline_s: float = math.inf
    cohort: Any = None
    question: Any = None
    drawn: Any = None
    silent: BoolArray | None = None
    counted: NDArray[Any] | None = None
    level: IntArray | None = None
    update: bool = True
    counts_air: bool = False
    ends_together: bool = False
    waits_for_all: bool = False
    why_all: str = "the policy waits for every client; choose one with a deadline"
    links: Links | None = None
    cpu_frequency: FloatArray | None = None
    transmit_power_dbm: FloatArray | None = None
    on_upload: Callable[[int], None] | None = None
    end_s: FloatArray
    outcome: NDArray[np.int8]
    cut_in: NDArray[np.int8]

    def __init__(
        self,
        client: IntArray,
        number: int,
        draw: int,
        look: Look,
        *,
        bits: tuple[Values, Values],
        samples: FloatArray,
        compute_s: FloatArray,
        work: FloatArray | None = None,
    ) -> None:
        self.client, self.number, self.draw, self.look = client, number, draw, look
        self.bits, self.samples, self.compute_s = list(bits), samples, compute_s
        self.work = np.ones(client.size) if work is None else work
        self.start_s = math.nan
        self.notes: dict[Any, Any] = {}
        self.cause: dict[int, Any] = {}
        self.columns: dict[str, NDArray[Any]] = {}
        self.releases: dict[int, Any] = {}
        self.number_releases: dict[int, Any] = {}
        self.spent: dict[int, float] = {}

    def begin(self, now_s: float, known: int = 0) -> None:
        """Start now; the phases from one on have no times yet, and those before it get theirs at once."""
        size = self.client.size
        self.start_s = now_s
        amounts = np.zeros((16, size))
        self.queue_s, self.setup_s, self.begun_s, self.spent_s = amounts[:3], amounts[3:6], amounts[6:9], amounts[9:12]
        if known < len(PHASES):
            self.begun_s[known:].fill(math.nan)
            self.spent_s[known:].fill(math.inf)
        self.sent_bits, self.on_air_s = amounts[12:14], amounts[14:]
        self.outcome, self.cut_in = _codes(size).copy()

    @property
    def everyone(self) -> IntArray:
        return positions(self.client.size)

    def bits_of(self, phase: int, members: IntArray) -> FloatArray:
        bits = self.bits[phase // 2]
        return filled(members.size, bits) if is_one(bits) else np.asarray(bits)[members]

    def flows_s(self, phase: int, members: IntArray | int | slice) -> FloatArray:
        """Return the instants at which members begin to work, or their bits to flow."""
        waits_s = self.queue_s[phase, members] + self.setup_s[phase, members]
        flows_s: FloatArray = self.begun_s[phase, members] + waits_s
        return flows_s

    @property
    def works_whole(self) -> bool:
        return all_equal(self.work, 1.0)

    def whole_s(self, members: IntArray | slice = slice(None)) -> FloatArray:
        """Return the seconds of the three phases together, waits included; inf where unknown."""
        downlink_s, compute_s, uplink_s = (self.queue_s + self.spent_s)[:, members]
        whole_s: FloatArray = downlink_s + compute_s + uplink_s
        return whole_s
