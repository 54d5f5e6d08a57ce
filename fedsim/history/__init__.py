"""What happened, as tables: the history of a run and what can be read from it. It has no clock."""

from fedsim.history.history import History
from fedsim.history.outcomes import PHASES, Fate, Outcome, RoundEnd
from fedsim.history.recorder import Recorder

__all__ = ["PHASES", "Fate", "History", "Outcome", "Recorder", "RoundEnd"]
