"""Training of the policy by REINFORCE: episodes of several crowds, and several of each, are an update."""

from functools import partial
from itertools import zip_longest
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from policy import Env, drawn, played

COPIES: Final = 4  # episodes of one crowd, which are one another's baseline
CROWDS: Final = 4  # in one update
LEARNING_RATE: Final = 0.05


def trained(env: Env, updates: int) -> tuple[torch.nn.Module, list[float]]:
    """Return the network of a policy, and the mean seconds to the target in the episodes of each update."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1, bias=False))
    optimiser, curve = torch.optim.Adam(layers.parameters(), lr=LEARNING_RATE), []
    for update in range(updates):
        found = [episodes(env, layers, update * CROWDS + crowd) for crowd in range(CROWDS)]
        optimiser.zero_grad()
        torch.autograd.backward(torch.stack([loss for losses, _ in found for loss in losses]).mean())
        optimiser.step()
        curve.append(float(np.mean([took_s for _, took_s in found])))
    return layers, curve


def episodes(env: Env, layers: torch.nn.Module, seed: int) -> tuple[list[torch.Tensor], NDArray[np.float64]]:
    """Play the copies of a crowd; return their losses, and their seconds to the target."""
    copies = [played(env, seed, partial(drawn, layers, None)) for _ in range(COPIES)]
    # What was still to come at each round, 0 after the end; the other copies of the crowd are the baseline.
    rewards = np.array(list(zip_longest(*(rewards for rewards, *_ in copies), fillvalue=0.0)))
    to_come = np.cumsum(rewards[::-1], axis=0)[::-1].T
    gain = torch.tensor(to_come - to_come.mean(axis=0)) * COPIES / (COPIES - 1)
    spread = to_come[:, 0].std() + 1e-6
    losses = [
        -(of[: len(logs)] * torch.stack(logs)).sum() / spread for of, (_, logs, _) in zip(gain, copies, strict=True)
    ]
    return losses, -to_come[:, 0]
