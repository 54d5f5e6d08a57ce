"""The simulation of FedSUV's section 6.3: clients with a validity and a utility each, rounds, and no training.

A client's duration is log-normal and such that it stays within the deadline with a probability of exactly its validity
(equation 2 of the paper); an update that was delivered has a utility drawn from a beta law around the client's own. The
paper gives neither law. What happens to a client in a round does not depend on which others are selected, so that
all selectors meet the same draws.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

sys.path.insert(0, str(Path(__file__).parents[1]))

from paper_runs.rounds import reports_of, view_of

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import FedSuv, Reports, Selector
from fedsim.streams import Streams

DEADLINE_S: Final = 100.0  # section 6.1
FIRST_ROUNDS: Final = 100  # section 6.3 counts "the first 100 rounds"
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

    @property
    def front(self) -> IntArray:
        """Ids of the Pareto-optimal clients (Definition 3), by falling validity."""
        order = np.lexsort((-self.utility, -self.validity))
        best = np.maximum.accumulate(self.utility[order])
        return np.asarray(order[np.concatenate([[True], best[1:] > best[:-1]])])


@dataclass
class Played:
    candidate_rounds: IntArray  # in FedSUV's X_t, per client
    selected: IntArray
    delivered: IntArray
    regret: list[float] = field(default_factory=list)  # per round, V(A*) - V(A_t) of section 5.3
    shortfall: list[float] = field(default_factory=list)  # of (OPT), to the best cohort
    validity_holds: list[bool] = field(default_factory=list)  # all rectangles of X_t (Theorem 5.3)
    utility_holds: list[bool] = field(default_factory=list)
    first_rounds: IntArray | None = None  # in X_t within the first 100 rounds, if there are that many


def make_crowd(
    clients: int, layout: Literal["grid", "random"], features: Literal["means", "mixed", "none"], seed: int
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
    means = np.stack([validity, utility], axis=1)
    if features == "means":
        return Crowd(validity, utility, means)
    if features == "none":
        return Crowd(validity, utility, np.zeros((clients, 0)))
    # A stream of their own: both layouts of a seed have the same attributes.
    attributes = Streams(seed).generator("fig6-attributes")
    share = attributes.random(6)
    mixed = np.outer(validity, share) + np.outer(utility, 1 - share)
    return Crowd(validity, utility, mixed + 0.1 * attributes.standard_normal(mixed.shape))


def play_rounds(
    selector: Selector, crowd: Crowd, rounds: int, seed: int
) -> Iterator[tuple[IntArray, IntArray, NDArray[np.bool_]]]:
    """Yield of each round the cohort, FedSUV's X (all clients for another selector), and who delivered."""
    streams, clients = Streams(seed), crowd.validity.size
    everybody, selected = np.arange(clients), np.zeros(clients, dtype=np.int64)
    features = crowd.features if isinstance(selector, FedSuv) else crowd.declared
    for number in range(1, rounds + 1):
        rng = streams.generator("fig6-selector", number)
        view = view_of(number, selected.copy(), time_s=(number - 1) * DEADLINE_S, features=features)
        chosen = np.asarray(selector.select(view, rng).client)
        selected[chosen] += 1
        reports = _reports(crowd, streams, number, chosen)
        yield chosen, selector.left if isinstance(selector, FedSuv) else everybody, reports.delivered
        selector.observe(reports)


def play(selector: Selector, crowd: Crowd, rounds: int, seed: int) -> Played:
    """Return what a selector does in so many rounds."""
    best = area(crowd.validity, crowd.utility)
    worth = crowd.validity * crowd.utility
    falling = np.sort(worth)[::-1]
    played = Played(*np.zeros((3, crowd.validity.size), dtype=np.int64))
    for number, (chosen, left, delivered) in enumerate(play_rounds(selector, crowd, rounds, seed), start=1):
        played.candidate_rounds[left] += 1
        played.selected[chosen] += 1
        played.delivered[chosen] += delivered
        played.regret.append(best - area(crowd.validity[chosen], crowd.utility[chosen]))
        played.shortfall.append(float(falling[: chosen.size].mean() - worth[chosen].mean()))
        if isinstance(selector, FedSuv):
            sides, validity, utility = selector.rectangle(left), crowd.validity[left], crowd.utility[left]
            inside = (sides.validity_low <= validity) & (validity <= sides.validity_high)
            played.validity_holds.append(bool(inside.all()))
            inside = (sides.utility_low <= utility) & (utility <= sides.utility_high)
            played.utility_holds.append(bool(inside.all()))
        if number == FIRST_ROUNDS:
            played.first_rounds = played.candidate_rounds.copy()
    return played


def area(validity: FloatArray, utility: FloatArray) -> float:
    """Return V(A) of section 5.3, the area of the points below some of these in both coordinates.

    >>> round(area(np.array([0.2, 0.8]), np.array([0.9, 0.5])), 9)  # 0.2 * 0.9 + 0.6 * 0.5
    0.48
    """
    order = np.argsort(-validity)
    widths = validity[order] - np.append(validity[order][1:], 0.0)
    return float(np.sum(widths * np.maximum.accumulate(utility[order])))


def distance_to_front(crowd: Crowd) -> FloatArray:
    """Return each client's distance to the nearest Pareto-optimal client, in the plane of the expectations."""
    front = crowd.front
    across = np.subtract.outer(crowd.validity, crowd.validity[front])
    along = np.subtract.outer(crowd.utility, crowd.utility[front])
    return np.asarray(np.hypot(across, along).min(axis=1))


def _reports(crowd: Crowd, streams: Streams, number: int, client: IntArray) -> Reports:
    """Return what became of a cohort; with one sample and a gain of 1 the utility L * Delta is the loss reported."""
    luck = ndtri(streams.uniform("fig6-duration", client, number))
    duration_s = DEADLINE_S * np.exp(DURATION_SIGMA * (luck - ndtri(crowd.validity[client])))
    delivered = duration_s <= DEADLINE_S
    mean = crowd.utility[client]
    drawn = betaincinv(UTILITY_SIZE * mean, UTILITY_SIZE * (1 - mean), streams.uniform("fig6-utility", client, number))
    heard = np.where(delivered, drawn, np.nan)
    return reports_of(
        number,
        client,
        np.minimum(duration_s, DEADLINE_S),
        time_s=number * DEADLINE_S,
        delivered=delivered,
        loss=heard,
        measured={"loss_rms": heard, "accuracy_gain": np.where(delivered, 1.0, np.nan)},
    )
