"""The tables of a run and what is read from them: times, bits and energy by fate, critical path, what-ifs, figures."""

from fedsim.history.figures import draw, draw_clients, save
from fedsim.history.history import History
from fedsim.history.outcomes import Fate, Outcome, Phase, RoundEnd
from fedsim.history.recorder import Recorder

__all__ = ["Fate", "History", "Outcome", "Phase", "Recorder", "RoundEnd", "draw", "draw_clients", "save"]
