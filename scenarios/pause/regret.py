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
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper_runs.command import in_words, options
from paper_runs.curves import written
from paper_runs.tables import markdown

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause, RoundView, Selector, Uniform
from fedsim.selectors.pause.genie import PauseGenie, least_difference, regret_bound
from fedsim.selectors.pause.sa_pause import SaPause

CLIENTS, COHORT = 12, 3
MARKS = (10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
COLOURS = {"PAUSE": "C0", "SA-PAUSE, warm start": "C3", "SA-PAUSE": "C1", "uniform": "C2"}
Shape = Callable[[FloatArray], FloatArray]
SHAPES: dict[str, Shape] = {"log n": np.log, "sqrt n": np.sqrt, "n": np.positive}
REGRET, MEASURE, SHORT, GENIES = SUMS = (
    *("regret (15)", "by the Genie's measure", "reward (9) short of the best set's", "the same of the Genie's set"),
)
AGREED = "rounds as the Genie"
Run = Mapping[str, FloatArray]
"""Sums of one run from the first round on, by name."""


@dataclass(frozen=True)
class Setting:
    crowd: Crowd
    alpha: float
    gamma: float
    beta: float = 2.0

    @cached_property
    def mu(self) -> FloatArray:
        return self.crowd.expected_reward()

    @cached_property
    def smallest(self) -> dict[tuple[int, ...], float]:
        """All sets, with the expected smallest reward of each."""
        return {members: self.crowd.expected_smallest(members) for members in combinations(range(CLIENTS), COHORT)}

    def policies(self) -> dict[str, Callable[[], Selector]]:
        terms = (COHORT, TAU_MIN_S, self.alpha, self.beta, self.gamma)
        annealed = partial(SaPause, *terms, iterations=300, kappa=1.0)
        return {
            "PAUSE": partial(Pause, *terms),
            "SA-PAUSE, warm start": partial(annealed, start="last"),
            "SA-PAUSE": annealed,
            "uniform": partial(Uniform, COHORT),
            "Genie": self.genie,
        }

    def genie(self) -> PauseGenie:
        """Return the policy that knows mu_k."""
        return PauseGenie(COHORT, TAU_MIN_S, self.alpha, self.beta, self.gamma, expected_reward=self.mu.tolist())

    def bounds(self, n: FloatArray) -> dict[str, FloatArray]:
        """Return Theorem 3 with both readings of delta."""
        deltas = {"mean latencies": self.crowd.links().centre_s, "mean rewards": self.mu}
        bound = partial(regret_bound, n, COHORT, self.alpha, self.gamma, self.mu)
        return {f"Theorem 3, delta of {name}": bound(least_difference(values)) for name, values in deltas.items()}

    def follow(self, policy: str, rounds: int, seed: int) -> Run:
        """Play a policy and ask the Genie in every round what it would have done."""
        genie, rng = self.genie(), np.random.default_rng(seed)
        sets = {members: at for at, members in enumerate(self.smallest)}
        every, smallest = np.array(list(sets)), np.array(list(self.smallest.values()))
        rows: list[tuple[float, ...]] = []

        def look(_: Selector, view: RoundView, members: IntArray) -> None:
            terms = genie.terms(view)
            best = np.sort(genie.search(terms, rng))
            reward = smallest + terms.bonus[every].sum(axis=1)
            own, could = (float(reward[sets[tuple(one.tolist())]]) for one in (members, best))
            lost, most = terms.energy(best) - terms.energy(members), float(reward.max())
            rows.append((could - own, lost, most - own, most - could, np.array_equal(best, members)))

        self.crowd.play(self.policies()[policy](), rounds, seed, look)
        return dict(zip((*SUMS, AGREED), np.cumsum(rows, axis=0).T, strict=True))


MARGIN, PAPER = Crowd(CLIENTS, Margin()), Crowd(CLIENTS)
SETTINGS = {
    "margin": Setting(MARGIN, alpha=0.2, gamma=1.0),
    "paper": Setting(PAPER, alpha=100.0, gamma=5.0),
    "margin-paper": Setting(MARGIN, alpha=100.0, gamma=5.0),
    "paper-margin": Setting(PAPER, alpha=0.2, gamma=1.0),
}


def follow(setting: str, policy: str, rounds: int, seed: int) -> Run:
    return SETTINGS[setting].follow(policy, rounds, seed)


def mean_and_error(curves: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error over the seeds."""
    stacked = np.array(curves)
    error = stacked.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.zeros(stacked.shape[1])
    return stacked.mean(axis=0), error


def fit(n: FloatArray, curve: FloatArray, shape: Shape) -> tuple[FloatArray, float]:
    """Return ``a + b shape(n)`` fitted to the last nine tenths of the rounds, and the share of variance it leaves."""
    late = n >= n[-1] / 10
    slope, offset = np.polyfit(shape(n[late]), curve[late], 1)
    fitted = offset + slope * shape(n)
    return fitted, float(np.var(curve[late] - fitted[late]) / np.var(curve[late]))


def tables_of(name: str, runs: Mapping[str, Sequence[Run]], n: FloatArray) -> str:
    """Return regret at some numbers of rounds beside the bound, and which fits leave how much of the variance."""
    setting, marks = SETTINGS[name], [mark for mark in MARKS if mark <= n.size]
    at, sums, fits = np.array(marks) - 1, [], []
    for title, (policy, own) in product(SUMS, runs.items()):
        mean, error = mean_and_error([run[title] for run in own])
        sums.append([title, policy, *(f"{mean[i]:.2f} +- {error[i]:.2f}" for i in at)])
        if title in (REGRET, MEASURE):
            left = (f"{fit(n, mean, shape)[1]:.2%}" for shape in SHAPES.values())
            fits.append([title, policy, *left, f"{np.mean([run[AGREED][-1] for run in own]) / n.size:.1%}"])
    sums += [["bound", bound, *(f"{values[i]:.3g}" for i in at)] for bound, values in setting.bounds(n).items()]
    told = f"{name}: alpha {setting.alpha:g}, beta {setting.beta:g}, gamma {setting.gamma:g}"
    last = "Share of the variance that a fit to the last nine tenths leaves, and of rounds with the Genie's set"
    heads = ("", "policy", *(f"n = {mark}" for mark in marks)), ("", "policy", *SHAPES, "as the Genie")
    return f"\n{told}\n\n{markdown(heads[0], sums)}\n{last}\n\n{markdown(heads[1], fits)}"


def draw(name: str, runs: Mapping[str, Sequence[Run]], n: FloatArray) -> Figure:
    """Return the regret (15) over log n, and the regret by the Genie's measure on two log axes with what bends so."""
    figure = Figure(figsize=(10.5, 4.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    margin = name == "margin"
    for policy, own in runs.items():
        if policy not in ("uniform", "SA-PAUSE") or (policy == "SA-PAUSE" and not margin):
            _curve(left, n, own, REGRET, policy, np.log if margin else None)
        _curve(right, n, own, REGRET if margin else MEASURE, policy, None if margin else np.sqrt)
    if margin:
        for style, (bound, values) in zip((":", "-."), SETTINGS[name].bounds(n).items(), strict=True):
            right.plot(n[9:], values[9:], style, color="grey", label=bound)
    left.axhline(0.0, color="grey", linewidth=0.8)
    right.set_yscale("log")
    titles = ("dashed: a + b log n", "with the bound") if margin else ("a policy earns more than the Genie below 0", "")
    left.set(title=f"{name}: {titles[0]}", ylabel="regret (15), mean of the seeds")
    right.set(title=titles[1] or "dashed: a + b sqrt n", ylabel="regret (15)" if margin else "regret by $C^G$")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="rounds n")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    return figure


def _curve(axes: Axes, n: FloatArray, own: Sequence[Run], kind: str, name: str, shape: Shape | None) -> None:
    """Draw a mean with a band of two standard errors, and PAUSE's with a fit of a shape."""
    mean, error = mean_and_error([run[kind] for run in own])
    axes.plot(n, mean, color=COLOURS[name], label=name)
    axes.fill_between(n, mean - 2 * error, mean + 2 * error, color=COLOURS[name], alpha=0.2, linewidth=0)
    if shape and name.startswith("PAUSE"):
        late = n >= n[-1] / 10
        axes.plot(n[late], fit(n, mean, shape)[0][late], "--", color="black", linewidth=0.9)


def main() -> None:
    asked = options(
        __doc__,
        settings={name: name in ("margin", "paper") for name in SETTINGS},
        policies=dict.fromkeys(COLOURS, True),
        rounds=10_000,
        seeds=5,
        workers=2,
        out=Path("runs/regret"),
    ).parse_args()
    n = np.arange(1.0, asked.rounds + 1)
    with ProcessPoolExecutor(asked.workers) as pool:
        for name in asked.settings:
            jobs = {
                policy: [pool.submit(follow, name, policy, asked.rounds, seed) for seed in range(asked.seeds)]
                for policy in asked.policies
            }
            runs = {policy: [job.result() for job in own] for policy, own in jobs.items()}
            print(tables_of(name, runs, n))
            written(draw(name, runs, n), asked.out / ("regret.png" if name == "margin" else f"regret_{name}.png"))


if __name__ == "__main__":
    in_words(main)
