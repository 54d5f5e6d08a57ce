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
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from study_scripts import command, panels, table, written

from fedsim.bridges.gymnasium import CROWD_WITH_STRAGGLERS, SELECTION
from fedsim.studies.comparing.pairs import t_interval

TARGET: Final = 0.9  # test accuracy
COHORT: Final = 5
COPIES: Final = 4  # episodes of one crowd, which are one another's baseline
CROWDS: Final = 4  # in one update
LEARNING_RATE: Final = 0.05
FIRST_HELD_OUT: Final = 20_000  # seeds from here on are never trained on; settings were chosen on those from 10,000
EPISODE: Final = tomllib.loads(Path(__file__).with_name("episode.toml").read_text(encoding="utf-8"))
Env = gymnasium.Env[Any, Any]
Observation = dict[str, NDArray[Any]]
Policy = Callable[[Observation], torch.Tensor]
"""Returns a score for each client; those with the largest ones are taken."""
Run = tuple[float, int, float]
"""The seconds, the rounds and the last accuracy of an episode."""


def main(updates: int = 25, held_out: int = 30, out: Path = Path("runs/gymnasium")) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scenario = {**CROWD_WITH_STRAGGLERS, **EPISODE}
    scenario["rounds"]["target_accuracy"] = TARGET
    env = gymnasium.make(SELECTION, scenario=scenario)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1, bias=False))
    optimiser, began_s, curve = torch.optim.Adam(layers.parameters(), lr=LEARNING_RATE), time.process_time(), []
    for update in range(updates):
        found = [episodes(env, layers, update * CROWDS + crowd) for crowd in range(CROWDS)]
        optimiser.zero_grad()
        torch.autograd.backward(torch.stack([loss for losses, _ in found for loss in losses]).mean())
        optimiser.step()
        curve.append(float(np.mean([took_s for _, took_s in found])))
    print(f"{updates} updates of {CROWDS * COPIES} episodes: {time.process_time() - began_s:.0f} s of CPU")
    runs: dict[str, list[Run]] = {"uniform": [], "policy": []}
    for seed in range(FIRST_HELD_OUT, FIRST_HELD_OUT + held_out):
        runs["uniform"].append(played(env, seed, uniform(seed))[1])
        runs["policy"].append(played(env, seed, drawing(layers, torch.Generator().manual_seed(seed), []))[1])
    show(curve, runs, out)


def episodes(env: Env, layers: torch.nn.Module, seed: int) -> tuple[list[torch.Tensor], NDArray[np.float64]]:
    """Play the copies of a crowd; return their losses, and their seconds to the target."""
    logs = [list[torch.Tensor]() for _ in range(COPIES)]
    played_rewards = [played(env, seed, drawing(layers, None, of))[0] for of in logs]
    # What was still to come at each round, 0 after the end; the other copies of the crowd are the baseline.
    rewards = np.array(list(zip_longest(*played_rewards, fillvalue=0.0))).T
    to_come = np.cumsum(rewards[:, ::-1], axis=1)[:, ::-1]
    gain = torch.tensor(to_come - to_come.mean(axis=0)) * COPIES / (COPIES - 1)
    spread = to_come[:, 0].std() + 1e-6
    losses = [-(of[: len(log)] * torch.stack(log)).sum() / spread for of, log in zip(gain, logs, strict=True)]
    return losses, -to_come[:, 0]


def played(env: Env, seed: int, policy: Policy) -> tuple[list[float], Run]:
    """Play an episode; return its rewards, and what came of it."""
    observation, info = env.reset(seed=seed)
    rewards, over = list[float](), False
    while not over:
        observation, reward, terminated, truncated, info = env.step(in_bounds(policy(observation)))
        rewards.append(float(reward))
        over = terminated or truncated
    return rewards, (info["time_s"], len(rewards), info["accuracy"])


def scored(layers: torch.nn.Module, observation: Observation) -> torch.Tensor:
    """Return a score for each client from what the server knows of it; minus infinity for one that is no candidate."""
    known, taken = observation["last_duration_s"] >= 0, observation["participations"]
    last_s = np.where(known, observation["last_duration_s"], 0.0)
    columns = np.stack([last_s, known, taken / max(float(taken.max()), 1e-6), observation["samples"]], axis=1)
    scores = layers(torch.tensor(columns, dtype=torch.float32)).squeeze(1)
    return torch.where(torch.tensor(observation["candidate"] == 0), -torch.inf, scores)


def drawing(layers: torch.nn.Module, generator: torch.Generator | None, logs: list[torch.Tensor]) -> Policy:
    """Return what draws cohorts by scores, and adds the logarithms of their probabilities to a list.

    Clients are drawn one after the other without replacement, each with a probability in proportion to the exponential
    of its score (Plackett and Luce): those of the largest scores plus Gumbel noise.
    """

    def policy(observation: Observation) -> torch.Tensor:
        scores = scored(layers, observation)
        noisy = with_noise(scores.detach(), generator)
        order = torch.topk(noisy, COHORT).indices
        left = scores.repeat(COHORT, 1)
        for place in range(1, COHORT):
            left[place:, order[place - 1]] = -torch.inf
        logs.append((scores[order] - torch.logsumexp(left, 1)).sum())
        return noisy

    return policy


def with_noise(scores: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    level = torch.rand(scores.shape, generator=generator).clamp(1e-7, 1 - 1e-7)
    return scores - torch.log(-torch.log(level))


def in_bounds(scores: torch.Tensor) -> NDArray[np.float32]:
    """Return scores in [-1, 1] in the same order."""
    ranks = torch.argsort(torch.argsort(scores))
    return np.asarray(2.0 * ranks.numpy() / (len(ranks) - 1) - 1.0, dtype=np.float32)


def uniform(seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    return lambda observation: torch.tensor(rng.uniform(-1, 1, observation["candidate"].size))


def show(curve: list[float], runs: dict[str, list[Run]], out: Path) -> None:
    """Print means over the held-out crowds and the paired difference; draw these crowds, and the training."""
    of = {name: np.array(found).T for name, found in runs.items()}
    rows = [
        [name, f"{s.mean():.1f}", f"{rounds.mean():.1f}", f"{s.sum() / rounds.sum():.2f}", (accuracy >= TARGET).sum()]
        for name, (s, rounds, accuracy) in of.items()
    ]
    table(["", "seconds", "rounds", "s a round", "reached"], rows)
    uniform_s, policy_s = of["uniform"][0], of["policy"][0]
    apart_s = policy_s - uniform_s
    half_s, sooner = t_interval(apart_s, 0.95).half, int((apart_s < 0).sum())
    print(f"policy - uniform: {apart_s.mean():.1f} +- {half_s:.1f} s; sooner in {sooner} of {apart_s.size} crowds")
    figure, (left, right) = panels(2, (9.0, 4.0))
    left.plot(range(1, len(curve) + 1), curve)
    left.set(xlabel="update", ylabel="seconds to 90 %, mean of the episodes", title="training", ylim=(0, None))
    right.plot([0, uniform_s.max()], [0, uniform_s.max()], color="0.7", linewidth=1)
    right.plot(uniform_s, policy_s, "o")
    right.set(xlabel="uniform: seconds to 90 %", ylabel="policy: seconds to 90 %", title="crowds never trained on")
    right.set(xlim=(0, None), ylim=(0, None))
    written({"policy.png": figure}, out)


if __name__ == "__main__":
    command(main, __doc__)
