"""Does a small policy learn to select better than uniform selection? Seconds to 90 % in a crowd with stragglers.

    python scenarios/gymnasium/train_policy.py [--updates N] [--held-out N] [--out FOLDER]

takes 3 minutes. The policy gives each candidate a score by a network of 96 numbers, the same for all clients. It learns
by REINFORCE (Williams, 1992) from real trainings, and is compared with uniform selection on unseen crowds.
"""

import sys
import tomllib
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import torch
from policy import drawn, played, uniform
from reinforce import trained

sys.path.insert(0, str(Path(__file__).parents[1]))

from study_scripts import command, panels, table, written

from fedsim.bridges.gymnasium import CROWD_WITH_STRAGGLERS, SELECTION
from fedsim.studies.comparing.pairs import t_interval

FIRST_HELD_OUT = 20_000  # seeds from here on are never trained on; settings were chosen on those from 10,000
EPISODE = tomllib.loads(Path(__file__).with_name("episode.toml").read_text(encoding="utf-8"))


def main(updates: int = 25, held_out: int = 30, out: Path = Path("runs/gymnasium")) -> None:
    env = gymnasium.make(SELECTION, scenario={**CROWD_WITH_STRAGGLERS, **EPISODE})
    layers, curve = trained(env, updates)
    found = []
    for seed in range(FIRST_HELD_OUT, FIRST_HELD_OUT + held_out):
        rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        draws = partial(uniform, rng), partial(drawn, layers, generator)
        found.append([played(env, seed, draw)[2] for draw in draws])
    of, rows = np.array(found).transpose(1, 2, 0), []
    for name, (s, rounds, accuracy) in zip(("uniform", "policy"), of, strict=True):
        reached = (accuracy >= EPISODE["rounds"]["target_accuracy"]).sum()
        rows.append([name, f"{s.mean():.1f}", f"{rounds.mean():.1f}", f"{s.sum() / rounds.sum():.2f}", reached])
    table(["", "seconds", "rounds", "s a round", "reached"], rows)
    uniform_s, policy_s = of[:, 0]
    apart_s = policy_s - uniform_s
    half_s, sooner = t_interval(apart_s, 0.95).half, (apart_s < 0).sum()
    print(f"policy - uniform: {apart_s.mean():.1f} +- {half_s:.1f} s; sooner in {sooner} of {held_out} crowds")
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
