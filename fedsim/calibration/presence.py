"""Availability and dropout of the crowd, from a log.

A participation in which the client was not lost is a waiting time that was cut short: the rate of losses is their
number over the time of all participations, and its standard error the rate over the root of that number.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.calibration.log import Log
from fedsim.errors import DataError
from fedsim.history.outcomes import PHASES, Outcome


@dataclass(frozen=True)
class Presence:
    availability: dict[str, Any]
    dropout: dict[str, Any]
    errors: dict[str, float]
    share: float | None
    lost: int
    notes: tuple[str, ...]


def presence(log: Log, clients: int) -> Presence:
    spent_s = np.nan_to_num(log.spent_s)
    lost = log.outcome == Outcome.DROPPED
    number, total_s = int(lost.sum()), float(spent_s.sum())
    if number and total_s == 0:
        raise DataError("outcome: clients were lost, and no participation took time: there is no rate of losses")
    rate = number / total_s if number else 0.0
    share = float(log.candidates.mean()) / clients if log.candidates.size else None
    always, never = {"kind": "always"}, {"kind": "never"}
    if share is not None and share < 1:
        if not number:
            least = max(share, 1e-6)
            error = math.sqrt(least * (1 - least) / (log.candidates.size * clients))
            return Presence({"kind": "bernoulli", "probability": least}, never, {"probability": error}, share, 0, ())
        on_s = 1 / rate
        off_s = on_s * (1 - share) / max(share, 1e-9)
        errors = {"mean_on_s": on_s / math.sqrt(number), "mean_off_s": _off_error(log, clients, on_s, off_s, number)}
        return Presence({"kind": "markov", "mean_on_s": on_s, "mean_off_s": off_s}, never, errors, share, number, ())
    notes = () if share is not None else ("no table of rounds: all clients are taken to be there when they are asked",)
    if not number:
        return Presence(always, never, {}, share, 0, notes)
    in_phase_s, lost_in = spent_s.sum(axis=1), np.bincount(log.cut_in[lost].clip(0), minlength=len(PHASES))
    # Akaike's criterion of one rate for each phase, and of one for all; a loss in a phase without time has no rate.
    known = bool(np.all(in_phase_s[lost_in > 0] > 0))
    apart = sum(n * math.log(n / time_s) for n, time_s in zip(lost_in, in_phase_s, strict=True) if n and time_s > 0)
    if known and 2 * (apart - number * math.log(rate)) > 2 * (np.count_nonzero(in_phase_s) - 1):
        rates = {
            f"{phase}_per_s": float(n / time_s) if time_s > 0 else 0.0
            for phase, n, time_s in zip(PHASES, lost_in, in_phase_s, strict=True)
        }
        errors = {
            name: value / math.sqrt(n) for (name, value), n in zip(rates.items(), lost_in.tolist(), strict=True) if n
        }
        return Presence(always, {"kind": "phase-hazard", **rates}, errors, share, number, notes)
    errors = {"rate_per_s": rate / math.sqrt(number)}
    return Presence(always, {"kind": "hazard", "rate_per_s": rate}, errors, share, number, notes)


def _off_error(log: Log, clients: int, on_s: float, off_s: float, lost: int) -> float:
    """Return the standard error of the mean time off, from those of the time on and of the share of time on.

    The state of a client is independent of its past after ``1 / (1 / on + 1 / off)`` seconds: rounds that follow one
    another sooner count less.
    """
    share, memory_s = on_s / (on_s + off_s), on_s * off_s / (on_s + off_s)
    length_s = math.inf
    if log.start_s is not None and log.end_s is not None:
        length_s = float(log.end_s.max() - log.start_s.min())
    looks = max(1.0, min(log.candidates.size, length_s / (2 * memory_s))) * clients
    odds_error = math.sqrt(share * (1 - share) / looks) / share**2
    return off_s * math.sqrt(1 / lost + (odds_error / ((1 - share) / share)) ** 2)
