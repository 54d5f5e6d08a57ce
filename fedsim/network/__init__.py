"""How long do bits take: pure arithmetic over all clients, without a clock.

A scenario's network is settings (`Cell`, `LatencyNetwork`, `TwoSpeed`, or a user's own). Built for one run it
becomes `Links`, which answers how long a transfer that starts at a given instant takes.
"""

from fedsim.network.base import Fading, LatencyLaw, Links, Network, PathLoss, Placement
from fedsim.network.cell import Cell, CellLink, Downlink, Uplink
from fedsim.network.fading import FADINGS, NoFading, Rayleigh
from fedsim.network.latency import LatencyNetwork, TwoSpeed
from fedsim.network.laws import (
    LATENCY_LAWS,
    Constant,
    Empirical,
    LogNormal,
    Normal,
    ShiftedExponential,
    Zero,
)
from fedsim.network.placement import PLACEMENTS, Disc, Given
from fedsim.network.propagation import PATH_LOSSES, LogDistance
from fedsim.parts import Catalogue

NETWORKS = Catalogue(
    "network",
    "fedsim.networks",
    ("build",),
    {
        "cell": "fedsim.network.cell:Cell",
        "fedscale": "fedsim.network.fedscale:FedScaleNetwork",
        "graph": "fedsim.network.graph:Graph",
        "latency": "fedsim.network.latency:LatencyNetwork",
        "pause-two-speed": "fedsim.network.latency:TwoSpeed",
    },
    attributes=("uses_bits", "uses_positions"),
)

__all__ = [
    "FADINGS",
    "LATENCY_LAWS",
    "NETWORKS",
    "PATH_LOSSES",
    "PLACEMENTS",
    "Cell",
    "CellLink",
    "Constant",
    "Disc",
    "Downlink",
    "Empirical",
    "Fading",
    "Given",
    "LatencyLaw",
    "LatencyNetwork",
    "Links",
    "LogDistance",
    "LogNormal",
    "Network",
    "NoFading",
    "Normal",
    "PathLoss",
    "Placement",
    "Rayleigh",
    "ShiftedExponential",
    "TwoSpeed",
    "Uplink",
    "Zero",
]
