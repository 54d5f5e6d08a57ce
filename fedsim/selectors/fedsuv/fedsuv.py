"""FedSUV: bandits of validity and utility, and selection among clients that may be Pareto-optimal in both.

Numbers of equations, sections and lines (of Algorithm 1) are the paper's.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Final, Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Reports, RoundView
from fedsim.selectors.fedsuv.beliefs import Beliefs, Fit, Settings, Undelivered
from fedsim.selectors.fedsuv.features import KernelName, Scaling
from fedsim.selectors.fedsuv.rectangles import Bounds, Rectangles, WhenDisjoint, diagonal, dominated, eliminated
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.options import Above0, Count, Range, Share, Whole
from fedsim.selectors.sampling import CohortSelector
from fedsim.units import Bound

_DECIMALS: Final = 9
"""Of bounds in units of utility: those that differ by rounding alone are ties, which the random stream breaks."""


@dataclass(eq=False, repr=False)
class FedSuv(CohortSelector):
    """Select by Algorithm 1: eliminate, classify, then the widest rectangle and the highest optimistic utilities.

    Validity is whether a client delivers; utility is ``L * Delta`` (3) of a delivered update, with L the samples' root
    mean square loss times their number and Delta the gain in accuracy. Each round, for the set X of remaining clients:

    1. while X has more than ``(1 - rho) N`` clients, clients whose upper bound of validity (4) does not exceed the
       greatest lower bound are eliminated (7);
    2. the rectangle of each client is intersected with the one of both models in this round (8);
    3. clients whose rectangle's best corner is dominated by the worst corner of another are eliminated, until ``keep``
       clients remain;
    4. among the candidates in X, the client of the longest diagonal (11) is selected, then those of the greatest upper
       bound of utility. Ties are broken at random.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (K; 20 in the paper); all candidates if there are no more than that.
    rho : float in [0, 1]
        Share of the crowd after whose elimination step 1 ends (0.4 in the paper).
    elimination : ``"guard"`` or ``"cap"``
        Whether rho is a condition before each elimination, as in Algorithm 1, which one elimination may overshoot; or
        a limit, beyond which the clients of the greatest upper bounds stay.
    keep : int >= 1 or None
        Least size of X; None for K, as in line 11. Dominated clients are eliminated by ascending upper bound of
        utility, an order that the paper leaves open. Line 7 has no such limit, so that one elimination could leave
        fewer than K; here the clients of the greatest upper bounds stay.
    fill : ``"removed"`` or ``"none"``
        Free places if fewer than K clients of X are candidates: filled with eliminated clients, the last eliminated
        first and then by the upper bound of utility, or not. The paper's crowd is always available.
    delta : float in (0, 1)
        Probability with which the bounds may fail; the paper does not state its value.
    ridge : float > 0
        Initial H; 1 in LinUCB and in the proof of Theorem 5.4 (``det H = 1``).
    scaling : ``"rank"``, ``"range"`` or ``"none"``
        Map of features to [0, 1], see `Scaler`; ``"none"`` for features that are the paper's x already.
    kernel : ``"rbf"`` or ``"matern52"``
        The bound on the information gain that Theorem 5.4 cites is that of the squared exponential.
    length_scale : float > 0 or None
        Length scale of the kernel, over scaled features; None for their median distance.
    noise : float > 0
        Standard deviation of one utility around its mean, relative to that of the prior.
    fit : ``"likelihood"`` or ``"none"``
        Whether length scale and noise are fitted to the utilities by marginal likelihood, see `likeliest`: after 16
        utilities and whenever their number has doubled. ``length_scale`` and ``noise`` hold before the first fit. The
        median distance and a noise of 0.1 are over-confident over features of hardware (``scenarios/README.md``).
        Without features there is no length scale and no fit. A fit computes the basis anew, as the first selection.
    basis : int >= 1
        Largest number of basis points of the process, see `Basis`. Fewer are taken when the remainders are below 1e-6
        of the variance (the process is then practically exact), and at most 2^24 / N in a crowd of N > 16,384.
    utility_scale : float > 0 or None
        Standard deviation of the prior (which has mean 0), and the utility that is equivalent to one unit of validity
        in the diagonal. None for the root mean square of the utilities so far; rectangles are unbounded before the
        first.
    undelivered : ``"zero"``, ``"mean"`` or ``"nothing"``
        Utility that the process observes of a client that did not deliver: 0; the mean utility of the report's
        deliveries, as FedScale registers stragglers (0 without a delivery); or no observation. The proof of Theorem
        5.4, equations (24) to (26), needs an observation of every selected client. With 0 the process estimates the
        objective (OPT), the mean of validity times utility, and a client that never delivers loses its high bound.
        With none, line 20 asks such clients for ever; that is for studies of coverage (Theorem 5.3), as the intervals
        (5) are those of the utility alone.
    batch : ``"top"`` or ``"hallucinated"``
        Rule of line 20: the K - 1 highest upper bounds, as in the paper; or one client after the other, each with
        hallucinated observations of those before, as in GP-BUCB, so that a cohort has fewer clients alike in features.
    negative_gain : ``"zero"`` or ``"keep"``
        Value of a negative Delta. The paper's utilities lie in [0, 1], and with a negative Delta a greater L, which is
        more potential, would decrease the utility; so it is 0 by default.
    when_disjoint : ``"restart"`` or ``"collapse"``
        Rule for a rectangle that is disjoint from the new one, see `Rectangles`.
    samples_per_round : int >= 1 or None
        Largest number of samples that a client trains on in a round (steps times batch size), |B| of L; None for all.
    rest_rounds : int >= 0
        Number of rounds in which a client is no candidate after a selection; 0 for Algorithm 1 as printed. No sentence
        of the paper allows for a rest; REFL, whose settings it takes over, has one (``hold_off``). Where fewer than K
        candidates have rested, those selected longest ago fill the cohort, ties at random.

    Notes
    -----
    The paper's features are attributes of the hardware and the data size; in a run clients declare the expected seconds
    of downlink, work and uplink, and their samples.

    Without features (shape (n, 0)) each client is an arm of its own in both models: x is a unit vector, and the kernel
    is 1 for the client itself and 0 for other clients, so that observations do not generalise.

    The measurement of Delta is a forward pass of all samples before and after training, two thirds of the time of an
    epoch; the paper does not mention this cost.

    A late or dropped client counts as not valid. The utility of a delivered update that was not measured does not
    change the process. X and the rectangles include clients that are not available; a client that was never a candidate
    is in X without a rectangle.

    An asynchronous server replaces clients one by one. K is then the number of clients in flight with those asked for,
    and one of K consecutive selections is that of the longest diagonal. t is the version of the model.

    The paper has no code; parameters are the choices that it leaves open.
    """

    paper = "FedSUV: Validity and Utility-guided Client Selection for Federated Learning"
    needs = ("loss_rms", "accuracy_gain")
    communication = "two numbers up per update"
    uses_features = True

    rho: Share = 0.4
    elimination: Literal["guard", "cap"] = "guard"
    keep: Count | None = None
    fill: Literal["removed", "none"] = "removed"
    delta: Annotated[float, Range(0, 1, above=True, below=True)] = 0.1
    ridge: Above0[float] = 1.0
    scaling: Scaling = "rank"
    kernel: KernelName = "rbf"
    length_scale: Above0[float] | None = None
    noise: Above0[float] = 0.1
    fit: Fit = "likelihood"
    basis: Annotated[Count, Bound(0, 2**14)] = 1024
    utility_scale: Above0[float] | None = None
    undelivered: Undelivered = "zero"
    batch: Literal["top", "hallucinated"] = "top"
    negative_gain: Literal["zero", "keep"] = "zero"
    when_disjoint: WhenDisjoint = "restart"
    samples_per_round: Count | None = None
    rest_rounds: Whole = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.undelivered == "nothing":
            self.may_stall = "without an observation a client that never delivers keeps the highest optimistic utility"
        self._beliefs: Beliefs | None = None
        self._rectangles = Rectangles(0, self.when_disjoint)
        self._eliminated_in: IntArray = np.zeros(0, dtype=np.int64)
        self._selected_in: IntArray = np.zeros(0, dtype=np.int64)
        self._batch: FloatArray = np.zeros(0)
        self._in_flight = InFlight()

    @property
    def left(self) -> IntArray:
        return np.flatnonzero(self._eliminated_in == 0)

    @property
    def utility_unit(self) -> float:
        """Utility that is equivalent to one unit of validity, see ``utility_scale``."""
        return 1.0 if self._beliefs is None else self._beliefs.utility_scale()

    def rectangle(self, client: IntArray) -> Bounds:
        """Return R_t(x) of these clients: the whole plane before the first round, the last one after elimination."""
        return self._rectangles.of(client)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        if not self.cohort_size(view):
            return Cohort(view.client[:0])
        beliefs = self._models(view)
        self._in_flight.meet(view)
        self._prune(beliefs, view)
        chosen = np.sort(self._choose(beliefs, view, rng))
        self._in_flight.sent(chosen)
        self._selected_in[chosen] = view.round
        return Cohort(chosen)

    def observe(self, reports: Reports) -> None:
        """Update both models with the outcomes (line 21)."""
        if self._beliefs is None:
            return
        self._in_flight.heard(reports)
        loss, gain = (reports.measured.get(name, np.full(reports.client.size, np.nan)) for name in self.needs)
        if self.negative_gain == "zero":
            gain = np.maximum(gain, 0.0)
        utility = np.where(reports.delivered, self._batch[reports.client] * loss * gain, np.nan)
        self._beliefs.observe(reports.client, reports.delivered, utility)

    def _models(self, view: RoundView) -> Beliefs:
        if self._beliefs is None:
            settings = Settings(**{each.name: vars(self)[each.name] for each in fields(Settings)})
            self._beliefs = Beliefs(view.clients, view.features.shape[1], settings)
            self._rectangles = Rectangles(view.clients, self.when_disjoint)
            self._eliminated_in = np.zeros(view.clients, dtype=np.int64)
            self._selected_in = np.full(view.clients, -self.rest_rounds - 1)
            self._batch = np.zeros(view.clients)
        self._beliefs.meet(view.client, view.features)
        self._batch[view.client] = np.minimum(view.samples, self.samples_per_round or np.inf)
        return self._beliefs

    def _prune(self, beliefs: Beliefs, view: RoundView) -> None:
        """Eliminate clients from X, which is final: lines 5 to 18."""
        keep = self.keep or (view.wanted or self.cohort) + self._in_flight.client.size
        left = np.flatnonzero((self._eliminated_in == 0) & beliefs.known)
        others = int(np.count_nonzero(self._eliminated_in == 0)) - left.size
        new = beliefs.bounds(left, view.round)
        stays = np.ones(left.size, dtype=np.bool_)
        if left.size + others > (1.0 - self.rho) * view.clients:
            out = eliminated(new.validity_low, new.validity_high)
            fewest = keep if self.elimination == "guard" else max(keep, (1.0 - self.rho) * view.clients)
            stays = ~_lowest(out, new.validity_high, left.size + others - int(np.ceil(fewest)))
        removed = [left[~stays]]
        left = left[stays]
        now = self._rectangles.intersect(left, Bounds(*(side[stays] for side in vars(new).values())))
        out = _lowest(dominated(now), now.utility_high, left.size + others - keep)
        removed.append(left[out])
        self._eliminated_in[np.concatenate(removed)] = view.round

    def _choose(self, beliefs: Beliefs, view: RoundView, rng: np.random.Generator) -> IntArray:
        """Return the selected clients of X (lines 19 and 20), and others for free places."""
        size = self.cohort_size(view)
        shuffled = self._rested(rng.permutation(view.client), size, view.round)
        removed_in = self._eliminated_in[shuffled]
        high = self._rectangles.of(shuffled).utility_high
        rank = -np.round(high / self.utility_unit, _DECIMALS)
        inside = shuffled[removed_in == 0]
        if inside.size > size:
            order = np.argsort(rank[removed_in == 0], kind="stable")
            share, first = self._in_flight.share(size), int(order[0])
            if self._in_flight.whole(share, share):
                widths = diagonal(self._rectangles.of(inside), self.utility_unit)
                first = int(np.argmax(np.round(widths, _DECIMALS)))
            if self.batch == "hallucinated":
                return np.asarray(inside[beliefs.batch(inside, high[removed_in == 0], first, size, view.round)])
            return np.asarray(inside[np.concatenate([[first], order[order != first][: size - 1]])])
        if self.fill == "none":
            return np.asarray(inside)
        outside = np.lexsort((rank, -removed_in))
        outside = outside[removed_in[outside] > 0][: size - inside.size]
        return np.concatenate([inside, shuffled[outside]])

    def _rested(self, client: IntArray, size: int, number: int) -> IntArray:
        """Return the clients whose rest is over in a round, or those selected longest ago where these are too few."""
        if not self.rest_rounds:
            return client
        selected_in = self._selected_in[client]
        rested = client[number - selected_in > self.rest_rounds]
        if rested.size >= size:
            return rested
        return np.asarray(client[np.argsort(selected_in, kind="stable")[:size]])


def _lowest(out: BoolArray, key: FloatArray, most: int) -> BoolArray:
    """Return the marked elements of the lowest keys, at most ``most`` of them; all arrays have shape (n,)."""
    marked = np.flatnonzero(out)
    if marked.size <= max(most, 0):
        return out
    kept = np.zeros_like(out)
    kept[marked[np.argsort(key[marked], kind="stable")[: max(most, 0)]]] = True
    return kept
