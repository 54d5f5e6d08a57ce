"""Does a small policy learn to select better than uniform selection? Seconds to 90 % in a crowd with stragglers.

    python scenarios/gymnasium/train_policy.py [--updates N] [--held-out N] [--out FOLDER]

The policy gives each candidate a score by a network of 96 numbers, the same for all clients. It learns by REINFORCE
(Williams, 1992) from real trainings, and is compared with uniform selection on crowds that it has not seen.
"""

import sys
import tomllib
from collections.abc import Callable
from functools import partial
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
Draw = Callable[[Observation], tuple[torch.Tensor, torch.Tensor]]
"""Returns scores, of which the largest are taken, and the logarithm of the probability of this draw."""


def main(updates: int = 25, held_out: int = 30, out: Path = Path("runs/gymnasium")) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scenario = {**CROWD_WITH_STRAGGLERS, **EPISODE}
    scenario["rounds"]["target_accuracy"] = TARGET
    env = gymnasium.make(SELECTION, scenario=scenario)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1, bias=False))
    optimiser, curve = torch.optim.Adam(layers.parameters(), lr=LEARNING_RATE), []
    for update in range(updates):
        found = [episodes(env, layers, update * CROWDS + crowd) for crowd in range(CROWDS)]
        optimiser.zero_grad()
        torch.autograd.backward(torch.stack([loss for losses, _ in found for loss in losses]).mean())
        optimiser.step()
        curve.append(float(np.mean([took_s for _, took_s in found])))
    runs: dict[str, list[tuple[float, int, float]]] = {"uniform": [], "policy": []}
    for seed in range(FIRST_HELD_OUT, FIRST_HELD_OUT + held_out):
        runs["uniform"].append(played(env, seed, uniform(seed))[2])
        drawing = partial(drawn, layers, generator=torch.Generator().manual_seed(seed))
        runs["policy"].append(played(env, seed, drawing)[2])
    show(curve, {name: np.array(of).T for name, of in runs.items()}, out)


def episodes(env: Env, layers: torch.nn.Module, seed: int) -> tuple[list[torch.Tensor], NDArray[np.float64]]:
    """Play the copies of a crowd; return their losses, and their seconds to the target."""
    copies = [played(env, seed, partial(drawn, layers)) for _ in range(COPIES)]
    # What was still to come at each round, 0 after the end; the other copies of the crowd are the baseline.
    rewards = np.array(list(zip_longest(*(rewards for rewards, *_ in copies), fillvalue=0.0))).T
    to_come = np.cumsum(rewards[:, ::-1], axis=1)[:, ::-1]
    gain = torch.tensor(to_come - to_come.mean(axis=0)) * COPIES / (COPIES - 1)
    spread = to_come[:, 0].std() + 1e-6
    losses = [
        -(of[: len(logs)] * torch.stack(logs)).sum() / spread for of, (_, logs, _) in zip(gain, copies, strict=True)
    ]
    return losses, -to_come[:, 0]


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


def drawn(
    layers: torch.nn.Module, observation: Observation, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
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
    left = scores.repeat(COHORT, 1)
    for place in range(1, COHORT):
        left[place:, order[place - 1]] = -torch.inf
    return noisy, (scores[order] - torch.logsumexp(left, 1)).sum()


def uniform(seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda observation: (torch.tensor(rng.uniform(-1, 1, observation["candidate"].size)), torch.zeros(()))


def with_noise(scores: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    level = torch.rand(scores.shape, generator=generator).clamp(1e-7, 1 - 1e-7)
    return scores - torch.log(-torch.log(level))


def in_bounds(scores: torch.Tensor) -> NDArray[np.float32]:
    """Return scores in [-1, 1] in the same order."""
    ranks = torch.argsort(torch.argsort(scores))
    return np.asarray(2.0 * ranks.numpy() / (len(ranks) - 1) - 1.0, dtype=np.float32)


def show(curve: list[float], of: dict[str, NDArray[np.float64]], out: Path) -> None:
    """Print means over the held-out crowds and the paired difference; draw these crowds, and the training."""
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
