"""From a log to a scenario: a law for each phase, the crowd's availability, and a simulation to compare with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.calibration.agreement import Agreement
from fedsim.calibration.clients import By
from fedsim.calibration.log import DURATIONS, Log, round_times_s, spans_of_rounds
from fedsim.calibration.phases import PhaseFit, fitted_phases
from fedsim.calibration.presence import Presence, presence
from fedsim.errors import FedsimError
from fedsim.history.outcomes import Outcome
from fedsim.scenario import Scenario
from fedsim.simulation import simulate

_CROWDS: Final = 5
"""Seeds with which a calibrated scenario is simulated, so that one draw of its clients does not decide."""
_LONGER: Final = 1.0 + 1e-9


@dataclass(frozen=True)
class Calibration:
    scenario: Scenario
    phases: tuple[PhaseFit, ...]
    presence: Presence
    agreements: tuple[Agreement, ...]
    notes: tuple[str, ...]


def calibrate(
    log: Log,
    *,
    by: By = "crowd",
    clients: int | None = None,
    samples: int = 100,
    base: Scenario | None = None,
    held_out: float = 0.2,
    rounds: int = 500,
    name: str = "calibrated",
) -> Calibration:
    _check(log, by, clients, held_out)
    crowd = max(len(log.names), int(log.candidates.max(initial=0))) if clients is None else clients
    notes = [*log.notes]
    if crowd > len(log.names) and by != "crowd":
        notes.append(f"{crowd - len(log.names)} clients have no participation: they are given the median client's laws")
    tables, phases, there, told = _fitted(log, by, crowd, samples)
    notes += [*told, *there.notes]
    rules, of_rules = _rules(log, there, crowd, base)
    notes += of_rules
    scenario = Scenario(name=name, **tables, **rules)
    return Calibration(
        scenario, phases, there, _compared(log, by, crowd, samples, rules, held_out, rounds), tuple(notes)
    )


def _check(log: Log, by: By, clients: int | None, held_out: float) -> None:
    if log.unknown:
        raise FedsimError(
            f"{log.unknown}, so that how long it takes is not known; allowed: a log in which some have ended it"
        )
    if clients is not None and clients < len(log.names):
        raise FedsimError(f"clients: {clients} is not allowed; the log has {len(log.names)} clients")
    if by == "class" and len(log.groups) == 1:
        raise FedsimError("by: 'class' is not allowed; the log has no column class with two values")
    several = np.flatnonzero(np.bincount(np.unique(np.stack([log.client, log.group]), axis=1)[0]) > 1)
    if by == "class" and several.size:
        raise FedsimError(
            f"class: client {log.names[several[0]]} has several; allowed: one for each client in all rows"
        )
    if not 0 <= held_out < 1:
        raise FedsimError(f"held_out: {held_out!r} is not allowed; it must be at least 0 and below 1")


def _fitted(
    log: Log, by: By, crowd: int, samples: int
) -> tuple[dict[str, Any], tuple[PhaseFit, ...], Presence, tuple[str, ...]]:
    """Return the tables of a scenario that a log decides, what they follow from, and notes."""
    there = presence(log, crowd)
    found = fitted_phases(log, by, crowd, samples)
    tables = {
        "crowd": {"clients": crowd},
        "learning": found.learning,
        "network": found.network,
        "devices": {"compute": found.compute, "availability": there.availability, "dropout": there.dropout},
    }
    return tables, found.phases, there, found.notes


def _rules(log: Log, there: Presence, crowd: int, base: Scenario | None) -> tuple[dict[str, Any], list[str]]:
    if base is not None:
        described = base.describe()
        return {"rounds": described["rounds"], "selector": described["selector"]}, []
    cohort, notes = min(10, crowd), []
    if log.round is not None:
        cohort = min(round(float(np.median(np.unique(log.round, return_counts=True)[1]))), crowd)
    else:
        notes.append(f"round missing: cohorts of {cohort} are simulated; --base FILE gives another selector")
    times_s = log.round_times_s()
    policy: dict[str, Any] = {"kind": "wait-for-all"}
    if there.lost or (log.outcome == Outcome.LATE).any():
        spent_s = np.nan_to_num(log.spent_s).sum(axis=0)
        longest_s = float(times_s.max()) if times_s.size else 10 * float(spent_s.max())
        which = "the longest round" if times_s.size else "ten times the longest participation"
        policy = {"kind": "deadline", "deadline_s": longest_s * _LONGER}
        notes.append(
            f"updates were late or lost: a deadline of {longest_s:.4g} s, {which}, is taken; "
            "--base FILE gives another policy"
        )
    if _overlap(log):
        notes.append("rounds overlap: --base FILE gives the policy of an asynchronous server")
    return {
        "rounds": {"count": max(log.rounds, 1), "policy": policy},
        "selector": {"kind": "uniform", "cohort": cohort},
    }, notes


def _overlap(log: Log) -> bool:
    if log.round is None or log.start_s is None or log.end_s is None or log.rounds < 2:
        return False
    began, ended = spans_of_rounds(log.round, log.start_s, log.end_s)
    return float(np.mean(began[1:] < ended[:-1])) > 0.5


def _compared(
    log: Log, by: By, crowd: int, samples: int, rules: Mapping[str, Any], held_out: float, rounds: int
) -> tuple[Agreement, ...]:
    first, last = log, None
    if log.round is not None and held_out > 0 and log.rounds > 1:
        numbers = np.unique(log.round)
        border = numbers[max(1, round((1 - held_out) * numbers.size)) - 1]
        early = log.part(log.round <= border)
        if (log.round > border).any() and not early.unknown:
            first, last = early, log.part(log.round > border)
    tables, *_ = _fitted(first, by, crowd, samples)
    crowds = 1 if by == "client" else min(_CROWDS, rounds)
    ran = [_simulated(tables, rules, seed, max(1, rounds // crowds)) for seed in range(crowds)]
    of_one, of_round = (np.concatenate(parts) for parts in zip(*ran, strict=True))
    found = []
    for title, part in (("", first), (", held out", last)):
        if part is None:
            continue
        done = part.outcome == Outcome.DELIVERED
        if done.any() and of_one.size:
            times_s = np.nan_to_num(part.spent_s[:, done]).sum(axis=0)
            found.append(Agreement.of(f"participations that delivered{title}", times_s, of_one))
        if (times_s := part.round_times_s()).size and of_round.size:
            found.append(Agreement.of(f"rounds{title}", times_s, of_round))
    return tuple(found)


def _simulated(
    tables: Mapping[str, Any], rules: Mapping[str, Any], seed: int, rounds: int
) -> tuple[FloatArray, FloatArray]:
    """Return how long each participation that delivered took, and each round."""
    ended = {**rules["rounds"], "count": rounds}
    ended.pop("until_s", None)
    history = simulate(Scenario(name="calibration", seed=seed, **tables, rounds=ended, selector=rules["selector"]))
    done = history.column("participations", "outcome") == "delivered"
    parts_s = [history.column("participations", name) for name in (*DURATIONS, "queue_s")]
    number, start_s, end_s = (history.column("participations", name) for name in ("round", "start_s", "end_s"))
    delivered_s = np.asarray(np.sum(parts_s, axis=0)[done], dtype=np.float64)
    return delivered_s, round_times_s(number, start_s, end_s) if number.size else np.zeros(0)
