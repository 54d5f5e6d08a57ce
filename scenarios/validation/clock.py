"""Shared media on the clock, outages, and devices that straggle."""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from simpy import Environment, Event

from fedsim.devices import heterogeneity
from fedsim.network import ShiftedExponential
from fedsim.network.graph.graph import Graph
from fedsim.network.graph.links import GraphLinks
from fedsim.network.medium.disciplines import Discipline, EqualSharing, FirstCome, MinimumMakespan
from fedsim.network.medium.fluid import Fluid
from fedsim.network.medium.graph import GraphMedium
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.topology.flow_state import Route
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from validation import FloatArray, Row, batch_mean_of, exact, mean_of, off_by

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
    for name, work in (("M/M/1", exponential), ("M/D/1", constant), ("M/G/1 hyperexponential", uneven)):
        served = serve(EqualSharing(), work, 1)
        yield batch_mean_of(f"{name} processor sharing, mean sojourn", served.took_s, 1 / (1 - LOAD))
        if work is exponential:
            yield from little("M/M/1 processor sharing", served, LOAD / (1 - LOAD))
    squares = 0.9 * 2 * 0.5**2 + 0.1 * 2 * 5.5**2
    for name, work, square in (("M/D/1", constant, 1.0), ("M/G/1 hyperexponential", uneven, squares)):
        served, waits = serve(FirstCome(), work, 2), LOAD * square / (2 * (1 - LOAD))
        yield batch_mean_of(f"{name} first come (TDMA), mean sojourn", served.took_s, 1 + waits)
        yield batch_mean_of(f"{name} first come, mean wait (Pollaczek-Khinchine)", served.waited_s, waits)
        if work is uneven:
            yield from little("M/G/1 first come", served, LOAD * (1 + waits))


def little(name: str, served: Served, theory: float) -> Iterator[Row]:
    """Yield Little's law on the path that was run, and for the mean number present in the long run."""
    yield exact(f"Little, {name}: time present, summed", served.present_s, float(served.took_s.sum()))
    yield mean_of(f"Little, {name}: mean number present", served.present, theory)


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


def shares(_effort: float) -> Iterator[Row]:
    """Shared links: rates of three flows over a line of two links, and the makespan of a known cohort."""
    fluid = Fluid(Environment(), np.array([10.0, 6.0]))
    flows = [fluid.begin(1e9, Route(links, (1.0,) * len(links), 0.0)) for links in ((0, 1), (0,), (1,))]
    # The second link is the narrower: 3 and 3, which leaves 7 of the first.
    for name, flow, rate in zip(("long flow", "flow on 10", "flow on 6"), flows, (3.0, 7.0, 3.0), strict=True):
        yield exact(f"max-min on a line of 10 and 6: {name}", flow.rate_bps(), rate)
    env = Environment()
    medium = SharedSpectrum(env, 4.0, MinimumMakespan())
    cohort = [medium.send(bits, efficiency).done for bits, efficiency in ((8.0, 2.0), (9.0, 1.0), (3.0, 3.0))]
    env.run(until=cohort[0])
    yield exact("minimum makespan of works 4, 9, 1 over 4 Hz", env.now, 14 / 4)


class WatchedMedium(GraphMedium):
    """Links that record when they turn good or bad: (instant, factor of the capacity) by the first link."""

    def __init__(self, env: Environment, links: GraphLinks, streams: Streams) -> None:
        self.turns: dict[int, list[tuple[float, float]]] = {}
        super().__init__(env, links.attach(), streams, links.edge_routes)

    def scale(self, links: Sequence[int], cause: int, factor: float) -> None:
        """Record the turn, and turn."""
        self.turns.setdefault(links[0], []).append((self.env.now, factor))
        super().scale(links, cause, factor)


def bursts(effort: float) -> Iterator[Row]:
    """Outage bursts: sojourns of a Gilbert-Elliott link, from the first ones of each link, and what it carries."""
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
    streams = Streams(4)
    medium = WatchedMedium(env, cast(GraphLinks, network.build(RunSetup.at(np.zeros((clients, 2)), streams))), streams)
    for number_of, failure in enumerate(network.trouble):
        failure.start(medium, number_of)
    flows = [medium.uplink(client, 1e12) for client in range(clients)]
    env.run(until=until_s)
    lengths: dict[float, list[float]] = {0.0: [], 1.0: []}
    for turns in medium.turns.values():
        for state, length in lengths.items():
            stays = [end - start for (start, factor), (end, _) in pairwise(turns) if factor == state]
            length.extend(stays[:number])
    yield mean_of("Gilbert-Elliott mean sojourn, good", np.array(lengths[1.0]), good_s)
    yield mean_of("Gilbert-Elliott mean sojourn, bad", np.array(lengths[0.0]), bad_s)
    carried = np.array([flow.sent_bits() / until_s for flow in flows])
    # The share of time of an alternating process has the variance 2 (g b)^2 / (g + b)^3 / t, for exponential sojourns.
    error = math.sqrt(2 * (good_s * bad_s) ** 2 / (good_s + bad_s) ** 3 / until_s / clients)
    yield off_by("Gilbert-Elliott share carried", carried.mean(), 0.8, error)


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
