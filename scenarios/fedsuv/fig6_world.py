"""The simulation of FedSUV's section 6.3: clients with a validity and a utility each, rounds, and no training.

A client's duration is log-normal and such that it stays within the deadline with a probability of exactly its validity
(equation 2 of the paper); an update that was delivered has a utility drawn from a beta law around the client's own. The
paper gives neither law. What happens to a client in a round does not depend on which others are selected, so that
all selectors meet the same draws.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedsim import Scenario, Testbed
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors import FedSuv, Reports, Selector
from fedsim.selectors.fedsuv.rectangles import Bounds, diagonal, dominated
from fedsim.streams import Streams

ROUNDS: Final = Scenario.load(Path(__file__).parents[1] / "paper_runs" / "timing.toml")
DEADLINE_S: Final = 100.0  # section 6.1
DURATION_SIGMA: Final = 0.3  # of the logarithm; MobiPerf's throughput varies by some 0.1 to 0.4
UTILITY_SIZE: Final = 24.0  # of the beta law: standard deviation sqrt(u (1 - u) / 25), at most 0.1


@dataclass(frozen=True)
class Crowd:
    """Expectations of every client, in (0, 1), and FedSUV's x, shape (n, f)."""

    validity: FloatArray
    utility: FloatArray
    features: FloatArray

    @property
    def declared(self) -> FloatArray:
        """What the clients declare to other methods, as in any run: mean seconds, all of them for work, and samples."""
        columns = np.zeros((self.validity.size, 4))
        columns[:, 1] = DEADLINE_S * np.exp(DURATION_SIGMA**2 / 2 - DURATION_SIGMA * ndtri(self.validity))
        columns[:, 3] = 1.0
        return columns

    def distance_to_front(self) -> FloatArray:
        """Return each client's distance to the nearest Pareto-optimal client (Definition 3) in the plane."""
        front = ~dominated(Bounds(self.validity, self.validity, self.utility, self.utility))
        across, along = (np.subtract.outer(one, one[front]) for one in (self.validity, self.utility))
        return np.asarray(np.hypot(across, along).min(axis=1))

    def regrets(self, chosen: IntArray) -> FloatArray:
        """Return what cohorts, one a row, lack by the area of section 5.3 and by the objective (OPT), shape (2, n)."""
        best, worth = area(self.validity, self.utility), self.validity * self.utility
        areas = [best - area(self.validity[one], self.utility[one]) for one in chosen]
        return np.array([areas, np.sort(worth)[-chosen.shape[1] :].mean() - worth[chosen].mean(axis=1)])


class Run(NamedTuple):
    """What a selector does, a row a round; of FedSUV X, its longest diagonal, and whether no rectangle fails."""

    chosen: IntArray
    delivered: BoolArray
    left: BoolArray
    width: FloatArray
    holds: bool


def make_crowd(
    clients: int, layout: Literal["grid", "random"], features: Literal["means", "mixed"], seed: int
) -> Crowd:
    """Return a crowd whose expectations are uniform on the unit square."""
    rng = Streams(seed).generator("fig6-crowd")
    side = round(clients**0.5)
    if layout == "grid":
        if side**2 != clients:
            raise SystemExit(f"--clients: {clients} is no square number, which a grid needs")
        middle = (np.arange(side) + 0.5) / side
        validity, utility = (axis.ravel() for axis in np.meshgrid(middle, middle))
    else:
        validity, utility = rng.uniform(1e-6, 1 - 1e-6, (2, clients))
    if features == "means":
        return Crowd(validity, utility, np.stack([validity, utility], axis=1))
    # A stream of their own: both layouts of a seed have the same attributes.
    attributes = Streams(seed).generator("fig6-attributes")
    share = attributes.random(6)
    mixed = np.outer(validity, share) + np.outer(utility, 1 - share)
    return Crowd(validity, utility, mixed + 0.1 * attributes.standard_normal(mixed.shape))


def play(selector: Selector, crowd: Crowd, rounds: int, seed: int) -> Run:
    """Return what a selector does in so many rounds; another one than FedSUV has all clients in X."""
    streams, everybody = Streams(seed), np.arange(crowd.validity.size)
    suv = selector if isinstance(selector, FedSuv) else None
    parts = {"crowd.clients": everybody.size, "privacy": "none", "selector": "all"}
    with Testbed(ROUNDS.replace(parts)) as testbed:
        first = replace(testbed.view(), features=crowd.declared if suv is None else crowd.features)
    selected, holds, rows = np.zeros_like(everybody), True, []
    for number in range(1, rounds + 1):
        view = replace(first, round=number, time_s=(number - 1) * DEADLINE_S, participations=selected.copy())
        chosen = np.asarray(selector.select(view, streams.generator("fig6-selector", number)).client)
        selected[chosen] += 1
        left, width = everybody, np.nan
        if suv is not None:
            left, sides = suv.left, suv.rectangle(suv.left)
            validity, utility = crowd.validity[left], crowd.utility[left]
            holds &= bool(((sides.validity_low <= validity) & (validity <= sides.validity_high)).all())
            holds &= bool(((sides.utility_low <= utility) & (utility <= sides.utility_high)).all())
            width = diagonal(sides, 1.0).max()
        reports = reports_of(crowd, streams, number, chosen)
        rows.append((chosen, reports.delivered, np.isin(everybody, left), width))
        selector.observe(reports)
    chosen, delivered, candidates, widths = (np.array(column) for column in zip(*rows, strict=True))
    return Run(chosen, delivered, candidates, widths, holds)


def reports_of(crowd: Crowd, streams: Streams, number: int, client: IntArray) -> Reports:
    """Return what became of a cohort; with one sample and a gain of 1 the utility L * Delta is the loss reported."""
    luck = ndtri(streams.uniform("fig6-duration", client, number))
    duration_s = DEADLINE_S * np.exp(DURATION_SIGMA * (luck - ndtri(crowd.validity[client])))
    delivered = duration_s <= DEADLINE_S
    mean = crowd.utility[client]
    drawn = betaincinv(UTILITY_SIZE * mean, UTILITY_SIZE * (1 - mean), streams.uniform("fig6-utility", client, number))
    loss = np.where(delivered, drawn, np.nan)
    return Reports(
        round=number,
        time_s=number * DEADLINE_S,
        client=client,
        delivered=delivered,
        duration_s=np.minimum(duration_s, DEADLINE_S),
        loss=loss,
        measured={"loss_rms": loss, "accuracy_gain": np.where(delivered, 1.0, np.nan)},
    )


def area(validity: FloatArray, utility: FloatArray) -> float:
    """Return V(A) of section 5.3, the area of the points below some of these in both coordinates.

    >>> round(area(np.array([0.2, 0.8]), np.array([0.9, 0.5])), 9)  # 0.2 * 0.9 + 0.6 * 0.5
    0.48
    """
    order = np.argsort(-validity)
    widths = validity[order] - np.append(validity[order][1:], 0.0)
    return float(np.sum(widths * np.maximum.accumulate(utility[order])))
