"""The tables of a run and what is read from them: times, bits and energy by fate, critical path, what-ifs, figures."""

from typing import TYPE_CHECKING

from fedsim.history.outcomes import Fate, Outcome, Phase, RoundEnd
from fedsim.lazy import on_use

if TYPE_CHECKING:
    from fedsim.history.figures import draw, draw_clients, draw_durations, save
    from fedsim.history.history import History
    from fedsim.history.recorder import Recorder
else:
    __getattr__ = on_use(__name__)

__all__ = [
    "Fate",
    "History",
    "Outcome",
    "Phase",
    "Recorder",
    "RoundEnd",
    "draw",
    "draw_clients",
    "draw_durations",
    "save",
]
