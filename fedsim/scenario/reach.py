"""Deadlines, and times until clients are given up, that are shorter than any client takes on average."""

import math
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.clock import TIE
from fedsim.code_digest import is_builtin
from fedsim.rounds import Run
from fedsim.rounds.policies.adaptive import MovingAverage
from fedsim.scenario.scenario import Scenario

MOST_CLIENTS: Final = 100_000
"""Crowds beyond which expected times take longer to compute than such a note is worth."""
_ENOUGH: Final = 0.9
_FAR: Final = 100.0
"""Times the median beyond which a client is out of reach: a deadline for it would be absurd."""
_LONGEST_S: Final = 365 * 86_400.0
_WAITS: Final = {
    "deadline_s": "deadline",
    "longest_s": "deadline",
    "max_wait_s": "wait",
    "give_up_s": "time until it is given up",
}
"""Fields of policies that limit how long one waits for a client."""


def too_late(scenario: Scenario, run: Run) -> tuple[str, ...]:
    """Return a sentence if the mean participation of each client is longer than the policy waits; nothing otherwise."""
    policy, rounds = scenario.rounds.policy, scenario.rounds
    parts = (scenario.network, scenario.devices.compute, policy, *rounds.effects)
    if not all(is_builtin(type(part)) for part in parts):
        return ()
    waits_s = {name: value for name, value in policy if name in _WAITS and value is not None}
    if isinstance(policy, MovingAverage) and policy.growth == 1:
        waits_s["initial_s"] = policy.initial_s  # the moving average never rises
    if not waits_s or scenario.crowd.clients > MOST_CLIENTS:
        return ()
    name, limit_s = next(iter(waits_s.items()))
    what = _WAITS.get(name, "deadline")
    if name != "give_up_s" and (policy.traits.overlaps_rounds or not rounds.late.cancels):
        return ()
    samples, (down_s, work_s, up_s) = run.workload.learner.samples, run.expected_s
    works = samples > 0 if samples.any() else np.ones(samples.size, dtype=bool)
    whole_s = (down_s + work_s + up_s)[works]
    if whole_s.min() <= limit_s * (1 + TIE):
        return ()
    phases = {"work": work_s, "downlink": down_s, "uplink": up_s}
    told = ", ".join(f"{name} {_range(values[works])} s" for name, values in phases.items())
    return (
        f"rounds.policy: no client delivers within the {what} on average: {told}; {what.split()[0]} {limit_s:g} s; "
        f"{_way_out(name, whole_s)}",
    )


def _way_out(name: str, whole_s: FloatArray) -> str:
    """Return a limit for nine of ten clients, or for those within reach where they are fewer."""
    median_s = float(np.quantile(whole_s, 0.5, method="lower"))
    if median_s > _LONGEST_S:
        return "links carry nothing" if np.isinf(median_s) else "links carry next to nothing"
    within = whole_s <= _FAR * median_s
    if within.mean() >= _ENOUGH:
        enough_s, others = float(np.quantile(whole_s, _ENOUGH, method="higher")), ""
    else:
        enough_s, others = (
            float(whole_s[within].max()),
            f" (over {_FAR:g} times the median: {np.sum(~within)})",
        )
    share = min(_ENOUGH, float(within.mean()))
    return f"rounds.policy.{name} = {_rounded_up(enough_s):g} would do for {share:.0%} of them{others}"


def _rounded_up(value_s: float) -> float:
    """Return the next greater number of two digits."""
    unit = 10.0 ** (math.floor(math.log10(value_s)) - 1)
    return math.ceil(value_s / unit * (1 - TIE)) * unit


def _range(values_s: FloatArray) -> str:
    least, greatest = values_s.min(), values_s.max()
    return f"{least:.3g}" if f"{least:.3g}" == f"{greatest:.3g}" else f"{least:.3g} to {greatest:.3g}"
