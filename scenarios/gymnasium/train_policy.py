"""Does a small policy learn to select better than uniform selection? Seconds to 90 % in a crowd with stragglers.

    python scenarios/gymnasium/train_policy.py [--updates N] [--held-out N] [--out FOLDER]

The policy gives each candidate a score by a network of 96 numbers, the same for all clients. It learns by REINFORCE
(Williams, 1992) from real trainings, and is compared with uniform selection on crowds that it has not seen.
"""

import sys
import time
import tomllib
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from study_scripts import panels, sizes, table, written

from fedsim.bridges.gymnasium import CROWD_WITH_STRAGGLERS, SELECTION
from fedsim.studies.comparing.pairs import t_interval

TARGET: Final = 0.9  # test accuracy
COHORT: Final = 5
COPIES: Final = 4  # episodes of one crowd, which are one another's baseline
CROWDS: Final = 4  # in one update
LEARNING_RATE: Final = 0.05
FIRST_HELD_OUT: Final = 20_000  # seeds from here on are never trained on; settings were chosen on those from 10,000
EPISODE: Final = tomllib.loads(Path(__file__).with_name("episode.toml").read_text(encoding="utf-8"))
Observation = dict[str, NDArray[Any]]
Chooser = Callable[[Observation], torch.Tensor]
"""Returns a score for each client; those with the largest ones are taken."""
Run = tuple[float, int, float]
"""The seconds, the rounds and the last accuracy of an episode."""


class Policy(torch.nn.Module):
    """A score for each client from what the server knows of it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1, bias=False))

    def forward(self, observation: Observation) -> torch.Tensor:
        """Return the scores, shape (K,); those of clients that are no candidates are minus infinity."""
        known, taken = observation["last_duration_s"] >= 0, observation["participations"]
        last_s = np.where(known, observation["last_duration_s"], 0.0)
        columns = np.stack([last_s, known, taken / max(float(taken.max()), 1e-6), observation["samples"]], axis=1)
        scores = self.layers(torch.tensor(columns, dtype=torch.float32)).squeeze(1)
        return torch.where(torch.tensor(observation["candidate"] == 0), -torch.inf, scores)


def main() -> None:
    given = sizes("gymnasium", __doc__, updates=25, held_out=30)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scenario = {**CROWD_WITH_STRAGGLERS, **EPISODE}
    scenario["rounds"]["target_accuracy"] = TARGET
    env = gymnasium.make(SELECTION, scenario=scenario)
    policy, began_s = Policy(), time.process_time()
    curve = trained(env, policy, given.updates)
    print(f"{given.updates} updates of {CROWDS * COPIES} episodes: {time.process_time() - began_s:.0f} s of CPU")
    seeds = range(FIRST_HELD_OUT, FIRST_HELD_OUT + given.held_out)
    runs = {
        "uniform": [played(env, seed, uniform(seed))[1] for seed in seeds],
        "policy": [played(env, seed, drawing(policy, torch.Generator().manual_seed(seed)))[1] for seed in seeds],
    }
    print_table(runs)
    written({"policy.png": drawn(curve, runs)}, given.out)


def trained(env: "gymnasium.Env[Any, Any]", policy: Policy, updates: int) -> list[float]:
    """Train a policy; return the mean seconds to the target of each update's episodes."""
    optimiser = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
    curve = []
    for update in range(updates):
        losses, took_s = list[torch.Tensor](), list[float]()
        for crowd in range(CROWDS):
            logs = [list[torch.Tensor]() for _ in range(COPIES)]
            episodes = [played(env, update * CROWDS + crowd, drawing(policy, logs=of))[0] for of in logs]
            # What was still to come at each round, 0 after the end; the other copies of the crowd are the baseline.
            rewards = np.array(list(zip_longest(*episodes, fillvalue=0.0))).T
            to_come = np.cumsum(rewards[:, ::-1], axis=1)[:, ::-1]
            took_s.extend(-to_come[:, 0])
            gain = torch.tensor(to_come - to_come.mean(axis=0)) * COPIES / (COPIES - 1)
            spread = to_come[:, 0].std() + 1e-6
            losses += [-(of[: len(log)] * torch.stack(log)).sum() / spread for of, log in zip(gain, logs, strict=True)]
        optimiser.zero_grad()
        torch.autograd.backward(torch.stack(losses).mean())
        optimiser.step()
        curve.append(float(np.mean(took_s)))
    return curve


def played(env: "gymnasium.Env[Any, Any]", seed: int, choose: Chooser) -> tuple[list[float], Run]:
    """Play an episode; return its rewards, and what came of it."""
    observation, info = env.reset(seed=seed)
    rewards, over = list[float](), False
    while not over:
        observation, reward, terminated, truncated, info = env.step(in_bounds(choose(observation)))
        rewards.append(float(reward))
        over = terminated or truncated
    return rewards, (info["time_s"], len(rewards), info["accuracy"])


def drawing(
    policy: Policy, generator: torch.Generator | None = None, logs: list[torch.Tensor] | None = None
) -> Chooser:
    """Return what draws cohorts by the scores of a policy, and notes the logarithms of their probabilities.

    Clients are drawn one after the other without replacement, each with a probability in proportion to the exponential
    of its score (Plackett and Luce): those of the largest scores plus Gumbel noise.
    """

    def choose(observation: Observation) -> torch.Tensor:
        scores = policy(observation)
        noisy = with_noise(scores.detach(), generator)
        if logs is not None:
            order = torch.topk(noisy, COHORT).indices
            left = scores.repeat(COHORT, 1)
            for place in range(1, COHORT):
                left[place:, order[place - 1]] = -torch.inf
            logs.append((scores[order] - torch.logsumexp(left, 1)).sum())
        return noisy

    return choose


def with_noise(scores: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    level = torch.rand(scores.shape, generator=generator).clamp(1e-7, 1 - 1e-7)
    return scores - torch.log(-torch.log(level))


def in_bounds(scores: torch.Tensor) -> NDArray[np.float32]:
    """Return scores in [-1, 1] in the same order."""
    ranks = torch.argsort(torch.argsort(scores))
    return np.asarray(2.0 * ranks.numpy() / (len(ranks) - 1) - 1.0, dtype=np.float32)


def uniform(seed: int) -> Chooser:
    """Return what gives each client a random score."""
    rng = np.random.default_rng(seed)
    return lambda observation: torch.tensor(rng.uniform(-1, 1, observation["candidate"].size))


def print_table(runs: dict[str, list[Run]]) -> None:
    """Print the means over the held-out crowds, and the paired difference with its 95 % interval."""
    rows = []
    for name, found in runs.items():
        seconds, rounds, accuracy = np.array(found).T
        means = f"{seconds.mean():.1f}", f"{rounds.mean():.1f}", f"{seconds.sum() / rounds.sum():.2f}"
        rows.append([name, *means, (accuracy >= TARGET).sum()])
    table(["", "seconds", "rounds", "s a round", "reached"], rows)
    apart_s = np.subtract(*(np.array(runs[name])[:, 0] for name in ("policy", "uniform")))
    half_s, sooner = t_interval(apart_s, 0.95).half, int((apart_s < 0).sum())
    print(f"policy - uniform: {apart_s.mean():.1f} +- {half_s:.1f} s; sooner in {sooner} of {apart_s.size} crowds")


def drawn(curve: list[float], runs: dict[str, list[Run]]) -> Figure:
    """Return the seconds of each update of the training, and those of each held-out crowd."""
    figure, (left, right) = panels(2, (9.0, 4.0))
    left.plot(range(1, len(curve) + 1), curve)
    left.set(xlabel="update", ylabel="seconds to 90 %, mean of the episodes", title="training", ylim=(0, None))
    pairs = [[run[0] for run in runs[name]] for name in ("uniform", "policy")]
    right.plot([0, max(pairs[0])], [0, max(pairs[0])], color="0.7", linewidth=1)
    right.plot(*pairs, "o")
    right.set(xlabel="uniform: seconds to 90 %", ylabel="policy: seconds to 90 %", title="crowds never trained on")
    right.set(xlim=(0, None), ylim=(0, None))
    return figure


if __name__ == "__main__":
    main()
