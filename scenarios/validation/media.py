"""Shared media on the clock, and the slowest of many."""

import math
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from simpy import Environment, Event

from fedsim.devices import heterogeneity
from fedsim.network import Rayleigh, ShiftedExponential
from fedsim.network.medium.disciplines import Discipline, EqualSharing, FirstCome
from fedsim.network.medium.drawn import DrawnSpectrum
from fedsim.network.medium.drawn_rules import EqualBand
from fedsim.network.medium.multicast import LeastRate
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.radio.channel import Channel
from fedsim.streams import Streams
from validation import FloatArray, Row, mean_of, spread_of
from validation.radio import capacity

LOAD = 0.6
STRETCHES = 40


def queues(effort: float) -> Iterator[Row]:
    """Shared medium, load 0.6: how long transfers that come at random over a medium with load 0.6 take, in mean works.

    Processor sharing: 1 / (1 - load) for any law of work. First come, first served: Pollaczek and Khinchine. Little:
    the number present is the rate of coming times the time that each takes, on average, whatever the rule.
    """
    rng, number = np.random.default_rng(7), STRETCHES * round(800 * effort)
    exponential, constant = rng.exponential(1.0, number), np.ones(number)
    uneven = rng.exponential(np.where(rng.random(number) < 0.9, 0.5, 5.5))
    squares = 0.9 * 2 * 0.5**2 + 0.1 * 2 * 5.5**2
    laws = (("M/M/1", exponential, 2.0), ("M/D/1", constant, 1.0), ("M/G/1 hyperexponential", uneven, squares))
    for name, work, square in laws:
        shared_s, *_ = serve(EqualSharing(), work, 1)
        took_s, waited_s, present, present_s = serve(FirstCome(), work, 2)
        waits = LOAD * square / (2 * (1 - LOAD))
        yield mean_of(f"{name} processor sharing, mean sojourn", batches(shared_s), 1 / (1 - LOAD))
        yield mean_of(f"{name} first come (TDMA), mean sojourn", batches(took_s), 1 + waits)
        yield mean_of(f"{name} first come, mean wait (Pollaczek-Khinchine)", batches(waited_s), waits)
        yield mean_of(f"Little, {name} first come: mean number present", present, LOAD * (1 + waits))
        yield Row(f"Little, {name} first come: time present, summed", present_s, took_s.sum())


def batches(series: FloatArray) -> FloatArray:
    """Return the means of batches of a stationary series, which are nearly independent."""
    return np.asarray(series.reshape(STRETCHES, -1).mean(axis=1))


def serve(discipline: Discipline, work: FloatArray, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Let transfers come at random over a medium of 1 Hz until all have ended.

    Return how long each took and waited, how many were present on average in each stretch of the comings, and the time
    that all were present.
    """
    env = Environment()
    medium = SharedSpectrum(env, 1.0, discipline)
    gaps_s = np.random.default_rng(seed).exponential(1 / LOAD, work.size)
    took_s, waited_s = np.zeros(work.size), np.zeros(work.size)

    def transfer(i: int, after_s: float, bits: float) -> Generator[Event, Any, None]:
        yield env.timeout(after_s)
        flow = medium.send(bits, 1.0)
        yield flow.done
        took_s[i], waited_s[i] = env.now - after_s, flow.queued_s()

    for i, (after_s, bits) in enumerate(zip(np.cumsum(gaps_s).tolist(), work.tolist(), strict=True)):
        env.process(transfer(i, after_s, bits))
    stretch_s, present_s = float(gaps_s.sum()) / STRETCHES, [0.0]
    for stretch in range(1, STRETCHES + 1):
        env.run(until=stretch * stretch_s)
        present_s.append(medium.book().presence_s)
    env.run()
    return took_s, waited_s, np.diff(present_s) / stretch_s, medium.book().presence_s


def shares(effort: float) -> Iterator[Row]:
    """Shares: an upload over drawn fading beside seven others that go on, and one message to n clients, in bit/s/Hz.

    An upload of 50 blocks in an eighth of the band takes 50 blocks on average, and its coefficient of variation is that
    of the rate in one block over the square root of 50.
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
    for users in (2, 10):  # the least of n gains is exponential with mean 1/n
        one = Channel(np.full(users, 10.0), 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(18))
        pace, instants_s = LeastRate(one, np.arange(users), 0.0), 10.0 * np.arange(1 + round(400 * effort))
        carried = np.diff([pace.bits(at_s) for at_s in instants_s.tolist()]) / 10.0
        yield mean_of(f"multicast to {users} Rayleigh clients at 10 dB, rate", carried, capacity(10.0 / users))


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
