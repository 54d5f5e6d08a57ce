"""Flower apps, unchanged, on simulated time: see the section Flower of ``fedsim/bridges/README.md``."""

try:
    import flwr as _flwr  # noqa: F401  # what follows needs it
except ImportError as error:
    raise ImportError("fedsim.bridges.flower needs Flower: pip install 'fedsim-des[flower]'", name="flwr") from error

from fedsim.bridges.flower.foresight import (
    Expected as Expected,
    Foresight as Foresight,
    FromInstruction as FromInstruction,
    FromReplies as FromReplies,
)
from fedsim.bridges.flower.grid import SimulatedGrid as SimulatedGrid
