"""A shared medium on the clock as a queue: transfers that come at random."""

from collections.abc import Generator, Iterator

import numpy as np
from simpy import Environment, Event

from fedsim.network.medium.disciplines import Discipline, EqualSharing, FirstCome
from fedsim.network.medium.spectrum import SharedSpectrum
from validation import FloatArray, Row, mean_of

LOAD, STRETCHES = 0.6, 40  # means over stretches of the comings are nearly independent


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
        yield mean_of(f"{name} processor sharing, mean sojourn", shared_s.mean(axis=1), 1 / (1 - LOAD))
        yield mean_of(f"{name} first come (TDMA), mean sojourn", took_s.mean(axis=1), 1 + waits)
        yield mean_of(f"{name} first come, mean wait (Pollaczek-Khinchine)", waited_s.mean(axis=1), waits)
        yield mean_of(f"Little, {name} first come: mean number present", present, LOAD * (1 + waits))
        yield Row(f"Little, {name} first come: time present, summed", present_s, took_s.sum())


def serve(discipline: Discipline, work: FloatArray, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Let transfers come at random over a medium of 1 Hz until all have ended.

    Return how long each took and waited, by stretch the mean number present, and the time that all were present.
    """
    env = Environment()
    medium = SharedSpectrum(env, 1.0, discipline)
    gaps_s = np.random.default_rng(seed).exponential(1 / LOAD, work.size)
    took_s, waited_s = np.zeros((2, STRETCHES, work.size // STRETCHES))

    def transfer(i: int, after_s: float, bits: float) -> Generator[Event]:
        yield env.timeout(after_s)
        flow = medium.send(bits, 1.0)
        yield flow.done
        took_s.flat[i], waited_s.flat[i] = env.now - after_s, flow.queued_s()

    for i, (after_s, bits) in enumerate(zip(np.cumsum(gaps_s).tolist(), work.tolist(), strict=True)):
        env.process(transfer(i, after_s, bits))
    stretch_s, present_s = float(gaps_s.sum()) / STRETCHES, [0.0]
    for stretch in range(1, STRETCHES + 1):
        env.run(until=stretch * stretch_s)
        present_s.append(medium.book().presence_s)
    env.run()
    return took_s, waited_s, np.diff(present_s) / stretch_s, medium.book().presence_s
