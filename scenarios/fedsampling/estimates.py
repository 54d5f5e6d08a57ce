"""What FedSampling's question tells about the number of samples, among the clients of Fig. 6 or of another experiment.

    python scenarios/fedsampling/estimates.py [--experiment NAME] [--seeds N] [--data-dir DIR]

prints the clients of each seed and, for the threshold M and epsilon of the experiment and for those of Fig. 6, the
standard deviation of the estimate before its floor, how often it is below the number of clients, and how many samples a
round draws. ``table1`` asks for the texts that its study has converted (``results.py table1 --agnews FILE``).
A seed takes less than a minute.
"""

import numpy as np
from fedsampling_experiments import EXPERIMENTS, scenario_of
from paper_runs.command import in_words, options
from paper_runs.tables import markdown

from fedsim.arrays import IntArray
from fedsim.selectors import RandomizedResponse
from fedsim.simulation import Simulation

QUESTIONS = 400
PAIRS = [(300, 3), *((threshold, epsilon) for threshold in (10, 100, 1000) for epsilon in (1, 3, 5))]
HEADS = "M", "epsilon", "alpha", "standard deviation of N", "below the number of clients", "samples drawn: 10, 50, 90 %"


def row_of(size: IntArray, samples: int, threshold: int, epsilon: float, questions: int) -> list[str]:
    response, rng = RandomizedResponse.of_epsilon(threshold, epsilon), np.random.default_rng(0)
    answers = [response.answers(size, *rng.random((2, size.size))) for _ in range(questions)]
    deviation = float(np.std([one.sum() for one in answers])) / response.alpha
    found = np.array([response.estimate(one) for one in answers])
    drawn = np.quantile(np.minimum(samples / found, 1.0) * size.sum(), (0.1, 0.5, 0.9))
    below = float((found <= size.size).mean())
    numbers = ", ".join(f"{number:,.0f}" for number in drawn)
    return [f"{threshold}", f"{epsilon}", f"{response.alpha:.2g}", f"{deviation:,.0f}", f"{100 * below:.0f} %", numbers]


def main() -> None:
    names = ["fig6", *(name for name in EXPERIMENTS if name != "fig6")]
    asked = options(__doc__, experiment=names, seeds=1, data_dir=None).parse_args()
    setting = next(iter(EXPERIMENTS[asked.experiment].settings))
    for seed in range(asked.seeds):
        scenario = scenario_of(asked.experiment, "fedsampling", setting, seed)
        learner = Simulation(scenario, store=False, data_dir=asked.data_dir, executor="sequential").context.learner
        size, samples = learner.samples[learner.samples > 0], int(scenario.describe()["selector"]["samples"])
        print(f"seed {seed}: {size.size} clients, {size.sum()} samples, the largest {size.max()}\n")
        print(markdown(HEADS, [row_of(size, samples, *one, QUESTIONS) for one in PAIRS]), end="\n\n")


if __name__ == "__main__":
    in_words(main)
