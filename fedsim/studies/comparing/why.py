"""Why one variant is slower than another: seconds are rounds times the seconds of a round, by what these are spent on.

The difference of a pair is parted without a rest: that of the rounds counts with the mean seconds of a round of both,
and that of each part of a round with the mean rounds of both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fedsim.history import History
from fedsim.history.analyses.explaining import PART_NAMES, PARTS
from fedsim.studies.comparing.pairs import Interval, t_interval
from fedsim.studies.study import StudyError
from fedsim.units import counted, in_seconds

NAMES: Final = {"rounds": "number of rounds"} | PART_NAMES


@dataclass(frozen=True)
class Why:
    """The paired difference in seconds of a variant less the baseline, by factor, each with its interval."""

    variant: str
    baseline: str
    pairs: int
    difference: float
    interval: Interval
    factors: Mapping[str, tuple[float, Interval]]
    note: str = ""

    @property
    def sentence(self) -> str:
        if not self.pairs:
            return f"Why {self.variant!r} differs from {self.baseline!r} is not known: {self.note}."
        ranked = sorted(self.factors.items(), key=lambda item: -abs(item[1][0]))
        shown = [f"{NAMES[name]} {mean:+.3g} s{_half(ends)}" for name, (mean, ends) in ranked if abs(mean) > 1e-9]
        how = "slower than" if self.difference > 0 else "faster than" if self.difference else "apart from"
        by = f"{in_seconds(abs(self.difference))} s{_half(self.interval)} {how} {self.baseline!r}"
        return f"{self.variant!r} is {by} ({counted(self.pairs, 'pair')}): {', '.join(shown) or 'no factor differs'}."


def why(runs: Mapping[str, Mapping[int, History]], baseline: str, level: float = 0.95) -> list[Why]:
    """Return why each variant is slower or faster to the target of its scenario than the baseline."""
    if baseline not in runs or len(runs) < 2:
        raise StudyError(f"why: {baseline!r} with nothing beside it is not allowed; allowed: two variants or more")
    return [_why(runs[baseline], of, baseline, name, level) for name, of in runs.items() if name != baseline]


def _why(first: Mapping[int, History], second: Mapping[int, History], baseline: str, variant: str, level: float) -> Why:
    pairs = [
        first[seed].explain(second[seed], **first[seed].goal.asked).to_pylist() for seed in first if seed in second
    ]
    missed = sum(False in (one["reached"], other["reached"]) for one, other in pairs)
    parted = [_parted(*pair) for pair in pairs if None not in (pair[0]["waiting_s"], pair[1]["waiting_s"])]
    note = "no pair has rounds of which each update belongs to one"
    if missed:
        goal = next(iter(first.values())).goal
        note = f"{missed} of {len(pairs)} pairs have a run that does not reach {goal} in its own rounds"
    if missed or not parted:
        return Why(variant, baseline, 0, np.nan, Interval(), {}, note)
    values = np.array(parted)
    factors = {
        name: (float(values[:, i].mean()), t_interval(values[:, i], level)) for i, name in enumerate(("rounds", *PARTS))
    }
    total = values.sum(axis=1)
    return Why(variant, baseline, len(parted), float(total.mean()), t_interval(total, level), factors)


def _parted(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[float]:
    rounds = (one["rounds"] + other["rounds"]) / 2
    of_rounds = (other["rounds"] - one["rounds"]) * (one["round_s"] + other["round_s"]) / 2
    return [of_rounds, *(rounds * (other[name] - one[name]) for name in PARTS)]


def _half(ends: Interval) -> str:
    return "" if np.isnan(ends.half) else f" +- {ends.half:.2g}"
