"""What a cell carries: walls as drawn, modulation and coding, and media whose rate depends on all clients' fading."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from simpy import Environment

from fedsim.arrays import IntArray
from fedsim.network import Cell, ModulationAndCoding, NoFading, Rayleigh, UrbanMacro
from fedsim.network.cell.links import CellLinks
from fedsim.network.medium.drawn import DrawnSpectrum
from fedsim.network.medium.drawn_rules import EqualBand, FairTime
from fedsim.network.radio.channel import SHANNON_LIMIT, Channel
from fedsim.network.radio.shares.multiuser_diversity import efficiency_of_best
from fedsim.registry import Component
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import thermal_noise_dbm
from validation import (
    PUBLISHED,
    FloatArray,
    Row,
    capacity,
    exact,
    mean_of,
    one_after_other,
    share_of,
    spread_of,
    tabulated,
)

QUADRATURE: Final = 1e-7

CQI: Final = PUBLISHED["cqi"]


def walls(effort: float) -> Iterator[Row]:
    """Walls of buildings: mean and deviation of what one adds to the outdoor loss, TR 38.901, clause 7.4.3.1.

    Behind the wall of table 7.4.3-2 lie d metres at 0.5 dB, the lesser of two numbers uniform up to 25 m (mean 25/3,
    variance 25^2/18), and a normal rest of 4.4 or 6.5 dB; the cell's shadowing indoors has 7 dB (table 7.5-6).
    """
    clients, distance_m = round(200_000 * effort), 500.0
    low = 5 - 10 * math.log10(0.3 * 10**-0.24 + 0.7 * 10**-1.3)  # 2 GHz: glass 2.4 dB, concrete 13 dB
    high = 5 - 10 * math.log10(0.7 * 10**-2.36 + 0.3 * 10**-1.3)  # glass that reflects infrared 23.6 dB
    for seed, (name, share, wall, rest) in enumerate((("low", 0.0, low, 4.4), ("high", 1.0, high, 6.5)), 40):
        law = UrbanMacro(carrier_hz=2e9, indoor_share=1.0, high_loss_share=share)
        streams, mean = Streams(seed), wall + 0.5 * 25 / 3
        drawn = law.draw(np.full(clients, distance_m), 0, streams)
        outdoors = np.where(drawn.los, law.los_loss_db(distance_m), law.nlos_loss_db(distance_m))
        inside = math.sqrt(rest**2 + 0.25 * 25**2 / 18)
        yield mean_of(f"{name}-loss building as drawn, mean in dB", drawn.loss_db - outdoors, mean)
        yield spread_of(f"{name}-loss building as drawn, sigma in dB", drawn.loss_db - outdoors, inside)
        place = np.column_stack([np.full(clients, distance_m), np.zeros(clients)])
        _, loss = Cell(path_loss=law).losses(place, np.zeros((1, 2)), streams)
        yield spread_of(f"{name}-loss building in a cell, sigma in dB", loss[:, 0] - outdoors, math.hypot(inside, 7.0))


def coding(effort: float) -> Iterator[Row]:
    """Modulation and coding, in bit/s/Hz: entries as printed, block errors, retransmissions, fading.

    An entry of efficiency e is taken from the SNR ``(2^e - 1) * gap`` on, where a tenth of its blocks fails; the odds
    of a failure, 1/9, fall by ``exp(-steepness)`` per dB, and Chase combining decodes attempt n at n times the SNR.
    """
    for name, table in CQI.items():
        clean = ModulationAndCoding.model_validate({"table": name, "overhead": 0.0, "steepness_per_db": 200.0})
        for cqi, (bits, rate, efficiency) in enumerate(table, 1):
            snr = np.array((2 ** (bits * rate / 1024) - 1) * 10**0.3 * 10**0.01)  # 0.1 dB above 3 dB from Shannon
            carried = float(clean.efficiency(snr))
            yield tabulated(f"CQI {cqi} ({name}), bit/s/Hz without errors", carried, efficiency, 4)
    efficiency = 490 * 4 / 1024
    snr = np.array((2**efficiency - 1) * 10**0.3 * (1 + 1e-12))
    alone = ModulationAndCoding(combining=False, attempts=4, overhead=0.0)
    # Four attempts that each fail with 0.1: what arrives, over what is sent.
    theory = efficiency * (1 - 0.1**4) / (1 + 0.1 + 0.1**2 + 0.1**3)
    yield exact("CQI 8 at its threshold, four attempts alone", float(alone.efficiency(snr)), theory)
    twice = ModulationAndCoding(attempts=2, steepness_per_db=0.5, backoff_s=3e-3, block_s=1e-3, overhead=0.14)
    second = math.exp(-0.5 * 10 * math.log10(2)) / 9
    second /= 1 + second
    theory = 0.86 * efficiency * (1 - 0.1 * second) / (1 + 0.1 * (1 + 3))
    yield exact("CQI 8 at its threshold, combined and backed off", float(twice.efficiency(snr)), theory)
    yield from faded(round(400_000 * effort))


def faded(blocks: int) -> Iterator[Row]:
    """Yield the mean goodput and the outages of the 64-QAM table over Rayleigh blocks with a mean SNR of 10 dB."""
    law = ModulationAndCoding(overhead=0.0, steepness_per_db=200.0, gap_db=2.0)
    rate = Channel(np.array([10.0]), 1.0, Rayleigh(), "fading", Streams(15), law).rate_bps(0, np.arange(blocks))
    efficiency = np.array([bits * rate / 1024 for bits, rate, _ in CQI["64qam"]])
    reached = np.exp(-(2**efficiency - 1) * 10**0.2 / 10.0)
    # At the very threshold a tenth fails, over some hundredths of a decibel that count for less than an error here.
    yield mean_of("CQI (64qam) over Rayleigh at 10 dB, mean", rate, float(efficiency @ -np.diff(reached, append=0.0)))
    yield share_of("CQI (64qam) over Rayleigh at 10 dB, outage", rate == 0.0, 1 - float(reached[0]))


def best_of(snr: float, users: int) -> float:
    """Return the mean efficiency of the best of n Rayleigh gains: an alternating sum over least ones."""
    return math.fsum((-1) ** (k + 1) * math.comb(users, k) * capacity(snr / k) for k in range(1, users + 1))


def max_relative_snr(effort: float) -> Iterator[Row]:
    """Max relative SNR: what the best of n gains carries, two unequal clients by hand, and a scheduler at low SNR.

    While two are there, each has half of the time, in blocks in which its gain is the larger one; who is left has all
    of the time and every block. The stronger client ends first.
    """
    for users in (2, 10):
        found = float(efficiency_of_best(SHANNON_LIMIT, Rayleigh(), np.array([10.0]), users)[0])
        yield exact(f"max relative SNR, bit/s/Hz of the best of {users}", found, best_of(10.0, users), QUADRATURE)
    channel = Channel(np.array([10.0, 1.0]), 1.0, Rayleigh(), "fading-uplink", Streams(16))
    env = Environment()
    sharing = ("dedicated", "max-relative-snr")
    links = CellLinks(channel, channel, np.zeros(2), np.zeros(2, dtype=np.int64), sharing, fading=("mean", "mean"))
    medium = links.open(env)
    flows = [medium.uplink(client, 8.0) for client in (0, 1)]
    first_s = 2 * 8 / best_of(10.0, 2)
    second_s = first_s + (8 - first_s * best_of(1.0, 2) / 2) / capacity(1.0)
    for name, flow, ends_s in zip(("stronger", "weaker"), flows, (first_s, second_s), strict=True):
        env.run(until=flow.done)
        yield exact(f"max relative SNR, end of the {name} of two in s", env.now, ends_s, QUADRATURE)
    yield from scheduler(round(60_000 * effort))


def scheduler(blocks: int) -> Iterator[Row]:
    """Yield what a proportional-fair scheduler that knows only rates gives a client 10 dB weaker than another.

    It serves whose rate is largest against what it has had. At low SNR rates are in proportion to gains: both are
    served equally often, each with the larger of two gains, whose mean is 3/2 (Borst, 2005).
    """
    served, rate, _ = scheduled(np.array([1e-3, 1e-4]), blocks)
    weaker = served == 1
    yield share_of("proportional fair in blocks, share of the weaker", weaker, 0.5)
    theory = best_of(1e-4, 2) / capacity(1e-4) / 2
    carried = np.where(weaker, rate[:, 1], 0.0) / capacity(1e-4)
    yield mean_of("proportional fair in blocks, weaker's rate over alone", carried, theory)


def scheduled(snr: FloatArray, blocks: int) -> tuple[IntArray, FloatArray, Channel]:
    """Return who is served in each block by the largest rate over what it has had, all rates, and the channel."""
    channel = Channel(snr, 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(17))
    rate = channel.rate_bps(np.arange(snr.size), np.arange(blocks)[:, None])
    had, served = channel.ergodic_rate_bps.copy(), np.zeros(blocks, dtype=np.int64)
    for block, now in enumerate(rate):
        served[block] = np.argmax(now / had)
        had[served[block]] += now[served[block]]
    return served, rate, channel


def proportional_fair(effort: float) -> Iterator[Row]:
    """Proportional fair: rates of twenty clients at 0 to 20 dB, in blocks and on the clock."""
    snr, blocks = 10 ** (np.linspace(0.0, 2.0, 20)), round(60_000 * effort)
    served, rate, channel = scheduled(snr, blocks)
    gain = channel.fair_gain
    equilibrium = np.interp(10 * np.log10(snr), gain.level_db, gain.efficiency(20)) / 20
    for name, client in (("weakest", 0), ("strongest", 19)):
        carried = np.where(served == client, rate[:, client], 0.0)
        yield mean_of(f"proportional fair, 0 to 20 dB, rate of the {name}", carried, float(equilibrium[client]))
    env = Environment()
    medium = DrawnSpectrum(env, channel, FairTime(channel, blocks / 40))
    flows = [medium.send(client, 1e12) for client in range(snr.size)]
    seconds = blocks // 4
    ends = []
    for _ in range(20):
        env.run(until=env.now + seconds // 20)
        ends.append([flow.sent_bits() for flow in flows])
    parts = np.diff(ends, axis=0)[4:] / (seconds // 20)
    for name, client in (("weakest", 0), ("strongest", 19)):
        law = f"proportional fair on the clock, rate of the {name}"
        yield mean_of(law, parts[:, client], float(equilibrium[client]))


def shares(effort: float) -> Iterator[Row]:
    """Shares: power in shares, and uploads over drawn fading beside others that go on.

    Without fading ``50 * 1e6 / (10e6 * log2(1 + n snr))`` is the time of 50 megabits over 10 MHz, n = 50 with full
    power in each share. With fading an upload of 50 blocks in an eighth of the band takes 50 blocks on average, and its
    coefficient of variation is that of the rate in one block over the square root of 50.
    """
    snr = 0.16
    for name, densest in (("full power", np.inf), ("spread power", 1.0)):
        channel = Channel(np.full(50, snr), 10e6, NoFading(), "fading", Streams(0), SHANNON_LIMIT, np.full(50, densest))
        env = Environment()
        medium = DrawnSpectrum(env, channel, EqualBand(channel))
        flows = [medium.send(client, 1e6) for client in range(50)]
        env.run(until=flows[-1].done)
        theory = 50e6 / (10e6 * math.log2(1 + snr * min(50, densest)))
        yield exact(f"fifty uploads with {name} in a share, s", env.now, theory)
    uploads = round(1500 * effort)
    channel = Channel(np.full(8, 10.0), 1.0, Rayleigh(coherence_s=1.0), "fading", Streams(19))
    env = Environment()
    medium = DrawnSpectrum(env, channel, EqualBand(channel))
    for client in range(1, 8):
        medium.send(client, 1e12)
    took = one_after_other(env, uploads, lambda: medium.send(0, 50 * capacity(10.0) / 8).done)
    yield mean_of("upload of 50 blocks in an equal share of 8, mean in blocks", took, 50.0)
    rate = channel.rate_bps(0, np.arange(100_000))
    deviation = float(rate.std() / rate.mean()) * math.sqrt(50)
    yield spread_of("upload of 50 blocks in an equal share of 8, deviation", took, deviation)


def multicast(effort: float) -> Iterator[Row]:
    """Multicast, in bit/s/Hz: one message to n Rayleigh clients, and that of a rateless code.

    The least of n gains is exponential with mean 1/n; a rateless code has the mean rate of one client.
    """
    messages, seconds = round(400 * effort), 10.0
    blocks = round(seconds)  # of one second each
    for rule, users in (("multicast", 2), ("multicast", 10), ("multicast-rateless", 10)):
        cell = Cell(
            downlink={"sharing": rule, "bandwidth_hz": 1.0, "transmit_power_dbm": 23.0 + 10.0, "noise_figure_db": 5.0},
            path_loss=Level(loss_db_everywhere=23.0 - thermal_noise_dbm(1.0, 5.0)),
            shadowing_sigma_db=0.0,
            fading=Rayleigh(coherence_s=1.0),
            rate=SHANNON_LIMIT,
            access="none",
        )
        env = Environment()
        medium = cell.build(RunSetup.at(np.zeros((users, 2)), Streams(18))).open(env)
        carried = np.zeros(messages)
        for message in range(messages):
            copies = [medium.downlink(client, 1e3) for client in range(users)]
            env.run(until=env.now + seconds)
            carried[message] = copies[0].sent_bits() / blocks
            for copy in copies:
                copy.cancel()
        theory = capacity(10.0) if rule == "multicast-rateless" else capacity(10.0 / users)
        if rule == "multicast":
            yield mean_of(f"multicast to {users} Rayleigh clients at 10 dB, rate", carried, theory)
        else:
            yield exact(f"rateless multicast to {users} such clients, rate", float(carried.mean()), theory, QUADRATURE)


class Level(Component):
    """The same loss at any distance."""

    loss_db_everywhere: float

    def loss_db(self, distance_m: ArrayLike) -> FloatArray:
        """Return the loss in dB, of the shape of the distances."""
        return np.full(np.shape(distance_m), self.loss_db_everywhere)
