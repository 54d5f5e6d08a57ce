"""What an episode of an environment costs beside the same scenario run by `simulate`, in time of a processor.

    python -m tests.benchmarks.environment_steps

prints medians of seven pairs of five episodes, and their ratio.
"""

from collections.abc import Callable

import numpy as np

from fedsim import Scenario, simulate
from fedsim.bridges.gymnasium import CROWD_WITH_STRAGGLERS, SelectionEnv
from tests.benchmarks.crowds import seconds

PAIRS = 7
SEEDS = range(5)


def main() -> None:
    scenario = Scenario.model_validate(CROWD_WITH_STRAGGLERS)
    env = SelectionEnv(scenario)
    action = np.linspace(-1, 1, scenario.crowd.clients).astype(np.float32)

    def episode(seed: int) -> None:
        env.reset(seed=seed)
        over = False
        while not over:
            *_, terminated, truncated, _ = env.step(action)
            over = terminated or truncated

    def plain(seed: int) -> None:
        simulate(scenario.replace({"seed": seed}))

    pairs = [(milliseconds(episode), milliseconds(plain)) for _ in range(PAIRS)]
    stepped, whole = (float(np.median(column)) for column in zip(*pairs, strict=True))
    ratio = float(np.median([one / other for one, other in pairs]))
    print(f"an episode of {scenario.rounds.count} steps: {stepped:.1f} ms")
    print(f"the same by simulate: {whole:.1f} ms; ratio {ratio:.2f}")
    print(f"a reset: {milliseconds(lambda seed: env.reset(seed=seed)):.1f} ms")


def milliseconds(act: Callable[[int], object]) -> float:
    """Return the time of an act, the mean over the seeds."""
    return 1e3 * sum(seconds(act, seed) for seed in SEEDS) / len(SEEDS)


if __name__ == "__main__":
    main()
