"""What selectors do in the rounds of FedSUV's section 6.3, and what FedSUV believes of its candidates then."""

from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from fig6_crowd import Crowd
from fig6_outcomes import DEADLINE_S, declared, reports_of

from fedsim import Scenario, Testbed
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors import FedSuv, Selector
from fedsim.selectors.fedsuv.rectangles import diagonal
from fedsim.streams import Streams

ROUNDS: Final = Scenario.load(Path(__file__).parents[1] / "paper_runs" / "timing.toml")


class Run(NamedTuple):
    """What a selector does, a row a round; of FedSUV X, its longest diagonal, and whether no rectangle fails."""

    chosen: IntArray
    delivered: BoolArray
    left: BoolArray
    width: FloatArray
    holds: bool

    @property
    def selections(self) -> FloatArray:
        """How often each client was selected."""
        return np.bincount(self.chosen.ravel(), minlength=self.left.shape[1]).astype(np.float64)


def play(selector: Selector, crowd: Crowd, rounds: int, seed: int) -> Run:
    """Return what a selector does in so many rounds; another one than FedSUV has all clients in X."""
    streams, everybody = Streams(seed), np.arange(crowd.validity.size)
    suv = selector if isinstance(selector, FedSuv) else None
    parts = {"crowd.clients": everybody.size, "privacy": "none", "selector": "all"}
    with Testbed(ROUNDS.replace(parts)) as testbed:
        first = replace(testbed.view(), features=declared(crowd) if suv is None else crowd.features)
    selected, holds, rows = np.zeros_like(everybody), True, []
    for number in range(1, rounds + 1):
        view = replace(first, round=number, time_s=(number - 1) * DEADLINE_S, participations=selected.copy())
        chosen = np.asarray(selector.select(view, streams.generator("fig6-selector", number)).client)
        selected[chosen] += 1
        left, width = everybody, np.nan
        if suv is not None:
            left, sides = suv.left, suv.rectangle(suv.left)
            width, validity, utility = diagonal(sides, 1.0).max(), crowd.validity[left], crowd.utility[left]
            holds &= bool(((sides.validity_low <= validity) & (validity <= sides.validity_high)).all())
            holds &= bool(((sides.utility_low <= utility) & (utility <= sides.utility_high)).all())
        reports = reports_of(crowd, streams, number, chosen)
        rows.append((chosen, reports.delivered, np.isin(everybody, left), width))
        selector.observe(reports)
    chosen, delivered, candidates, widths = (np.array(column) for column in zip(*rows, strict=True))
    return Run(chosen, delivered, candidates, widths, holds)
