"""How long do bits take: radio cells, graphs of shared links, and latency laws.

A network is settings (`Cell`, `Graph`, `LatencyNetwork`, or a user's own). Built for one run it becomes `Links`, which
return the durations of transfers as arrays and open a `SharedMedium` on the clock where clients share it.
"""

from typing import TYPE_CHECKING

from fedsim.lazy import on_use
from fedsim.network.contracts import (
    Directions as Directions,
    LinkFacts as LinkFacts,
    Links as Links,
    Network as Network,
    Placement as Placement,
)
from fedsim.network.placement import PLACEMENTS as PLACEMENTS
from fedsim.registry import Registry

if TYPE_CHECKING:
    from fedsim.network.cell.cell import Cell as Cell, Downlink as Downlink, Uplink as Uplink
    from fedsim.network.distributions import (
        LATENCY_LAWS as LATENCY_LAWS,
        Constant as Constant,
        Empirical as Empirical,
        LatencyLaw as LatencyLaw,
        LogNormal as LogNormal,
        Normal as Normal,
        ShiftedExponential as ShiftedExponential,
        Zero as Zero,
    )
    from fedsim.network.latency import LatencyNetwork as LatencyNetwork, TwoSpeed as TwoSpeed
    from fedsim.network.medium.cell import SHARINGS as SHARINGS
    from fedsim.network.medium.disciplines import Discipline as Discipline
    from fedsim.network.placement import (
        Annulus as Annulus,
        Disc as Disc,
        FromFile as FromFile,
        Given as Given,
        Hexagons as Hexagons,
    )
    from fedsim.network.radio.contracts import (
        Fading as Fading,
        LargeScale as LargeScale,
        PathLoss as PathLoss,
        RandomPathLoss as RandomPathLoss,
    )
    from fedsim.network.radio.fading import (
        FADINGS as FADINGS,
        Nakagami as Nakagami,
        NoFading as NoFading,
        Rayleigh as Rayleigh,
        Rician as Rician,
        coherence_time_s as coherence_time_s,
        doppler_hz as doppler_hz,
    )
    from fedsim.network.radio.link_budget import CellLink as CellLink
    from fedsim.network.radio.mcs import ModulationAndCoding as ModulationAndCoding
    from fedsim.network.radio.path_loss import (
        PATH_LOSSES as PATH_LOSSES,
        FreeSpace as FreeSpace,
        LogDistance as LogDistance,
    )
    from fedsim.network.radio.shadowing import (
        SHADOWINGS as SHADOWINGS,
        CorrelatedShadowing as CorrelatedShadowing,
        IndependentShadowing as IndependentShadowing,
        Shadowing as Shadowing,
    )
    from fedsim.network.radio.sites import Sites as Sites
    from fedsim.network.radio.spectral_efficiency import RATES as RATES, RateLaw as RateLaw, Shannon as Shannon
    from fedsim.network.radio.tr38901.indoor import IndoorFactory as IndoorFactory, IndoorOffice as IndoorOffice
    from fedsim.network.radio.tr38901.outdoor import UrbanMacro as UrbanMacro, UrbanMicro as UrbanMicro
    from fedsim.network.radio.tr38901.rural import RuralMacro as RuralMacro
    from fedsim.network.transfers import (
        RoutedMedium as RoutedMedium,
        SharedMedium as SharedMedium,
        Transfer as Transfer,
    )
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
