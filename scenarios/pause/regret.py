"""How does PAUSE's regret against its Genie grow? Beside SA-PAUSE, uniform selection and the bound of Theorem 3.

    python scenarios/pause/regret.py [--rounds N] [--seeds S] [--workers W] [--out FOLDER]

The regret (15) sums, over the rounds, the expected reward (9) of the Genie's set (10) less that of the policy's set,
both given the same history of the policy, as in the proof of Theorem 3. Expectations are over the round's latencies, in
closed form up to an integral, so that decisions are the only noise of the curves.

Two settings with K = 12 and m = 3. In the first, three clients are fast and weights are small, so that one set remains
the best by a margin: the case of the proof, in which regret must bend like log n. The second has the weights of the
paper's runs and its two-speed crowd. Many sets are nearly equal there; and as (10) has the minimum of expectations
where the reward has the expectation of a minimum, the Genie is not the best policy, and PAUSE can earn more. The regret
by the Genie's own measure C^G, which no policy can exceed, is drawn beside it.

Rounds are driven on arrays (`array_rounds`), since the Genie is asked in every round with the policy's own history,
which no server does. SA-PAUSE is Algorithm 2 with kappa = 1, which the paper has for small crowds.
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from array_rounds import TAU_MIN_S, Crowd, FloatArray, play, two_speed
from regret_curves import Run, bending, both_measures, fit, mean_and_error

from fedsim.history import save
from fedsim.selectors import Pause, Selector, Uniform
from fedsim.selectors.pause.genie import PauseGenie, least_difference, regret_bound
from fedsim.selectors.pause.sa_pause import SaPause

COHORT = 3
SA_ITERATIONS = 300
MARKS = (10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)


@dataclass(frozen=True)
class Setting:
    name: str
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


def settings() -> list[Setting]:
    fast, slow = 0.05 + 0.01 * np.arange(1, 4), 0.50 + 0.40 * np.arange(1, 10) / 9
    return [
        Setting("latency decides", Crowd(np.concatenate([fast, slow])), alpha=0.2, gamma=1.0),
        Setting("the paper's weights", two_speed(12), alpha=100.0, gamma=5.0),
    ]


def follow(setting: Setting, policy: str, rounds: int, seed: int) -> Run:
    """Play a policy and ask the Genie in every round what it would have done."""
    genie, rng = setting.genie(), np.random.default_rng(seed)
    sums = np.zeros((rounds, 4))
    for row, played in zip(sums, play(setting.policies()[policy](), setting.crowd, rounds, seed), strict=True):
        terms = genie.terms(played.view)
        sets = np.sort(genie.search(terms, rng)), played.members
        best, own = (terms.reward(members, setting.crowd.expected_smallest(members)) for members in sets)
        lost = terms.energy(sets[0]) - terms.energy(sets[1])
        row[:] = best - own, lost, own, np.array_equal(*sets)
    return Run(*np.cumsum(sums, axis=0).T)


def print_table(setting: Setting, runs: dict[str, list[Run]]) -> None:
    """Print regret at some numbers of rounds, and the bound."""
    n = np.arange(1.0, runs["PAUSE"][0].regret.size + 1)
    at = np.array([mark for mark in MARKS if mark <= n.size]) - 1
    policies = [name for name in runs if name != "Genie"]
    print(f"\n{setting.name}: alpha {setting.alpha:g}, beta {setting.beta:g}, gamma {setting.gamma:g}")
    print(f"{'':<38}" + "".join(f"{f'n = {mark + 1}':>18}" for mark in at))
    groups: dict[str, Callable[[Run, Run], FloatArray]] = {
        "regret (15)": lambda run, _: run.regret,
        "regret by the Genie's measure": lambda run, _: run.by_measure,
        "reward behind a Genie of its own history": lambda run, genie: genie.reward - run.reward,
    }
    for title, quantity in groups.items():
        print(title)
        for name in policies:
            pairs = zip(runs[name], runs["Genie"], strict=True)
            mean, error = mean_and_error([quantity(run, genie) for run, genie in pairs])
            print(f"  {name:<36}" + "".join(f"{f'{mean[i]:.2f} ± {error[i]:.2f}':>18}" for i in at))
    for name, bound in setting.bounds(n).items():
        print(f"{name:<38}" + "".join(f"{bound[i]:>18.3g}" for i in at))
    print_shapes(n, {name: runs[name] for name in policies})


def print_shapes(n: FloatArray, runs: dict[str, list[Run]]) -> None:
    """Print what the curves bend like: the share of variance that a fit to the last nine tenths leaves."""
    print(f"{'variance left by a fit to the last 9/10':<48}{'log n':>9}{'sqrt n':>9}{'n':>9}{'as Genie':>10}")
    shapes = (np.log, np.sqrt, np.positive)
    for name, own in runs.items():
        agreed = np.mean([run.agreed[-1] for run in own]) / n[-1]
        for kind, title in (("regret", "(15)"), ("by_measure", "Genie's measure")):
            mean, _ = mean_and_error([getattr(run, kind) for run in own])
            left = "".join(f"{fit(n, mean, shape)[1]:>9.2%}" for shape in shapes)
            print(f"  {f'{name}, {title}':<46}{left}{agreed:>10.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Regret over rounds.")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/regret"))
    arguments = parser.parse_args()

    began = time.perf_counter()
    files = ("regret.png", "regret_paper_weights.png")
    with ProcessPoolExecutor(arguments.workers) as pool:
        for setting, file in zip(settings(), files, strict=True):
            jobs = {
                name: [pool.submit(follow, setting, name, arguments.rounds, seed) for seed in range(arguments.seeds)]
                for name in setting.policies()
            }
            runs = {name: [job.result() for job in own] for name, own in jobs.items()}
            print_table(setting, runs)
            bounds = setting.bounds(np.arange(1.0, arguments.rounds + 1))
            figure = bending(runs, bounds) if file == "regret.png" else both_measures(runs)
            save(figure, arguments.out / file)
            print(f"{arguments.out / file}, after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
