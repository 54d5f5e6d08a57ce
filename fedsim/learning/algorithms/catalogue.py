"""The kinds of local algorithms."""

from typing import Final

from fedsim.registry import Registry

_HERE: Final = "fedsim.learning.algorithms"

LOCAL_ALGORITHMS: Final = Registry(
    "local algorithm",
    "fedsim.local_algorithms",
    ("begin", "end"),
    {
        "plain": f"{_HERE}.plain:Plain",
        "fedprox": f"{_HERE}.fedprox:FedProx",
        "fedbn": f"{_HERE}.personal:FedBN",
        "fednova": f"{_HERE}.fednova:FedNova",
        "heterofl": f"{_HERE}.widths:HeteroFL",
        "fedrolex": f"{_HERE}.widths:FedRolex",
        "scaffold": f"{_HERE}.scaffold:Scaffold",
        "feddyn": f"{_HERE}.feddyn:FedDyn",
        "moon": f"{_HERE}.moon:Moon",
        "fedper": f"{_HERE}.personal:FedPer",
    },
    default="plain",
)
