"""Access of cells, TCP over a path, the server's link, stations of a wireless LAN, LoRa and satellites."""

import math
from collections.abc import Iterator

import numpy as np
from simpy import Environment

from fedsim.network.cell.cell import Cell
from fedsim.network.cell.presets import NarrowbandCell
from fedsim.network.fedscale import RateLinks
from fedsim.network.lora import LoRa, airtime_s
from fedsim.network.medium.collisions.aloha import AlohaChannel
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.medium.wifi import Contention, RateFair
from fedsim.network.satellite.satellite import EARTH_M, Constellation
from fedsim.network.transport.tcp import TcpPath
from fedsim.network.transport.transport import ServerLink, Tcp
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from validation import Row, exact, mean_of

_ONLY = np.array([0])


def access(_effort: float) -> Iterator[Row]:
    """Access of cells: what an uplink without bits takes at the site: request, grant and the way to the server."""
    for name, cell, by_hand_s in (
        ("cell", Cell(), 6e-3 + 7e-3 + 10e-3),
        ("nb-iot", NarrowbandCell(), 0.1 + 0.05 + 10e-3),
    ):
        links = cell.build(RunSetup.at(np.zeros((1, 2)), Streams(0)))
        yield exact(
            f"access of {name}, uplink of no bits in s", links.uplink_s(_ONLY, 1, np.zeros(1), 0.0)[0], by_hand_s
        )


def transport(effort: float) -> Iterator[Row]:
    """Transport: TCP beside whole round trips of slow start, the square-root law, and rounds with losses."""
    lossless = TcpPath(0.0, 10.0, 2, 1.0)
    for trips in (3, 10):
        segments = 10 * (1.5**trips - 1) / 0.5
        yield exact(f"TCP, {trips} round trips of slow start", float(lossless.latency_s(segments, 1e9, 1.0)), trips)
    # Mathis, Semke, Mahdavi and Ott, 1997: without timeouts sqrt(3 / (2 b p)) segments in a round trip.
    few = TcpPath(1e-7, 10.0, 2, 1e-3)
    yield exact(
        "TCP, square-root law, segments in a round trip", float(few.steady_rate(1e9, 1.0)), math.sqrt(3 / 4e-7), 0.01
    )
    lossy = TcpPath(0.01, 10.0, 2, 1.0)
    took_s = np.array([rounds_s(lossy, 1000, 0.1, seed) for seed in range(round(200 * effort))])
    closed = float(lossy.latency_s(1000, 1000.0, 0.1))
    yield exact("TCP, 1000 segments with 1 % of losses, in rounds, s", float(took_s.mean()), closed, 0.15)


def rounds_s(path: TcpPath, segments: int, rtt_s: float, seed: int) -> float:
    """Return how long a sender takes round by round: after a loss the rest of the window is lost too."""
    rng = np.random.default_rng(seed)
    window, slow, clock_s, left = path.first_window, True, 0.0, segments
    while left > 0:
        sends = min(math.floor(window + rng.random()), left)
        arrived = min(sends, int(rng.geometric(path.loss)) - 1)
        clock_s += rtt_s if left > sends or arrived < sends else rtt_s * sends / window
        left -= arrived
        if arrived == sends:
            window = window * path.growth if slow else window + 1 / path.per_ack
            continue
        later = min(arrived, int(rng.geometric(path.loss)) - 1)
        left -= min(left, 1 + later)
        clock_s += rtt_s if later >= 3 else path.timeout_s * (2.0 ** int(rng.geometric(1 - path.loss)) - 1)
        window, slow = max(1.0, window / 2), False
    return clock_s


def server(_effort: float) -> Iterator[Row]:
    """Link of the server: uploads that share it, equal ones, and one behind a slow link of its own."""
    for rates, ends_s in (([1e7] * 8, 8.0), ([1e5] + [1e7] * 3, 10.0)):
        tcp = Tcp(rtt_s=1e-6, handshakes=0, overhead=0.0, header_bytes=0.0, server=ServerLink(ingress_bps=1e6))
        env = Environment()
        medium = tcp.over(RateLinks(np.array(rates)), Streams(0)).open(env)
        flows = [medium.uplink(client, 1e6) for client in range(len(rates))]
        env.run(until=flows[0].done)
        yield exact(f"server of 1 Mbit/s, {len(rates)} uploads of 1 Mbit, first in s", env.now, ends_s, 1e-3)


def contention(_effort: float) -> Iterator[Row]:
    """Wi-Fi: Bianchi's saturation throughput beside stations slot by slot, and the performance anomaly."""
    channel = Contention(2e-3, 118e-6, 9e-6, 16, 6)
    for stations in (1, 5, 20):
        yield exact(
            f"DCF, share of payload of {stations} stations, slot by slot",
            slot_by_slot(stations, channel, 20_000),
            channel.carried_share(stations),
            0.02,
        )
    env = Environment()
    medium = SharedSpectrum(env, 1.0, RateFair())
    medium.send(1e9, 11.0)
    slow = medium.send(11 / 12, 1.0)
    env.run(until=slow.done)
    yield exact("rate-fair, 11 and 1 Mbit/s, rate of both in Mbit/s", 11 / 12 / env.now, 11 / 12)


def slot_by_slot(stations: int, channel: Contention, frames: int) -> float:
    """Return the share of time with payload of stations that count slots down and double windows after collisions."""
    rng = np.random.default_rng(17)
    stage, left = np.zeros(stations, dtype=np.int64), rng.integers(channel.window, size=stations)
    time_s = carried_s = 0.0
    for _ in range(frames):
        idle = int(left.min())
        sends = np.flatnonzero(left == idle)
        time_s += idle * channel.idle_slot_s + channel.frame_s + channel.overhead_s
        carried_s += channel.frame_s * (sends.size == 1)
        left -= idle + 1
        stage[sends] = 0 if sends.size == 1 else np.minimum(stage[sends] + 1, channel.doublings)
        left[sends] = rng.integers(channel.window * 2 ** stage[sends])
    return carried_s / time_s


def lora(_effort: float) -> Iterator[Row]:
    """LoRa: times on air of 20 bytes, by hand from AN1200.13: 55.25 symbols of 1.024 ms, 40.25 of 32.768 ms; ALOHA."""
    for factor, by_hand_s in ((7, 55.25 * 1.024e-3), (12, 40.25 * 32.768e-3)):
        found = airtime_s(np.array([20]), np.array([factor]), 125e3, 1, 8)[0]
        yield exact(f"LoRa SF{factor}, 20 bytes on air in s", found, by_hand_s)
    # A hundred sensors of one factor begin a hundred packets each; in pure ALOHA exp(-2 G) of them get through.
    env, network, sensors, packets = Environment(), LoRa(), 100, 100.0
    channel = AlohaChannel(env, network.overlap, network.capture_db)
    duty = network.uplink_duty_cycle
    messages = [channel.send(1.0, packets, 0.0, 0.0, 0.0, duty) for _ in range(sensors)]
    env.run(until=env.all_of([message.done for message in messages]))
    load = sensors * duty / network.channels
    yield exact(
        "LoRa, 100 sensors, share of packets not lost (exp(-2 G) within 1 %)",
        packets / env.now,
        math.exp(-2 * load),
        0.01,
    )


def satellites(effort: float) -> Iterator[Row]:
    """Satellites: orbit and slant range by hand, and the mean time to 60 s of contact over random starts."""
    orbit = Constellation()
    kepler_s = math.tau * math.sqrt(6_921_000.0**3 / 3.986004418e14)
    yield exact("satellite at 550 km, orbit in s", orbit.orbit_s, kepler_s)
    contacts = Constellation(off_track=0.0, satellites=12).build(RunSetup(1, Streams(2)))
    windows = contacts.windows
    sine = math.sin(math.radians(25.0))
    edge_m = math.sqrt((EARTH_M * sine) ** 2 + 550e3**2 + 2 * EARTH_M * 550e3) - EARTH_M * sine
    yield exact(
        "satellite at 550 km, range at 25 degrees in m", contacts.range_m(_ONLY, windows.total_s / 2)[0], edge_m
    )
    period_s, pass_s, needs_s = windows.period_s, float(windows.total_s[0]), 60.0
    # One pass of length w in a period P is enough for s: s + s (P - w) / P + (P - w)^2 / (2 P).
    gap_s = period_s - pass_s
    mean_s = needs_s + needs_s * gap_s / period_s + gap_s**2 / (2 * period_s)
    starts_s = np.random.default_rng(3).uniform(0.0, period_s, round(200_000 * effort))
    took_s = windows.until_s(np.zeros(starts_s.size, dtype=np.int64), starts_s, needs_s)
    yield mean_of("satellites, 60 s of contact from a random start, s", took_s, mean_s)
    yield exact("satellites, the same, expected", float(windows.mean_until_s(needs_s)[0]), mean_s)
