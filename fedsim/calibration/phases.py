"""Laws of downlink, compute and uplink, as tables of a scenario."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from fedsim.arrays import BoolArray, FloatArray
from fedsim.calibration.clients import By, Effects, effects
from fedsim.calibration.laws import EMPIRICAL, Fit, fit_law
from fedsim.calibration.log import Log
from fedsim.history.outcomes import COMPUTE, DOWNLINK, NOT_CUT, PHASES, UPLINK

_JITTERS: Final = ("log-normal", "shifted-exponential")
_ALIKE: Final = 0.5
"""Correlation of clients' centres down and up from which both directions are taken to share one factor."""
_LARGEST_FACTOR: Final = 1e6
FLOPS_PER_SAMPLE: Final = 1e6
"""A log says how long work takes; operations are such that clients' speeds are those of real devices."""


@dataclass(frozen=True)
class PhaseFit:
    phase: int
    fit: Fit
    effects: Effects


class Fitted(NamedTuple):
    network: dict[str, Any]
    compute: dict[str, Any]
    learning: dict[str, Any]
    phases: tuple[PhaseFit, ...]
    notes: tuple[str, ...]


def fitted_phases(log: Log, by: By, crowd: int, samples: int) -> Fitted:
    down, up = (_phase(log, phase, by, np.ones(log.client.size)) for phase in (DOWNLINK, UPLINK))
    per_client = np.full(len(log.names), samples) if log.samples is None else log.samples
    work = _phase(log, COMPUTE, by, log.work * per_client[log.client])
    network, notes = _network(down, up, by, crowd)
    compute, flops = _compute(work, by, crowd)
    counted: Any = samples
    if log.samples is not None:
        counted = _padded(log.samples.astype(np.float64), crowd, float(np.median(log.samples)))
        counted = [round(value) for value in counted]
        counted = counted[0] if len(set(counted)) == 1 else counted
    learning = {"kind": "none", "samples_per_client": counted, **flops}
    phases = (down, work, up)
    mostly_cut = [one for one in phases if one.effects.significant and one.fit.cut > one.fit.size / 2]
    notes += tuple(
        f"{PHASES[one.phase]}: {one.fit.cut / one.fit.size:.0%} of its times were cut short, and clients differ: times "
        "and spread are biased, the more the fewer each client has (at 70 %, 1.9 times too long with 4, right with 30)"
        for one in mostly_cut
    )
    return Fitted(network, compute, learning, phases, notes)


def _phase(log: Log, phase: int, by: By, per: FloatArray) -> PhaseFit:
    times_s = log.spent_s[phase] / per
    cut: BoolArray = log.cut_in == phase
    reached = (log.cut_in == NOT_CUT) | (log.cut_in >= phase)
    # A phase that was cut as it began says nothing.
    rows = reached & np.isfinite(times_s) & ~(cut & (times_s <= 0))
    if not (rows & ~cut).any():
        none = Effects(np.ones(len(log.names)), 0.0, 0.0, 0.0, np.zeros(0), np.zeros(len(log.names)), significant=False)
        return PhaseFit(phase, Fit("zero", {}), none)
    split = effects(times_s[rows], cut[rows], log.client[rows], log.group[rows], len(log.names), by)
    fit = fit_law(split.drawn_s, cut[rows], kinds=_JITTERS if phase == COMPUTE else None)
    # Another crowd has another mean of its clients' factors, by which all its times are longer or shorter.
    shift = split.spread_sigma / math.sqrt(np.unique(log.client[rows]).size)
    errors = {
        name: math.hypot(error, shift * fit.options[name]) if name.endswith("_s") else error
        for name, error in fit.errors.items()
    }
    return PhaseFit(phase, replace(fit, errors=errors), split)


def _network(down: PhaseFit, up: PhaseFit, by: By, crowd: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    table: dict[str, Any] = {"kind": "latency"}
    both = [one for one in (down, up) if one.effects.spread_sigma > 0]
    moving = [one for one in (down, up) if one.fit.kind != "zero"]
    shared = len(both) == len(moving) and (len(both) < 2 or _correlation(down.effects, up.effects) > _ALIKE)
    notes: tuple[str, ...] = ()
    if both and shared:
        table["spread_sigma"] = math.sqrt(float(np.mean([one.effects.spread_sigma**2 for one in both])))
    elif both:
        notes = ("clients are not fast and slow in both directions alike: each direction has a factor of its own",)
    for name, one in (("downlink", down), ("uplink", up)):
        spread = table.get("spread_sigma", 0.0)
        # The clients' factors have mean 1, and so the median exp(-sigma^2 / 2).
        table[name] = _scaled(one.fit, math.exp(spread**2 / 2))
        if by != "crowd":
            table[f"{name}_factor"] = _padded(one.effects.factor, crowd, 1.0)
        elif one.effects.spread_sigma > 0 and not shared:
            law = {"kind": "log-normal", "median": 1.0, "greatest": _LARGEST_FACTOR}
            table[f"{name}_factor"] = {**law, "sigma": one.effects.spread_sigma}
    return table, notes


def _correlation(one: Effects, other: Effects) -> float:
    if one.centre.std() == 0 or other.centre.std() == 0:
        return 0.0
    return float(np.corrcoef(one.centre, other.centre)[0, 1])


def _scaled(fit: Fit, factor: float) -> dict[str, Any]:
    scaled: dict[str, Any] = {}
    for name, value in fit.options.items():
        if name == "values_s":
            scaled[name] = [float(f"{factor * one:.7g}") for one in value]
        else:
            scaled[name] = value * factor if name.endswith("_s") else value
    return {"kind": fit.kind, **scaled}


def _compute(work: PhaseFit, by: By, crowd: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the table of a compute time, and what the learner must say of operations for it."""
    fit, split, options = work.fit, work.effects, work.fit.options
    if fit.kind == "zero":
        return {"kind": "zero"}, {}
    if fit.kind in ("constant", "log-normal"):
        sigma = options.get("sigma", 0.0)
        # The jitter has mean 1, and so the median exp(-sigma^2 / 2).
        speed = math.exp(-(sigma**2) / 2) / options["value_s" if fit.kind == "constant" else "median_s"]
        table: dict[str, Any] = {"kind": "rate", "samples_per_s": _speeds(speed, split, by, crowd)}
        return {**table, "spread_sigma": split.spread_sigma, "jitter_sigma": sigma}, {}
    jitter, mean_s = _jitter(options)
    speed = FLOPS_PER_SAMPLE * math.exp(-(split.spread_sigma**2) / 2) / mean_s
    spread = {"kind": "log-normal", "sigma": split.spread_sigma} if split.spread_sigma else {"kind": "fixed"}
    table = {"kind": "flops", "flops_per_s": _speeds(speed, split, by, crowd)}
    return {**table, "spread": spread, "jitter": jitter}, {"flops_per_sample": FLOPS_PER_SAMPLE}


def _speeds(speed: float, split: Effects, by: By, crowd: int) -> float | list[float]:
    return speed if by == "crowd" else [speed / factor for factor in _padded(split.factor, crowd, 1.0)]


def _jitter(options: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Return a law of factors with mean 1, and the mean of the times."""
    if "values_s" in options:
        mean_s = float(np.mean(options["values_s"]))
        return {"kind": EMPIRICAL, "values": [float(f"{value / mean_s:.7g}") for value in options["values_s"]]}, mean_s
    mean_s = options["shift_s"] + options["scale_s"]
    return {"kind": "shifted-exponential", "shift": options["shift_s"] / mean_s}, mean_s


def _padded(values: FloatArray, crowd: int, missing: float) -> list[float]:
    found = np.full(crowd, missing)
    found[: values.size] = values
    return [float(f"{value:.7g}") for value in found]
