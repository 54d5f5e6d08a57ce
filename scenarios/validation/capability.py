"""Devices generated after FedScale's table: how fast they compute and send, beside what is published of it."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from fedsim.devices import COMPUTE_TIMES
from fedsim.network import NETWORKS
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from validation import FloatArray, Row, exact, mean_of, off_by, share_of

FORWARD_AND_BACKWARD = 3.0


def fedscale(clients: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return milliseconds per sample and kbit/s of FedScale-like devices, recovered from what they take."""
    streams = Streams(seed)
    devices = COMPUTE_TIMES.make({"kind": "fedscale", "batch_size": 1, "steps": 1}).build(RunSetup(clients, streams))
    links = NETWORKS.make("fedscale").build(RunSetup.at(np.zeros((clients, 2)), streams))
    ms = devices.expected_s(np.zeros(clients)) * 1000 / FORWARD_AND_BACKWARD
    return ms, 1 / links.expected_uplink_s(1024.0)


def devices(effort: float) -> Iterator[Row]:
    """Device capability against published statistics: rates, compute times and their independence.

    Measured by others on FedScale's 500,000 entries: median 6.1 Mbit/s, 26 % below 3 Mbit/s, 15 to 199 ms per sample,
    correlation of the two 0.0024 (Pearson) and 0.0030 (Spearman). The other quantiles are those of the log-normal law
    through the first two.
    """
    clients = round(40_000 * effort)
    ms, kbps = fedscale(clients, 20)
    yield share_of("FedScale, share of devices up to 6.1 Mbit/s", kbps <= 6100, 0.5)
    yield share_of("FedScale, share of devices below 3 Mbit/s", kbps < 3000, 0.26)
    sigma = math.log(6100 / 3000) / float(stats.norm.isf(0.26))
    for level in (0.05, 0.95, 0.99):
        bound = 6100 * math.exp(sigma * float(stats.norm.ppf(level)))
        yield share_of(f"FedScale, share up to {bound / 1000:.3g} Mbit/s", kbps <= bound, level)
    yield exact("FedScale, least ms per sample", float(np.round(ms.min(), 9)), 15.0)
    yield exact("FedScale, most ms per sample", float(np.round(ms.max(), 9)), 199.0)
    yield mean_of("FedScale, mean ms per sample", ms, (15 + 199) / 2)
    ranks = stats.rankdata(ms), stats.rankdata(kbps)
    for name, pair, theory in (("Pearson", (ms, kbps), 0.0024), ("Spearman", ranks, 0.0030)):
        found = float(np.corrcoef(*pair)[0, 1])
        law = f"FedScale, correlation of time and rate ({name})"
        yield off_by(law, found, theory, 1 / math.sqrt(clients))
