"""Laws of clients: the slowest of many, who is online, and sessions beside those of a published sample."""

import math
from collections.abc import Iterator

import numpy as np

from fedsim.devices import heterogeneity
from fedsim.devices.availability.diurnal import Diurnal
from fedsim.devices.availability.flash import Flash
from fedsim.devices.availability.on_off import Markov
from fedsim.network import ShiftedExponential
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from validation import PUBLISHED, Row, mean_of, share_of
from validation.sample import BY_HOUR, DAY_S, FACTS, watch
from validation.sessions import statistics


def stragglers(effort: float) -> Iterator[Row]:
    """Stragglers: the mean of the largest of n shifted exponential times, ``shift + scale H_n``."""
    for n in (10, 100):
        u = Streams(11).uniform("latency", np.arange(n), np.arange(round(20_000 * effort))[:, None])
        harmonic = sum(1 / k for k in range(1, n + 1))
        largest_s = ShiftedExponential(shift_s=0.5, scale_s=2.0).quantile(u).max(axis=1)
        yield mean_of(f"largest of {n} latencies 0.5 s + Exp(2 s)", largest_s, 0.5 + 2 * harmonic)
        factor = heterogeneity.ShiftedExponential(shift=0.4).factor(u).max(axis=1)
        yield mean_of(f"largest of {n} compute factors 0.4 + Exp(0.6)", factor, 0.4 + 0.6 * harmonic)


def online(effort: float) -> Iterator[Row]:
    """Availability: shares online that laws are given: a Markov chain, and hours of the day at their middles."""
    everyone = np.arange(round(20_000 * effort))
    markov = Markov(mean_on_s=30.0, mean_off_s=90.0).build(RunSetup(everyone.size, Streams(8)))
    yield share_of("on/off Markov, share online", markov.available(everyone, 5e3, 1), 0.25)
    law = Diurnal().build(RunSetup(everyone.size, Streams(12)))
    for day, hour in ((0, 0), (0, 4), (0, 8), (0, 12), (0, 16), (0, 20), (2, 4), (2, 12)):
        there = law.available(everyone, day * DAY_S + (hour + 0.5) * 3600.0, 1)
        yield share_of(f"diurnal, share online at {hour}:30 of day {day + 1}", there, BY_HOUR[hour])


def flash(effort: float) -> Iterator[Row]:
    """Availability generated against published samples: all statistics of the FLASH sample.

    The generator's numbers were fitted to these, so the rows say how well that went. The simulated value is the mean
    over the generated samples; the error is that of one sample, as the published one is, and of the mean:
    ``sd * sqrt(1 + 1 / samples)``.
    """
    groups, users = max(12, round(24 * effort)), PUBLISHED["flash"]["users"]
    found = [statistics(watch(Flash().build(RunSetup(users, Streams(seed))), users, seed)) for seed in range(groups)]
    for name, fact in FACTS.items():
        values = np.array([sample[name] for sample in found])
        yield Row(f"FLASH {name}", values.mean(), fact, values.std(ddof=1) * math.sqrt(1 + 1 / groups))
