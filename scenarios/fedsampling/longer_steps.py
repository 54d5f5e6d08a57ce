"""What a few longer steps do to centralised training, as they happen to FedSampling when its estimate of N is low.

    python scenarios/fedsampling/longer_steps.py [--seeds N] [--data-dir DIR]

runs centralised training of Fig. 3, of 600 rounds. From round 300 on, the last rounds of each fifty take a step that is
2.54 times as long, which is 5,202 samples in place of 2,048. An evaluation after such rounds is printed beside the ones
of ten rounds before and of ten rounds later. Five seeds take eight minutes of a processor.
"""

import numpy as np
from fedsampling_experiments import scenario_of
from paper_runs.command import in_words, options
from paper_runs.tables import markdown, with_deviation

from fedsim import simulate
from fedsim.arrays import FloatArray
from fedsim.learning import Schedule

FACTOR, FROM, EVERY = 2.54, 300, 50


class LongerSteps(Schedule):
    """Steps are longer in the last rounds of each fifty."""

    rounds: int

    def factors(self, version: int, steps: int) -> FloatArray:
        """Return the factor of a round for each of its steps."""
        longer = version >= FROM and version % EVERY >= EVERY - self.rounds
        return np.full(steps, FACTOR if longer else 1.0)


def main() -> None:
    asked, rows = options(__doc__, seeds=5, data_dir=None).parse_args(), []
    for length in (1, 5, 10):
        found = []
        for seed in range(asked.seeds):
            scenario = scenario_of("fig3", "centralization", seed=seed)
            longer = scenario.replace({"learning.local.schedule": LongerSteps(rounds=length)})
            history = simulate(longer, store=False, data_dir=asked.data_dir, executor="sequential")
            at = history.column("evaluations", "round")
            after = np.flatnonzero((at > FROM) & (at % EVERY == 0) & (at < at[-1]))
            found.append(100.0 * history.column("evaluations", "accuracy")[after[:, None] + np.array([-1, 0, 1])])
        accuracy = np.concatenate(found)
        rows.append([f"{length}", *(with_deviation(list(one), 1) for one in accuracy.T), f"{accuracy[:, 1].min():.1f}"])
    print(markdown(("longer rounds", "before %", "at their end %", "ten rounds later %", "lowest %"), rows))


if __name__ == "__main__":
    in_words(main)
