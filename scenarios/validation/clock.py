"""Shared media on the clock, outages, and devices that come, go and straggle."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from simpy import Environment, Event

from fedsim.devices.diurnal import DAY_S
from fedsim.devices.flash import Flash
from fedsim.devices.onoff import Markov, Renewal
from fedsim.devices.spread import ShiftedExponentialSpread
from fedsim.network import ShiftedExponential
from fedsim.network.fluid import Fluid, Route
from fedsim.network.graph import Graph, GraphAir, GraphLinks
from fedsim.network.sharing import EqualSharing, FinishTogether, FirstCome
from fedsim.network.spectrum import Medium
from fedsim.streams import Streams
from validation import FloatArray, Row, batch_mean_of, exact, mean_of, quantile_of, share_of

LOAD = 0.6


def queues(effort: float) -> Iterator[Row]:
    """Yield mean sojourns of transfers that come at random over a medium with load 0.6, in mean works.

    Processor sharing: 1 / (1 - load) for any law of work; first come, first served: Pollaczek and Khinchine.
    """
    rng, number = np.random.default_rng(7), 40 * round(800 * effort)
    exponential, constant = rng.exponential(1.0, number), np.ones(number)
    uneven = rng.exponential(np.where(rng.random(number) < 0.9, 0.5, 5.5))
    for name, work in (("M/M/1", exponential), ("M/D/1", constant), ("M/G/1 hyperexponential", uneven)):
        yield batch_mean_of(f"{name} processor sharing, mean sojourn", sojourns(EqualSharing, work, 1), 1 / (1 - LOAD))
    squares = 0.9 * 2 * 0.5**2 + 0.1 * 2 * 5.5**2
    for name, work, square in (("M/D/1", constant, 1.0), ("M/G/1 hyperexponential", uneven, squares)):
        theory = 1 + LOAD * square / (2 * (1 - LOAD))
        yield batch_mean_of(f"{name} first come (TDMA), mean sojourn", sojourns(FirstCome, work, 2), theory)


def sojourns(make: Callable[[Environment, float], Medium], work: FloatArray, seed: int) -> FloatArray:
    """Return how long each transfer takes from its coming to its end."""
    env = Environment()
    medium = make(env, 1.0)
    gaps = np.random.default_rng(seed).exponential(1 / LOAD, work.size)
    took = np.zeros(work.size)

    def transfer(i: int, bits: float) -> Generator[Event, Any, None]:
        came_s = env.now
        yield medium.send(bits, 1.0).done
        took[i] = env.now - came_s

    def arrivals() -> Generator[Event, Any, None]:
        for i, (gap, bits) in enumerate(zip(gaps.tolist(), work.tolist(), strict=True)):
            yield env.timeout(gap)
            env.process(transfer(i, bits))

    env.process(arrivals())
    env.run()
    return took


def shares(_effort: float) -> Iterator[Row]:
    """Yield rates of three flows over a line of two links, and the makespan of a known cohort."""
    fluid = Fluid(Environment(), np.array([10.0, 6.0]))
    flows = [fluid.begin(1e9, Route(links, (1.0,) * len(links), 0.0)) for links in ((0, 1), (0,), (1,))]
    # The second link is the narrower: 3 and 3, which leaves 7 of the first.
    for name, flow, rate in zip(("long flow", "flow on 10", "flow on 6"), flows, (3.0, 7.0, 3.0), strict=True):
        yield exact(f"max-min on a line of 10 and 6: {name}", flow.rate_bps(), rate)
    env = Environment()
    medium = FinishTogether(env, 4.0)
    cohort = [medium.send(bits, efficiency).done for bits, efficiency in ((8.0, 2.0), (9.0, 1.0), (3.0, 3.0))]
    env.run(until=cohort[0])
    yield exact("minimum makespan of works 4, 9, 1 over 4 Hz", env.now, 14 / 4)


class WatchedAir(GraphAir):
    """Links that write down when they turn good or bad: (instant, factor of the capacity) by the first link."""

    def __init__(self, env: Environment, links: GraphLinks) -> None:
        self.turns: dict[int, list[tuple[float, float]]] = {}
        super().__init__(env, links)

    def scale(self, links: Sequence[int], cause: int, factor: float) -> None:
        """Write down the turn, and turn."""
        self.turns.setdefault(links[0], []).append((self.env.now, factor))
        super().scale(links, cause, factor)


def bursts(effort: float) -> Iterator[Row]:
    """Yield sojourns of a Gilbert-Elliott link, from the first ones of each link, and what it carries."""
    clients, good_s, bad_s, number = 8, 4.0, 1.0, round(400 * effort)
    until_s = 2 * number * (good_s + bad_s)
    network = Graph.model_validate(
        {
            "topology": {"kind": "star", "backhaul": {"capacity_bps": 1e9, "delay_s": 0.0}},
            "access": {"downlink_bps": 1.0, "uplink_bps": 1.0, "delay_s": 0.0},
            "trouble": [{"kind": "outage-bursts", "mean_good_s": good_s, "mean_bad_s": bad_s}],
        }
    )
    env = Environment()
    air = WatchedAir(env, network.build(np.zeros((clients, 2)), Streams(4)))
    flows = [air.uplink(client, 1e12) for client in range(clients)]
    env.run(until=until_s)
    lengths: dict[float, list[float]] = {0.0: [], 1.0: []}
    for turns in air.turns.values():
        for state, length in lengths.items():
            stays = [end - start for (start, factor), (end, _) in pairwise(turns) if factor == state]
            length.extend(stays[:number])
    yield mean_of("Gilbert-Elliott mean sojourn, good", np.array(lengths[1.0]), good_s)
    yield mean_of("Gilbert-Elliott mean sojourn, bad", np.array(lengths[0.0]), bad_s)
    carried = np.array([flow.sent_bits() / until_s for flow in flows])
    # The share of time of an alternating process has the variance 2 (g b)^2 / (g + b)^3 / t, for exponential sojourns.
    share, error = (
        float(carried.mean()),
        math.sqrt(2 * (good_s * bad_s) ** 2 / (good_s + bad_s) ** 3 / until_s / clients),
    )
    yield Row("Gilbert-Elliott share carried", share, 0.8, (share - 0.8) / error)


def presence(effort: float) -> Iterator[Row]:
    """Yield shares of time online and lengths of sessions.

    Of the generator `flash` beside the 1,000-user sample of the FLASH trace (locked, charging and on WiFi; Yang et
    al., WWW 2021): 29 % of the users are never online, the others are for 9.5 % of the time on average; half of all
    sessions last up to 181 s, nine tenths up to 4,530 s.
    """
    clients = round(10_000 * effort)
    there = Markov(mean_on_s=30.0, mean_off_s=90.0).build(clients, Streams(8)).available(np.arange(clients), 5e3, 1)
    yield share_of("on/off Markov, share online", there, 0.25)
    generator = Flash().build(clients, Streams(9))
    instants = (np.arange(0.0, 12 * DAY_S, 3600.0) + 1800.0).tolist()
    online = np.mean([generator.available(np.arange(clients), instant, 1) for instant in instants], axis=0)
    yield mean_of("flash: share of time online, all users", online, 0.71 * 0.095)
    kept = round(600 * effort)
    steady = Flash(never_share=0.0, diurnal=False).build(kept, Streams(10))
    sessions = np.array([length for client in range(kept) for length in first_sessions(steady, client, 8)])
    yield quantile_of("flash: median session in s", sessions, 0.5, 181.0)
    yield quantile_of("flash: 90 % of sessions, in s", sessions, 0.9, 4530.0)


def first_sessions(who: Renewal, client: int, number: int) -> list[float]:
    """Return the lengths of a client's first sessions that begin after time 0, going from change to change."""
    one, time_s, lengths = np.array([client]), 0.0, list[float]()
    while len(lengths) < number:
        there, left_s = who.state(one, time_s)
        if there[0] and time_s > 0:
            lengths.append(float(left_s[0]))
        time_s = float(np.nextafter(time_s + left_s[0], np.inf))
    return lengths


def stragglers(effort: float) -> Iterator[Row]:
    """Yield the mean of the largest of n shifted exponential times, ``shift + scale H_n``."""
    rounds = round(20_000 * effort)
    for n in (10, 100):
        u = Streams(11).uniform("latency", np.arange(n), np.arange(rounds)[:, None])
        harmonic = sum(1 / k for k in range(1, n + 1))
        largest_s = ShiftedExponential(shift_s=0.5, scale_s=2.0).quantile(u).max(axis=1)
        yield mean_of(f"largest of {n} latencies 0.5 s + Exp(2 s)", largest_s, 0.5 + 2 * harmonic)
        factor = ShiftedExponentialSpread(shift=0.4).factor(u).max(axis=1)
        yield mean_of(f"largest of {n} compute factors 0.4 + Exp(0.6)", factor, 0.4 + 0.6 * harmonic)
