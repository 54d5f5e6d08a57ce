"""How does PAUSE's regret against its Genie grow? Beside SA-PAUSE, uniform selection and the bound of Theorem 3.

    python scenarios/pause/regret.py [--settings NAME ...] [--policies NAME ...] [--rounds N] [--seeds S] [--workers W]

The regret (15) sums the expected reward (9) of the Genie's set (10) less that of the policy's set, both given the
policy's history, as in the proof of Theorem 3. K = 12 and m = 3; SA-PAUSE is Algorithm 2 with kappa = 1. Settings:

- ``margin``: three clients are fast and weights are small, so that one set stays the best by a margin, as in the proof.
- ``paper``: the paper's weights and two-speed crowd. As (10) has the minimum of expectations where (9) has the
  expectation of a minimum, the Genie is not the best policy: what both sets lack to the best of all 220 is told, too.
- ``margin-paper``, ``paper-margin``: the crowd of one with the weights of the other.

PAUSE takes 200 s of a processor for 100,000 rounds, SA-PAUSE 450 s; the whole takes 21 minutes of one.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from genie_curves import MARKS, MEASURE, POLICIES, REGRET, SHAPES, SUMS, Runs, fit, follow, mean_and_error
from genie_figure import draw
from genie_settings import BETA, SETTINGS
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from study_scripts import written


def tables_of(name: str, runs: Runs, rounds: int) -> str:
    """Return regret at some numbers of rounds beside the bound, and which fits leave how much of the variance."""
    setting, n, marks = SETTINGS[name], np.arange(1.0, rounds + 1), [mark for mark in MARKS if mark <= rounds]
    means = {(title, policy): mean_and_error(own, title) for title, (policy, own) in product(SUMS, runs.items())}
    sums = [[*of, *(f"{mean[i - 1]:.2f} +- {error[i - 1]:.2f}" for i in marks)] for of, (mean, error) in means.items()]
    sums += [["bound", of, *(f"{bound[i - 1]:.3g}" for i in marks)] for of, bound in setting.bounds(n).items()]
    fitted = {of: mean for of, (mean, _) in means.items() if of[0] in (REGRET, MEASURE)}
    fits = [[*of, *(f"{fit(n, mean, shape)[1]:.2%}" for shape in SHAPES)] for of, mean in fitted.items()]
    text = f"\n{name}: alpha {setting.alpha:g}, beta {BETA:g}, gamma {setting.gamma:g}\n\n"
    text += markdown(("", "policy", *(f"n = {mark}" for mark in marks)), sums)
    text += "\nShare of the variance that a fit to the last nine tenths leaves\n\n"
    return text + markdown(("", "policy", *SHAPES), fits)


def main() -> None:
    settings, sizes = dict.fromkeys(SETTINGS, False) | {"margin": True, "paper": True}, {"rounds": 10_000, "seeds": 5}
    places = {"workers": 2, "out": Path("runs/regret")}
    asked = options(__doc__, settings=settings, policies=dict.fromkeys(POLICIES, True), **sizes, **places).parse_args()
    with ProcessPoolExecutor(asked.workers) as pool:
        for name in asked.settings:
            players = [POLICIES[policy](*SETTINGS[name].terms) for policy in asked.policies]
            plays = [partial(follow, SETTINGS[name], one, asked.rounds) for one in players]
            jobs = [pool.map(play, range(asked.seeds)) for play in plays]
            runs = {policy: list(own) for policy, own in zip(asked.policies, jobs, strict=True)}
            print(tables_of(name, runs, asked.rounds))
            file = "regret.png" if name == "margin" else f"regret_{name}.png"
            written({file: draw(name, runs, asked.rounds)}, asked.out)


if __name__ == "__main__":
    in_words(main)
