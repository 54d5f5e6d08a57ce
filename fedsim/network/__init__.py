"""How long do bits take: radio cells, graphs of shared links, and latency laws.

A network is settings (`Cell`, `Graph`, `LatencyNetwork`, or a user's own). Built for one run it becomes `Links`, which
return the durations of transfers as arrays and open a `SharedMedium` on the clock where clients share it.
"""

from typing import TYPE_CHECKING

from fedsim.lazy import on_use
from fedsim.network.contracts import Directions, LinkFacts, Links, Network, Placement
from fedsim.network.placement import PLACEMENTS
from fedsim.registry import Registry

if TYPE_CHECKING:
    from fedsim.network.cell.cell import Cell, Downlink, Uplink
    from fedsim.network.distributions import (
        LATENCY_LAWS,
        Constant,
        Empirical,
        LatencyLaw,
        LogNormal,
        Normal,
        ShiftedExponential,
        Zero,
    )
    from fedsim.network.latency import LatencyNetwork, TwoSpeed
    from fedsim.network.medium.cell import SHARINGS
    from fedsim.network.medium.disciplines import Discipline
    from fedsim.network.placement import Annulus, Disc, FromFile, Given, Hexagons
    from fedsim.network.radio.contracts import Fading, LargeScale, PathLoss, RandomPathLoss
    from fedsim.network.radio.fading import FADINGS, Nakagami, NoFading, Rayleigh, Rician, coherence_time_s, doppler_hz
    from fedsim.network.radio.link_budget import CellLink
    from fedsim.network.radio.mcs import ModulationAndCoding
    from fedsim.network.radio.path_loss import PATH_LOSSES, FreeSpace, LogDistance
    from fedsim.network.radio.shadowing import SHADOWINGS, CorrelatedShadowing, IndependentShadowing, Shadowing
    from fedsim.network.radio.sites import Sites
    from fedsim.network.radio.spectral_efficiency import RATES, RateLaw, Shannon
    from fedsim.network.radio.tr38901.indoor import IndoorFactory, IndoorOffice
    from fedsim.network.radio.tr38901.outdoor import UrbanMacro, UrbanMicro
    from fedsim.network.radio.tr38901.rural import RuralMacro
    from fedsim.network.transfers import RoutedMedium, SharedMedium, Transfer
else:
    __getattr__ = on_use(__name__)

NETWORKS = Registry(
    "network",
    "fedsim.networks",
    ("build",),
    {
        "cell": "fedsim.network.cell.cell:Cell",
        "fedscale": "fedsim.network.fedscale:FedScaleNetwork",
        "graph": "fedsim.network.graph.graph:Graph",
        "latency": "fedsim.network.latency:LatencyNetwork",
        "rate-traces": "fedsim.network.traces.network:RateTraces",
        "pause-two-speed": "fedsim.network.latency:TwoSpeed",
        "urban-macro": "fedsim.network.cell.presets:UrbanMacroCell",
        "indoor-office": "fedsim.network.cell.presets:IndoorOfficeCell",
        "wifi": "fedsim.network.cell.presets:WifiCell",
        "wifi-dcf": "fedsim.network.cell.presets:ContendedWifiCell",
        "nb-iot": "fedsim.network.cell.presets:NarrowbandCell",
        "5g-midband": "fedsim.network.cell.presets:MidbandCell",
        "lora": "fedsim.network.lora:LoRa",
        "satellite": "fedsim.network.satellite.satellite:SatelliteNetwork",
    },
    attributes=("requires",),
)

__all__ = [
    "FADINGS",
    "LATENCY_LAWS",
    "NETWORKS",
    "PATH_LOSSES",
    "PLACEMENTS",
    "RATES",
    "SHADOWINGS",
    "SHARINGS",
    "Annulus",
    "Cell",
    "CellLink",
    "Constant",
    "CorrelatedShadowing",
    "Directions",
    "Disc",
    "Discipline",
    "Downlink",
    "Empirical",
    "Fading",
    "FreeSpace",
    "FromFile",
    "Given",
    "Hexagons",
    "IndependentShadowing",
    "IndoorFactory",
    "IndoorOffice",
    "LargeScale",
    "LatencyLaw",
    "LatencyNetwork",
    "LinkFacts",
    "Links",
    "LogDistance",
    "LogNormal",
    "ModulationAndCoding",
    "Nakagami",
    "Network",
    "NoFading",
    "Normal",
    "PathLoss",
    "Placement",
    "RandomPathLoss",
    "RateLaw",
    "Rayleigh",
    "Rician",
    "RoutedMedium",
    "RuralMacro",
    "Shadowing",
    "Shannon",
    "SharedMedium",
    "ShiftedExponential",
    "Sites",
    "Transfer",
    "TwoSpeed",
    "Uplink",
    "UrbanMacro",
    "UrbanMicro",
    "Zero",
    "coherence_time_s",
    "doppler_hz",
]
