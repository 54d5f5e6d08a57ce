"""A policy that draws cohorts by scores of clients, uniform selection beside it, and an episode with either."""

from collections.abc import Callable
from typing import Any, Final

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

COHORT: Final = 5
Env = gymnasium.Env[Any, Any]
Observation = dict[str, NDArray[Any]]
Drawn = tuple[torch.Tensor, torch.Tensor]
"""Scores, of which the largest are taken, and the logarithm of the probability of this draw."""
Draw = Callable[[Observation], Drawn]


def played(env: Env, seed: int, draw: Draw) -> tuple[list[float], list[torch.Tensor], tuple[float, int, float]]:
    """Play an episode; return its rewards, the logarithms, and its seconds, rounds and last accuracy."""
    observation, info = env.reset(seed=seed)
    rewards, logs, over = list[float](), list[torch.Tensor](), False
    while not over:
        scores, log = draw(observation)
        observation, reward, terminated, truncated, info = env.step(in_bounds(scores))
        rewards.append(float(reward))
        logs.append(log)
        over = terminated or truncated
    return rewards, logs, (info["time_s"], len(rewards), info["accuracy"])


def in_bounds(scores: torch.Tensor) -> NDArray[np.float32]:
    """Return scores in [-1, 1] in the same order."""
    return np.asarray(2.0 * scores.argsort().argsort().numpy() / (len(scores) - 1) - 1.0, dtype=np.float32)


def uniform(rng: np.random.Generator, observation: Observation) -> Drawn:
    return torch.tensor(rng.uniform(-1, 1, observation["candidate"].size)), torch.zeros(())


def drawn(layers: torch.nn.Module, generator: torch.Generator | None, observation: Observation) -> Drawn:
    """Draw a cohort by scores from what the server knows of each client; those of no candidates are minus infinity.

    Clients are drawn one after the other without replacement, each with a probability in proportion to the exponential
    of its score (Plackett and Luce): those of the largest scores plus Gumbel noise.
    """
    known, taken = observation["last_duration_s"] >= 0, observation["participations"]
    last_s = np.where(known, observation["last_duration_s"], 0.0)
    columns = np.stack([last_s, known, taken / max(float(taken.max()), 1e-6), observation["samples"]], axis=1)
    scores = layers(torch.tensor(columns, dtype=torch.float32)).squeeze(1)
    scores = torch.where(torch.tensor(observation["candidate"] == 0), -torch.inf, scores)
    noisy = with_noise(scores.detach(), generator)
    order = torch.topk(noisy, COHORT).indices
    left = torch.where(noisy <= noisy[order, None], scores, -torch.inf)  # when each was drawn
    return noisy, (scores[order] - torch.logsumexp(left, 1)).sum()


def with_noise(scores: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    level = torch.rand(scores.shape, generator=generator).clamp(1e-7, 1 - 1e-7)
    return scores - torch.log(-torch.log(level))
