"""The tables of a run and what is read from them: times, bits and energy by fate, critical path, what-ifs, figures."""

from typing import TYPE_CHECKING

from fedsim.history.outcomes import Fate as Fate, Outcome as Outcome, Phase as Phase, RoundEnd as RoundEnd
from fedsim.lazy import on_use

if TYPE_CHECKING:
    from fedsim.history.figures import (
        draw as draw,
        draw_clients as draw_clients,
        draw_durations as draw_durations,
        save as save,
    )
    from fedsim.history.history import History as History
    from fedsim.history.recorder import Recorder as Recorder
else:
    __getattr__ = on_use(__name__)
