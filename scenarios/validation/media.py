"""Shared media on the clock, and the slowest of many."""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from simpy import Environment, Event

from fedsim.devices import heterogeneity
from fedsim.network import Rayleigh, ShiftedExponential
from fedsim.network.medium.disciplines import Discipline, EqualSharing, FirstCome
from fedsim.network.medium.drawn import DrawnSpectrum
from fedsim.network.medium.drawn_rules import EqualBand
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.radio.channel import Channel
from fedsim.streams import Streams
from validation import FloatArray, Row, batch_mean_of, mean_of, spread_of
from validation.radio import capacity

LOAD = 0.6
STRETCHES = 40


@dataclass(frozen=True)
class Served:
    """What became of transfers over one medium."""

    took_s: FloatArray
    waited_s: FloatArray
    present: FloatArray
    present_s: float


def queues(effort: float) -> Iterator[Row]:
    """Shared medium, load 0.6: how long transfers that come at random over a medium with load 0.6 take, in mean works.

    Processor sharing: 1 / (1 - load) for any law of work. First come, first served: Pollaczek and Khinchine. Little:
    the number present is the rate of coming times the time that each takes, on average, whatever the rule.
    """
    rng, number = np.random.default_rng(7), 40 * round(800 * effort)
    exponential, constant = rng.exponential(1.0, number), np.ones(number)
    uneven = rng.exponential(np.where(rng.random(number) < 0.9, 0.5, 5.5))
    squares = 0.9 * 2 * 0.5**2 + 0.1 * 2 * 5.5**2
    laws = (("M/M/1", exponential, 2.0), ("M/D/1", constant, 1.0), ("M/G/1 hyperexponential", uneven, squares))
    for name, work, square in laws:
        shared, queued = serve(EqualSharing(), work, 1), serve(FirstCome(), work, 2)
        waits = LOAD * square / (2 * (1 - LOAD))
        yield batch_mean_of(f"{name} processor sharing, mean sojourn", shared.took_s, 1 / (1 - LOAD))
        yield batch_mean_of(f"{name} first come (TDMA), mean sojourn", queued.took_s, 1 + waits)
        yield batch_mean_of(f"{name} first come, mean wait (Pollaczek-Khinchine)", queued.waited_s, waits)
        yield mean_of(f"Little, {name} first come: mean number present", queued.present, LOAD * (1 + waits))
        yield Row(f"Little, {name} first come: time present, summed", queued.present_s, queued.took_s.sum())


def serve(discipline: Discipline, work: FloatArray, seed: int) -> Served:
    """Let transfers come at random over a medium of 1 Hz until all have ended."""
    env = Environment()
    medium = SharedSpectrum(env, 1.0, discipline)
    gaps = np.random.default_rng(seed).exponential(1 / LOAD, work.size)
    took, waited = np.zeros(work.size), np.zeros(work.size)
    present_s = [0.0]

    def transfer(i: int, bits: float) -> Generator[Event, Any, None]:
        came_s, flow = env.now, medium.send(bits, 1.0)
        yield flow.done
        took[i], waited[i] = env.now - came_s, flow.queued_s()

    def arrivals() -> Generator[Event, Any, None]:
        for i, (gap, bits) in enumerate(zip(gaps.tolist(), work.tolist(), strict=True)):
            yield env.timeout(gap)
            env.process(transfer(i, bits))

    def watch() -> Generator[Event, Any, None]:
        for _ in range(STRETCHES):
            yield env.timeout(float(gaps.sum()) / STRETCHES)
            present_s.append(medium.book().presence_s)

    env.process(arrivals())
    env.process(watch())
    env.run()
    present = np.diff(present_s) * STRETCHES / gaps.sum()
    return Served(took, waited, present, medium.book().presence_s)


def shares(effort: float) -> Iterator[Row]:
    """Shares: an upload over drawn fading beside seven others that go on.

    One of 50 blocks in an eighth of the band takes 50 blocks on average, and its coefficient of variation is that of
    the rate in one block over the square root of 50.
    """
    channel = Channel(np.full(8, 10.0), 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(19))
    env = Environment()
    medium = DrawnSpectrum(env, channel, EqualBand(channel))
    for client in range(1, 8):
        medium.send(client, 1e12)
    ends_s = [0.0]
    for _ in range(round(1500 * effort)):
        env.run(until=medium.send(0, 50 * capacity(10.0) / 8).done)
        ends_s.append(env.now)
    took, rate = np.diff(ends_s), channel.rate_bps(0, np.arange(100_000))
    yield mean_of("upload of 50 blocks in an equal share of 8, mean in blocks", took, 50.0)
    deviation = float(rate.std() / rate.mean()) * math.sqrt(50)
    yield spread_of("upload of 50 blocks in an equal share of 8, deviation", took, deviation)


def stragglers(effort: float) -> Iterator[Row]:
    """Stragglers: the mean of the largest of n shifted exponential times, ``shift + scale H_n``."""
    rounds = round(20_000 * effort)
    for n in (10, 100):
        u = Streams(11).uniform("latency", np.arange(n), np.arange(rounds)[:, None])
        harmonic = sum(1 / k for k in range(1, n + 1))
        largest_s = ShiftedExponential(shift_s=0.5, scale_s=2.0).quantile(u).max(axis=1)
        yield mean_of(f"largest of {n} latencies 0.5 s + Exp(2 s)", largest_s, 0.5 + 2 * harmonic)
        factor = heterogeneity.ShiftedExponential(shift=0.4).factor(u).max(axis=1)
        yield mean_of(f"largest of {n} compute factors 0.4 + Exp(0.6)", factor, 0.4 + 0.6 * harmonic)
