"""Radio access of a graph: how long uploads take over fading, alone, in a share of a station's time, behind a wire."""

import math
from collections.abc import Iterator
from typing import cast

import numpy as np
from simpy import Environment

from fedsim.network import Cell, Rayleigh
from fedsim.network.graph.graph import Graph
from fedsim.network.medium.graph import GraphMedium
from fedsim.network.radio.channel import SHANNON_LIMIT
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.units import thermal_noise_dbm
from validation import FloatArray, Row, exact, mean_of, one_after_other, over_rayleigh, rate_moments, spread_of
from validation.cells import Level

SNR = 10.0
BLOCKS = 50.0
WIDE_BPS = 1e9


def access(effort: float) -> Iterator[Row]:
    """Radio access of graphs: mean and cv of uploads of 50 blocks of one second, one after the other.

    The uploads of a client follow one another without a gap, so that their mean is that of the bits over the mean rate.
    Over many blocks the deviation of a duration is that of the rate of one block over its mean, times the root of the
    number of blocks. The moments of ``log2(1 + snr g)`` are integrals over the exponential law of g, also of the lesser
    of this rate and that of a wire. The other seven clients of the station upload all the time.
    """
    mean, square = rate_moments(SNR)
    cv = math.sqrt(square - mean**2) / mean / math.sqrt(BLOCKS)
    for name, clients in (("alone", 1), ("in an eighth of the time", 8)):
        bits = BLOCKS * mean / clients
        took = durations(opened(clients, "drawn", WIDE_BPS), round(1500 * effort), bits)
        yield mean_of(f"graph access {name}, upload of 50 blocks, mean in blocks", took, BLOCKS)
        yield spread_of(f"graph access {name}, cv of the upload", took / took.mean(), cv)
        took = durations(opened(clients, "mean", WIDE_BPS), 10, bits)
        yield exact(f"graph access {name}, cv where means count", float(took.std() / took.mean()), 0.0)
    wire_bps, stretches, blocks = 0.75 * mean, 40, round(1500 * effort)
    medium = opened(1, "drawn", wire_bps)
    flow, carried = medium.uplink(0, 1e9), [0.0]
    for stretch in range(stretches):
        medium.env.run(until=(stretch + 1) * blocks)
        carried.append(flow.sent_bits())
    theory = over_rayleigh(lambda rate: min(rate, wire_bps), SNR, (2**wire_bps - 1) / SNR)
    yield mean_of("graph access behind a wire of 3/4 of its mean, rate", np.diff(carried) / blocks, theory)


def opened(clients: int, fading_in_shares: str, wire_bps: float) -> GraphMedium:
    """Return the medium of one station with clients of an SNR of 10 dB in 1 Hz, and a wire to the cloud."""
    way = {
        "bandwidth_hz": 1.0,
        "transmit_power_dbm": 33.0,
        "noise_figure_db": 5.0,
        "fading_in_shares": fading_in_shares,
    }
    cell = Cell.model_validate(
        {
            "uplink": way,
            "path_loss": Level(loss_db_everywhere=23.0 - thermal_noise_dbm(1.0, 5.0)),
            "shadowing_sigma_db": 0.0,
            "fading": Rayleigh(coherence_s=1.0),
            "rate": SHANNON_LIMIT,
        }
    )
    network = Graph.model_validate(
        {
            "topology": {"kind": "star", "backhaul": {"capacity_bps": wire_bps, "delay_s": 0.0}},
            "access": {"kind": "radio", "cell": cell, "spectrum": "shared", "delay_s": 0.0},
        }
    )
    return cast(
        GraphMedium, network.build(RunSetup.at(np.zeros((clients, 2)), Streams(20 + clients))).open(Environment())
    )


def durations(medium: GraphMedium, uploads: int, bits: float) -> FloatArray:
    """Return how long uploads of client 0 take, one after the other, while all others upload without end."""
    for client in range(1, len(medium.topology.client_node)):
        medium.uplink(client, 1e12)
    return one_after_other(medium.env, uploads, lambda: medium.uplink(0, bits).done)
