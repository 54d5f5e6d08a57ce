"""A figure of how long rounds and participations take, beside the deadline."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.clock import TIE_ULPS
from fedsim.errors import RunError
from fedsim.history.columns import RoundColumns, codes_of
from fedsim.history.figures.writing import COLOURS, add_legend, as_it_is, new_figure, save
from fedsim.history.outcomes import Outcome, RoundEnd
from fedsim.history.tables import Tables
from fedsim.inputs.arrow import numbers_of
from fedsim.units import counted, in_seconds

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure


_MOST_DRAWN: Final = 2**13
"""Participations that are drawn one by one."""
_MOST_SENT: Final = 2**20
"""Participations from whose beginnings rounds are timed; with more of them, from those of the rounds."""


def draw_durations(history: Tables, out: str | Path | None = None) -> "Figure":
    """Return a figure with the distributions of the lengths of rounds and of participations, and the deadline.

    A curve says which share is over within some seconds. That of participations ends at the share that delivered.
    """
    rounds = RoundColumns.of(history)
    if not rounds.round.size:
        raise RunError(f"{history.name}: holds no round to draw")
    took_s, delivered = _delivered(history)
    few = history.participations.num_rows <= _MOST_SENT
    lasted_s = rounds.closed_s(history) - (rounds.sent_s(history) if few else rounds.start_s)
    figure = new_figure()
    axes = figure.add_subplot()
    drawn: list[Artist] = []
    names = [
        f"{counted(rounds.round.size, 'round')}{' of edge servers' * (history.edge_rounds is not None)}",
        f"{counted(history.participations.num_rows, 'participation')}, {delivered:,} delivered",
    ]
    share = delivered / max(history.participations.num_rows, 1)
    for seconds, whole, colour in ((lasted_s, 1.0, COLOURS[0]), (took_s, share, COLOURS[1])):
        at_s = np.concatenate([[0.0], np.sort(seconds)])
        over = whole * np.arange(at_s.size) / max(seconds.size, 1)
        drawn += axes.plot(at_s, over, drawstyle="steps-post", color=colour, linewidth=1.5)
    limits_s = lasted_s[rounds.ended_by == RoundEnd.DEADLINE]
    if limits_s.size:
        least, greatest = float(limits_s.min()), float(limits_s.max())
        if greatest - least <= TIE_ULPS * np.spacing(float(rounds.end_s[-1])):
            drawn.append(axes.axvline(greatest, color=COLOURS[6], linestyle=":"))
            names.append(f"deadline {in_seconds(greatest, 4)} s")
        else:
            drawn.append(axes.axvspan(least, greatest, color=COLOURS[6], alpha=0.12, linewidth=0))
            names.append(f"deadlines reached, {in_seconds(least)} to {in_seconds(greatest)} s")
    axes.set_xlabel("seconds from when the clients were sent")
    axes.set_ylabel("share that is over")
    as_it_is(axes.set_title(""), history.name)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.grid(visible=True, alpha=0.3)
    add_legend(axes, drawn, names)
    save(figure, out)
    return figure


def _delivered(history: Tables) -> tuple[FloatArray, int]:
    """Return the seconds of delivered participations, of each n-th of many, and how many delivered."""
    each = -(-history.participations.num_rows // _MOST_DRAWN)
    found, count = [np.zeros(0)], 0
    for batch in history.participations.to_batches():
        arrived = codes_of(batch.column("outcome"), Outcome) == Outcome.DELIVERED
        count += int(np.count_nonzero(arrived))
        took_s = numbers_of(batch.column("end_s")) - numbers_of(batch.column("start_s"))
        found.append(took_s[arrived][::each])
    return np.concatenate(found), count
