"""FedSUV: validity and utility of clients as two bandits, and the clients that may be Pareto-optimal in both.

"FedSUV: Validity and Utility-guided Client Selection for Federated Learning". Numbers of equations, sections and lines
(of Algorithm 1) are the paper's.
"""

from typing import Literal

import numpy as np

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, PublishedSelector, Reports, RoundView, cohort_size
from fedsim.selectors.fedsuv.beliefs import Beliefs, Settings
from fedsim.selectors.fedsuv.features import KernelName, Scaling
from fedsim.selectors.fedsuv.rectangles import Bounds, Rectangles, WhenDisjoint, diagonal, dominated, eliminated
from fedsim.selectors.in_flight import InFlight
from fedsim.selectors.validation import check_choice, check_numbers, check_shares, check_wholes


class FedSuv(PublishedSelector):
    """Select by Algorithm 1: eliminate, classify, then the widest rectangle and the highest optimistic utilities.

    Validity is whether a client delivers; utility is ``L * Delta`` (3) of a delivered update, with L the samples' root
    mean square loss times their number and Delta the gain in accuracy. Each round, for all clients left (X):

    1. while more than ``(1 - rho) N`` are left, those leave whose validity's upper bound (4) does not exceed the best
       lower bound (7);
    2. the rectangle of each is cut with the one that both models now give (8);
    3. those leave whose rectangle's best corner is dominated by another's worst, until ``keep`` are left;
    4. of those who are candidates the one with the longest diagonal (11) is selected, and beside it those with the
       highest upper bound of utility. Equals are told apart at random.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round (K; 20 in the paper); all candidates if there are no more than that.
    rho : float in [0, 1]
        Share of the crowd after whose removal nobody is eliminated any more (0.4 in the paper).
    elimination : ``"guard"`` or ``"cap"``
        Whether rho is only asked before each elimination, as in Algorithm 1, so that one may go beyond it; or those
        beyond it, with the greatest upper bounds, stay.
    keep : int >= 1 or None
        How many stay in X at least; None for K, as in line 11. Those dominated leave by rising upper bound of utility;
        the paper does not say in which order. Line 7 knows no such limit: one elimination could leave fewer than K.
        Here the greatest upper bounds stay then.
    fill : ``"removed"`` or ``"none"``
        Who takes part if fewer than K of X are candidates: also clients removed, those removed last first and among
        them by the upper bound of utility, or nobody else. The paper's crowd is always there.
    delta : float in (0, 1)
        Probability with which the bounds may fail; the paper does not say which it uses.
    ridge : float > 0
        Where H starts; 1 in LinUCB and in the proof of Theorem 5.4 (``det H = 1``).
    scaling : ``"rank"``, ``"range"`` or ``"none"``
        How features become numbers in [0, 1], see `Scaler`; ``"none"`` for features that are the paper's x already.
    kernel : ``"rbf"`` or ``"matern52"``
        The bound on the information gain that Theorem 5.4 cites is that of the squared exponential.
    length_scale : float > 0 or None
        Of the kernel, over scaled features; None for their median distance.
    noise : float > 0
        Standard deviation of one utility around its mean, over that of the prior.
    basis : int >= 1
        Most points by which the process is computed, see `Basis`. Fewer are taken when the rest is smaller than 1e-6
        of the variance (then it is exact for all purposes), and at most 2^24 / N in a crowd of N > 16,384.
    utility_scale : float > 0 or None
        Standard deviation of the prior (which has mean 0), and what counts as much as a whole unit of validity in the
        diagonal. None for the root mean square of the utilities so far, and rectangles without end before the first.
    negative_gain : ``"zero"`` or ``"keep"``
        What a loss of accuracy counts as. The paper's utilities lie in [0, 1], and beside a negative Delta a greater L,
        more to be learned, would make a client worse; so none by default.
    when_disjoint : ``"restart"`` or ``"collapse"``
        What becomes of a rectangle that has nothing in common with the new one, see `Rectangles`.
    samples_per_round : int >= 1 or None
        Most samples that a client looks at in a round (steps times batch size), |B| of L; None for all it has.

    Notes
    -----
    The paper's features are attributes of the hardware and the data size; in a run clients declare the expected seconds
    of downlink, work and uplink, and their samples.

    Without features (shape (n, 0)) each client is an arm of its own in both models: x is a unit vector, and the kernel
    is 1 for the client itself and 0 for others. Nothing is learned of a client from others then.

    To find Delta a client passes its samples through the model before and after training, which takes two thirds of the
    time of an epoch; the paper says nothing of it.

    A client that is late or dropped counts as not valid. A utility that was not measured leaves the process as it is.
    X and the rectangles also hold clients that are away; who never was a candidate is in X but has no rectangle.

    An asynchronous server replaces clients one by one. K is then the number of clients at work with those asked for,
    and of each K selected one after the other one is that of the longest diagonal. t is the version of the model.

    The paper has no code; what it leaves open is a parameter.
    """

    paper = "FedSUV: Validity and Utility-guided Client Selection for Federated Learning"
    needs = ("loss_rms", "accuracy_gain")
    communication = "two numbers up per update"
    uses_features = True

    def __init__(
        self,
        cohort: int,
        rho: float = 0.4,
        elimination: Literal["guard", "cap"] = "guard",
        keep: int | None = None,
        fill: Literal["removed", "none"] = "removed",
        delta: float = 0.1,
        ridge: float = 1.0,
        scaling: Scaling = "rank",
        kernel: KernelName = "rbf",
        length_scale: float | None = None,
        noise: float = 0.1,
        basis: int = 1024,
        utility_scale: float | None = None,
        negative_gain: Literal["zero", "keep"] = "zero",
        when_disjoint: WhenDisjoint = "restart",
        samples_per_round: int | None = None,
    ) -> None:
        check_wholes(1, cohort=cohort, basis=basis)
        check_wholes(1, optional=True, keep=keep, samples_per_round=samples_per_round)
        check_shares(rho=rho)
        check_shares(inside=True, delta=delta)
        check_numbers(0, above=True, ridge=ridge, noise=noise)
        check_numbers(0, above=True, optional=True, length_scale=length_scale, utility_scale=utility_scale)
        check_choice("elimination", elimination, "guard", "cap")
        check_choice("fill", fill, "removed", "none")
        check_choice("scaling", scaling, "rank", "range", "none")
        check_choice("kernel", kernel, "rbf", "matern52")
        check_choice("negative_gain", negative_gain, "zero", "keep")
        check_choice("when_disjoint", when_disjoint, "restart", "collapse")
        self.cohort, self.rho, self.elimination, self.keep, self.fill = cohort, rho, elimination, keep, fill
        self.delta, self.ridge, self.scaling, self.kernel, self.basis = delta, ridge, scaling, kernel, basis
        self.length_scale, self.noise, self.utility_scale = length_scale, noise, utility_scale
        self.negative_gain, self.when_disjoint, self.samples_per_round = negative_gain, when_disjoint, samples_per_round
        self._beliefs: Beliefs | None = None
        self._rectangles = Rectangles(0, when_disjoint)
        self._removed_in: IntArray = np.zeros(0, dtype=np.int64)
        self._batch: FloatArray = np.zeros(0)
        self._at_work = InFlight()

    @property
    def left(self) -> IntArray:
        """Ids of the clients in X, ascending."""
        return np.flatnonzero(self._removed_in == 0)

    @property
    def utility_unit(self) -> float:
        """What counts as much as a whole unit of validity, see ``utility_scale``."""
        return 1.0 if self._beliefs is None else self._beliefs.utility_scale()

    def rectangle(self, client: IntArray) -> Bounds:
        """Return R_t(x) of these clients; the whole plane of those never met, the last one of those removed."""
        return self._rectangles.of(client)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the cohort of Algorithm 1."""
        if not view.client.size:
            return Cohort(view.client.copy())
        beliefs = self._get_ready(view)
        self._at_work.meet(view)
        self._prune(beliefs, view)
        chosen = np.sort(self._choose(view, rng))
        self._at_work.sent(chosen)
        return Cohort(chosen)

    def observe(self, reports: Reports) -> None:
        """Teach both models what the round has shown (line 21)."""
        if self._beliefs is None:
            return
        self._at_work.heard(reports)
        loss, gain = (reports.measured.get(name, np.full(reports.client.size, np.nan)) for name in self.needs)
        if self.negative_gain == "zero":
            gain = np.maximum(gain, 0.0)
        utility = np.where(reports.delivered, self._batch[reports.client] * loss * gain, np.nan)
        self._beliefs.observe(reports.client, reports.delivered, utility)

    def _get_ready(self, view: RoundView) -> Beliefs:
        """Return the models after they have met the candidates; they are made in the first round."""
        if self._beliefs is None:
            settings = Settings(
                delta=self.delta,
                ridge=self.ridge,
                scaling=self.scaling,
                kernel=self.kernel,
                length_scale=self.length_scale,
                noise=self.noise,
                basis=self.basis,
                utility_scale=self.utility_scale,
            )
            self._beliefs = Beliefs(view.clients, view.features.shape[1], settings)
            self._rectangles = Rectangles(view.clients, self.when_disjoint)
            self._removed_in = np.zeros(view.clients, dtype=np.int64)
            self._batch = np.zeros(view.clients)
        self._beliefs.meet(view.client, view.features)
        self._batch[view.client] = np.minimum(view.samples, self.samples_per_round or np.inf)
        return self._beliefs

    def _prune(self, beliefs: Beliefs, view: RoundView) -> None:
        """Remove clients from X for good: lines 5 to 18."""
        keep = self.keep or (view.wanted or self.cohort) + self._at_work.client.size
        left = np.flatnonzero((self._removed_in == 0) & beliefs.known)
        others = int(np.count_nonzero(self._removed_in == 0)) - left.size
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
        self._removed_in[np.concatenate(removed)] = view.round

    def _choose(self, view: RoundView, rng: np.random.Generator) -> IntArray:
        """Return who is selected, lines 19 and 20, and who fills the cohort up."""
        size = cohort_size(view, self.cohort)
        shuffled = rng.permutation(view.client)
        removed_in = self._removed_in[shuffled]
        high = self._rectangles.of(shuffled).utility_high
        inside = shuffled[removed_in == 0]
        if inside.size > size:
            order = np.argsort(-high[removed_in == 0], kind="stable")
            share = self._at_work.share(size)
            if not self._at_work.whole(share, share):
                return np.asarray(inside[order[:size]])
            first = int(np.argmax(diagonal(self._rectangles.of(inside), self.utility_unit)))
            return np.asarray(inside[np.concatenate([[first], order[order != first][: size - 1]])])
        if self.fill == "none":
            return np.asarray(inside)
        outside = np.lexsort((-high, -removed_in))
        outside = outside[removed_in[outside] > 0][: size - inside.size]
        return np.concatenate([inside, shuffled[outside]])


def _lowest(out: BoolArray, key: FloatArray, most: int) -> BoolArray:
    """Return which of those marked go when only so many may: those with the lowest keys."""
    marked = np.flatnonzero(out)
    if marked.size <= max(most, 0):
        return out
    going = np.zeros_like(out)
    going[marked[np.argsort(key[marked], kind="stable")[: max(most, 0)]]] = True
    return going
