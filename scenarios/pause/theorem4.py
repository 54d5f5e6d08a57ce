"""When is PAUSE's annealing at a best set? Theorem 4 of its paper says that it is in the end, for kappa = 1.

    python scenarios/pause/theorem4.py [--iterations J]

K = 12, m = 3, and the terms (UCB, g, p) that a run of exact PAUSE on the two-speed crowd has after 100 and 300 rounds.
Printed is the probability that Algorithm 2 is at a best set after j iterations, by the law of its Markov chain, and
after how many iterations the equilibrium gives the best sets one half. It takes ten seconds.
"""

from itertools import product

import numpy as np
from annealing_chain import Chain, chain_of
from crowds import TAU_MIN_S, WEIGHTS, Crowd
from paper_runs.command import in_words, options
from paper_runs.tables import markdown
from scipy.optimize import brentq

from fedsim.selectors import Pause
from fedsim.selectors.pause.annealing import energy_range
from fedsim.selectors.pause.sa_pause import SaPause


def iterations_until_even(chain: Chain, heat: float) -> float:
    """Return the log10 of the iterations after which the walk's equilibrium gives the best sets one half.

    At a fixed temperature tau the equilibrium is proportional to the number of neighbours times ``exp(E / tau)``.
    """
    degree, short = chain.joined.sum(axis=1), chain.energy - chain.energy.max()

    def excess(log_steps: float) -> float:
        weight = degree * np.exp(short * log_steps / heat)
        return float(weight[chain.best].sum() / weight.sum()) - 0.5

    return float(brentq(excess, 0.0, 1e9)) / float(np.log(10)) if excess(0.0) < 0 else 0.0


def main() -> None:
    iterations = options(__doc__, iterations=30_000).parse_args().iterations
    marks = [10**power for power in range(len(str(iterations)))]
    selector = Pause(3, TAU_MIN_S, *WEIGHTS[30])
    met = [selector.terms(view) for view, _ in Crowd(12).play(selector, 301)]
    rows = []
    for after, kappa in product((100, 300), (1.0, 10.0, 30.0, 70.0)):
        chain = chain_of(met[after], np.random.default_rng(0).permutation(12))
        heat = energy_range(met[after], SaPause.omega) / kappa
        chances = (f"{chance:.3f}" for chance in chain.chances(heat, marks))
        rows.append([f"{after}, {kappa:g}", *chances, f"10^{iterations_until_even(chain, heat):.0f}"])
    print("Chance of the best of 220 sets, K = 12, m = 3\n")
    print(markdown(("rounds of PAUSE, kappa", *(f"j = {j}" for j in marks), "equilibrium 1/2 at j"), rows))


if __name__ == "__main__":
    in_words(main)
