"""How does PAUSE's regret against its Genie grow? Beside SA-PAUSE, uniform selection and the bound of Theorem 3.

    python scenarios/pause/regret.py [--settings NAME ...] [--policies NAME ...] [--rounds N] [--seeds S] [--workers W]

The regret (15) sums the expected reward (9) of the Genie's set (10) less that of the policy's set, both given the same
history of the policy, as in the proof of Theorem 3. Expectations are over the round's latencies, in closed form up to
an integral, so that decisions are the only noise. K = 12 and m = 3. Settings:

- ``margin``: three clients are fast and weights are small, so that one set stays the best by a margin, as in the proof.
- ``paper``: the weights of the paper's runs, and its two-speed crowd. As (10) has the minimum of expectations where (9)
  has the expectation of a minimum, the Genie is not the best policy. Two more sums are told: what the policy's set and
  the Genie's set lack to the best of all 220 sets by (9), with the same history.
- ``margin-paper``, ``paper-margin``: the crowd of one with the weights of the other.

SA-PAUSE is Algorithm 2 with kappa = 1. PAUSE takes 90 s of a processor for 100,000 rounds, SA-PAUSE four times as long;
all of ``margin`` and ``paper`` with five seeds over 10,000 rounds took 110 minutes of two busy processors.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations, product
from pathlib import Path

import numpy as np
from crowds import TAU_MIN_S, Crowd, Margin
from matplotlib.figure import Figure
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from study_scripts import panels, written

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause, RoundView, Selector, Uniform
from fedsim.selectors.pause.genie import PauseGenie, least_difference, regret_bound
from fedsim.selectors.pause.sa_pause import SaPause

CLIENTS, COHORT, BETA = 12, 3, 2.0
EVERY = np.array(list(combinations(range(CLIENTS), COHORT)))
MARKS = (10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
ANNEALED = partial(SaPause, iterations=300, kappa=1.0)
POLICIES: dict[str, Callable[..., Selector]] = {
    "PAUSE": Pause,
    "SA-PAUSE, warm start": partial(ANNEALED, start="last"),
    "SA-PAUSE": ANNEALED,
    "uniform": lambda cohort, *_: Uniform(cohort),
}
COLOURS = dict(zip(POLICIES, ("C0", "C3", "C1", "C2"), strict=True))
SHAPES: dict[str, Callable[[FloatArray], FloatArray]] = {"log n": np.log, "sqrt n": np.sqrt, "n": np.positive}
REGRET, MEASURE, SHORT, GENIES = SUMS = (
    *("regret (15)", "by the Genie's measure", "reward (9) short of the best set's", "the same of the Genie's set"),
)
Run = Mapping[str, FloatArray]
"""Sums of one run from the first round on, by name."""


@dataclass(frozen=True)
class Setting:
    crowd: Crowd
    alpha: float
    gamma: float

    @cached_property
    def mu(self) -> FloatArray:
        return self.crowd.expected_reward()

    @cached_property
    def smallest(self) -> FloatArray:
        """The expected smallest reward of each set."""
        return np.array([self.crowd.expected_smallest(members) for members in EVERY])

    @property
    def terms(self) -> tuple[int, float, float, float, float]:
        return COHORT, TAU_MIN_S, self.alpha, BETA, self.gamma

    @property
    def genie(self) -> PauseGenie:
        """The policy that knows mu_k."""
        return PauseGenie(*self.terms, expected_reward=self.mu.tolist())

    def bounds(self, n: FloatArray) -> dict[str, FloatArray]:
        """Return Theorem 3 with both readings of delta."""
        deltas = {"mean latencies": self.crowd.links().centre_s, "mean rewards": self.mu}
        bound = partial(regret_bound, n, COHORT, self.alpha, self.gamma, self.mu)
        return {f"Theorem 3, delta of {name}": bound(least_difference(values)) for name, values in deltas.items()}

    def follow(self, policy: Selector, rounds: int, seed: int) -> Run:
        """Play a policy and ask the Genie in every round what it would have done."""
        genie, rng = self.genie, np.random.default_rng(seed)
        rows: list[tuple[float, ...]] = []

        def look(_: Selector, view: RoundView, members: IntArray) -> None:
            terms = genie.terms(view)
            best = np.sort(genie.search(terms, rng))
            reward = self.smallest + terms.bonus[EVERY].sum(axis=1)
            own, could = (reward[(one == EVERY).all(axis=1)].item() for one in (members, best))
            lost, most = terms.energy(best) - terms.energy(members), float(reward.max())
            rows.append((could - own, lost, most - own, most - could))

        self.crowd.play(policy, rounds, seed, look)
        return dict(zip(SUMS, np.cumsum(rows, axis=0).T, strict=True))


MARGIN, PAPER = Crowd(CLIENTS, Margin()), Crowd(CLIENTS)
SETTINGS = {
    "margin": Setting(MARGIN, alpha=0.2, gamma=1.0),
    "paper": Setting(PAPER, alpha=100.0, gamma=5.0),
    "margin-paper": Setting(MARGIN, alpha=100.0, gamma=5.0),
    "paper-margin": Setting(PAPER, alpha=0.2, gamma=1.0),
}


def follow(name: str, policy: str, rounds: int, seed: int) -> Run:
    setting = SETTINGS[name]
    return setting.follow(POLICIES[policy](*setting.terms), rounds, seed)


def mean_and_error(runs: Sequence[Run], of: str) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error of a sum over the seeds; the error of one seed is 0."""
    curves = np.array([run[of] for run in runs])
    return curves.mean(axis=0), curves.std(axis=0, ddof=min(1, len(runs) - 1)) / np.sqrt(len(runs))


def fit(n: FloatArray, curve: FloatArray, shape: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, float]:
    """Return ``a + b shape(n)`` fitted to the last nine tenths of the rounds, and the share of variance it leaves."""
    late = n >= n[-1] / 10
    slope, offset = np.polyfit(shape(n[late]), curve[late], 1)
    fitted = offset + slope * shape(n)
    return fitted, float(np.var(curve[late] - fitted[late]) / np.var(curve[late]))


def tables_of(name: str, runs: Mapping[str, Sequence[Run]], n: FloatArray) -> str:
    """Return regret at some numbers of rounds beside the bound, and which fits leave how much of the variance."""
    setting, marks = SETTINGS[name], [mark for mark in MARKS if mark <= n.size]
    sums, fits = [], []
    for title, (policy, own) in product(SUMS, runs.items()):
        mean, error = mean_and_error(own, title)
        sums.append([title, policy, *(f"{mean[mark - 1]:.2f} +- {error[mark - 1]:.2f}" for mark in marks)])
        if title in (REGRET, MEASURE):
            fits.append([title, policy, *(f"{fit(n, mean, shape)[1]:.2%}" for shape in SHAPES.values())])
    sums += [["bound", of, *(f"{values[mark - 1]:.3g}" for mark in marks)] for of, values in setting.bounds(n).items()]
    about = f"{name}: alpha {setting.alpha:g}, beta {BETA:g}, gamma {setting.gamma:g}"
    last = "Share of the variance that a fit to the last nine tenths leaves"
    heads = ("", "policy", *(f"n = {mark}" for mark in marks)), ("", "policy", *SHAPES)
    return f"\n{about}\n\n{markdown(heads[0], sums)}\n{last}\n\n{markdown(heads[1], fits)}"


def draw(name: str, runs: Mapping[str, Sequence[Run]], n: FloatArray) -> Figure:
    """Return the regret (15) over log n, and the regret by the Genie's measure on two log axes with what bends so.

    Bands are two standard errors. Where one set stays best the second panel has (15) again, beside its bound.
    """
    margin = name == "margin"
    figure, (left, right) = panels(2, (10.5, 4.4), xscale="log", xlabel="rounds n")
    left.set(title=f"{name}: {'dashed: a + b log n' if margin else 'a policy earns more than the Genie below 0'}")
    left.set(ylabel="regret (15), mean of the seeds")
    right.set(title="with the bound" if margin else "dashed: a + b sqrt n")
    right.set(ylabel="regret (15)" if margin else "regret by $C^G$", yscale="log")
    shown = list(POLICIES)[: 2 if margin else 3], list(POLICIES)
    for axes, of, policies in zip((left, right), (REGRET, REGRET if margin else MEASURE), shown, strict=True):
        for policy in (one for one in runs if one in policies):
            mean, error = mean_and_error(runs[policy], of)
            axes.plot(n, mean, color=COLOURS[policy], label=policy)
            axes.fill_between(n, mean - 2 * error, mean + 2 * error, color=COLOURS[policy], alpha=0.2, linewidth=0)
            if policy == "PAUSE" and margin == (axes is left):
                late, fitted = n >= n[-1] / 10, fit(n, mean, np.log if margin else np.sqrt)[0]
                axes.plot(n[late], fitted[late], "--", color="black", linewidth=0.9)
    for style, (bound, values) in zip((":", "-."), SETTINGS[name].bounds(n).items() if margin else (), strict=False):
        right.plot(n[9:], values[9:], style, color="grey", label=bound)
    left.axhline(0.0, color="grey", linewidth=0.8)
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    asked = options(
        __doc__,
        settings={name: name in ("margin", "paper") for name in SETTINGS},
        policies=dict.fromkeys(POLICIES, True),
        rounds=10_000,
        seeds=5,
        workers=2,
        out=Path("runs/regret"),
    ).parse_args()
    n = np.arange(1.0, asked.rounds + 1)
    with ProcessPoolExecutor(asked.workers) as pool:
        for name in asked.settings:
            jobs = [pool.map(partial(follow, name, one, asked.rounds), range(asked.seeds)) for one in asked.policies]
            runs = {policy: list(own) for policy, own in zip(asked.policies, jobs, strict=True)}
            print(tables_of(name, runs, n))
            written({"regret.png" if name == "margin" else f"regret_{name}.png": draw(name, runs, n)}, asked.out)


if __name__ == "__main__":
    in_words(main)
