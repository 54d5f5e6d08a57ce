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

Rounds are driven on arrays (`array_rounds`), since the Genie is asked in every round with the policy's own history.
SA-PAUSE is Algorithm 2 with kappa = 1. PAUSE takes 25 s of a processor for 100,000 rounds, SA-PAUSE ten times as long;
all of ``margin`` and ``paper`` with five seeds over 10,000 rounds took 110 minutes of two busy processors.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from array_rounds import TAU_MIN_S, Crowd, play, two_speed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper_runs.command import in_words, sizes
from paper_runs.curves import written
from paper_runs.tables import markdown

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Pause, Selector, Uniform
from fedsim.selectors.pause.genie import PauseGenie, least_difference, regret_bound
from fedsim.selectors.pause.sa_pause import SaPause

COHORT = 3
SA_ITERATIONS = 300
MARKS = (10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
COLOURS = {"PAUSE": "C0", "SA-PAUSE, warm start": "C3", "SA-PAUSE": "C1", "uniform": "C2"}
Shape = Callable[[FloatArray], FloatArray]
SHAPES: dict[str, Shape] = {"log n": np.log, "sqrt n": np.sqrt, "n": np.positive}


@dataclass(frozen=True)
class Setting:
    crowd: Crowd
    alpha: float
    gamma: float
    beta: float = 2.0

    def genie(self) -> PauseGenie:
        """Return the policy that knows mu_k."""
        mu = self.crowd.expected_reward().tolist()
        return PauseGenie(COHORT, TAU_MIN_S, self.alpha, self.beta, self.gamma, expected_reward=mu)

    def policies(self) -> dict[str, Callable[[], Selector]]:
        options = (COHORT, TAU_MIN_S, self.alpha, self.beta, self.gamma)
        annealed = partial(SaPause, *options, iterations=SA_ITERATIONS, kappa=1.0)
        return {
            "PAUSE": partial(Pause, *options),
            "SA-PAUSE, warm start": partial(annealed, start="last"),
            "SA-PAUSE": annealed,
            "uniform": partial(Uniform, COHORT),
            "Genie": self.genie,
        }

    def bounds(self, n: FloatArray) -> dict[str, FloatArray]:
        """Return Theorem 3 with both readings of delta."""
        mu = self.crowd.expected_reward()
        deltas = {"mean latencies": self.crowd.centre_s, "mean rewards": mu}
        return {
            f"Theorem 3, delta of {name}": regret_bound(n, COHORT, self.alpha, self.gamma, mu, least_difference(values))
            for name, values in deltas.items()
        }

    @cached_property
    def sets(self) -> tuple[IntArray, FloatArray]:
        """All sets, and the expected smallest reward of each."""
        sets = np.array(list(combinations(range(self.crowd.centre_s.size), COHORT)))
        return sets, np.array([self.crowd.expected_smallest(members) for members in sets])


def settings() -> dict[str, Setting]:
    fast, slow = 0.05 + 0.01 * np.arange(1, 4), 0.50 + 0.40 * np.arange(1, 10) / 9
    margin, paper = Crowd(np.concatenate([fast, slow])), two_speed(12)
    return {
        "margin": Setting(margin, alpha=0.2, gamma=1.0),
        "paper": Setting(paper, alpha=100.0, gamma=5.0),
        "margin-paper": Setting(margin, alpha=100.0, gamma=5.0),
        "paper-margin": Setting(paper, alpha=0.2, gamma=1.0),
    }


class Run(NamedTuple):
    """One run, round by round, summed from the first on; ``short``: by (9), to the best of all sets."""

    regret: FloatArray
    by_measure: FloatArray
    reward: FloatArray
    agreed: FloatArray
    short: FloatArray


def follow(name: str, policy: str, rounds: int, seed: int) -> Run:
    """Play a policy and ask the Genie in every round what it would have done."""
    setting = settings()[name]
    genie, rng = setting.genie(), np.random.default_rng(seed)
    every, smallest = setting.sets
    sums = np.zeros((rounds, 5))
    for row, played in zip(sums, play(setting.policies()[policy](), setting.crowd, rounds, seed), strict=True):
        terms = genie.terms(played.view)
        sets = np.sort(genie.search(terms, rng)), played.members
        best, own = (terms.reward(members, setting.crowd.expected_smallest(members)) for members in sets)
        bonus = (terms.alpha * terms.generalisation + terms.gamma * terms.privacy) / COHORT
        most = float((smallest + bonus[every].sum(axis=1)).max())
        lost = terms.energy(sets[0]) - terms.energy(sets[1])
        row[:] = best - own, lost, own, np.array_equal(*sets), most - own
    return Run(*np.cumsum(sums, axis=0).T)


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


GROUPS: dict[str, Callable[[Run], FloatArray]] = {
    "regret (15)": lambda run: run.regret,
    "by the Genie's measure": lambda run: run.by_measure,
    "reward (9) short of the best set's": lambda run: run.short,
    "the same of the Genie's set": lambda run: run.short - run.regret,
}


def tables_of(name: str, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return regret at some numbers of rounds beside the bound, and which fits leave how much of the variance."""
    setting = settings()[name]
    n = np.arange(1.0, next(iter(runs.values()))[0].regret.size + 1)
    marks = [mark for mark in MARKS if mark <= n.size]
    at, sums, fits = np.array(marks) - 1, [], []
    for title, quantity in GROUPS.items():
        for policy, own in runs.items():
            mean, error = mean_and_error([quantity(run) for run in own])
            sums.append([title, policy, *(f"{mean[i]:.2f} +- {error[i]:.2f}" for i in at)])
            if title in list(GROUPS)[:2]:
                agreed = np.mean([run.agreed[-1] for run in own]) / n[-1]
                left = (f"{fit(n, mean, shape)[1]:.2%}" for shape in SHAPES.values())
                fits.append([title, policy, *left, f"{agreed:.1%}"])
    sums += [["bound", bound, *(f"{values[i]:.3g}" for i in at)] for bound, values in setting.bounds(n).items()]
    told = f"{name}: alpha {setting.alpha:g}, beta {setting.beta:g}, gamma {setting.gamma:g}"
    last = "Share of the variance that a fit to the last nine tenths leaves, and of rounds with the Genie's set"
    heads = ("", "policy", *(f"n = {mark}" for mark in marks)), ("", "policy", *SHAPES, "as the Genie")
    return f"\n{told}\n\n{markdown(heads[0], sums)}\n{last}\n\n{markdown(heads[1], fits)}"


def draw(name: str, runs: Mapping[str, Sequence[Run]]) -> Figure:
    """Return the regret (15) over log n, and the regret by the Genie's measure on two log axes with what bends so."""
    figure = Figure(figsize=(10.5, 4.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    margin = name == "margin"
    for policy in runs:
        if policy not in ("uniform", "SA-PAUSE") or (policy == "SA-PAUSE" and not margin):
            _curve(left, runs[policy], "regret", policy, np.log if margin else None)
        n = _curve(right, runs[policy], "regret" if margin else "by_measure", policy, None if margin else np.sqrt)
    if margin:
        for style, (bound, values) in zip((":", "-."), settings()[name].bounds(n).items(), strict=True):
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


def _curve(axes: Axes, own: Sequence[Run], kind: str, name: str, shape: Shape | None) -> FloatArray:
    """Draw a mean with a band of two standard errors, and a fit where it was made; return the rounds."""
    mean, error = mean_and_error([getattr(run, kind) for run in own])
    n = np.arange(1.0, mean.size + 1)
    axes.plot(n, mean, color=COLOURS[name], label=name)
    axes.fill_between(n, mean - 2 * error, mean + 2 * error, color=COLOURS[name], alpha=0.2, linewidth=0)
    if shape and name.startswith("PAUSE"):
        late = n >= n[-1] / 10
        axes.plot(n[late], fit(n, mean, shape)[0][late], "--", color="black", linewidth=0.9)
    return n


def main() -> None:
    asked = sizes(
        __doc__,
        settings={"margin": True, "paper": True, "margin-paper": False, "paper-margin": False},
        policies=dict.fromkeys(COLOURS, True),
        rounds=10_000,
        seeds=5,
        workers=2,
        out=Path("runs/regret"),
    )
    with ProcessPoolExecutor(asked.workers) as pool:
        for name in asked.settings:
            jobs = {
                policy: [pool.submit(follow, name, policy, asked.rounds, seed) for seed in range(asked.seeds)]
                for policy in asked.policies
            }
            runs = {policy: [job.result() for job in own] for policy, own in jobs.items()}
            print(tables_of(name, runs))
            file = "regret.png" if name == "margin" else f"regret_{name}.png"
            written(draw(name, runs), asked.out / file)


if __name__ == "__main__":
    in_words(main)
