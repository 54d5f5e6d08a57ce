"""Random modules with state of every kind, as users write them: a module is made of a few habits drawn at random."""

import random

import numpy as np
import torch
from torch import nn

from fedsim import Component

HABITS = (
    *("norm", "dropout", "frozen", "tied", "hook", "counting-hook", "gradient-hook", "weight-clamp"),
    *("calls", "list", "table", "shared-list", "in-place", "replaced", "whole-number", "queue", "hidden"),
    *("own-torch-generator", "own-numpy-generator", "own-python-generator"),
    *("python-global", "numpy-global", "torch-global", "new-attribute", "lock", "branch"),
    *("moves-frozen", "swaps-layer", "callable-hook", "module-global"),
)
REFUSED = frozenset({"lock", "moves-frozen", "swaps-layer", "callable-hook", "module-global"})
"""Habits that no sandbox can undo, or that are part of no update."""
_GLOBAL = [0]


class Counter:
    """A hook with a state of its own, which is no attribute of the module."""

    def __init__(self):
        self.count = 0

    def __call__(self, _module, _given, found):
        self.count += 1
        return found * (1 + 0.05 * self.count)


def scaled(_module, _given, found):
    return found * 1.1


class Odd(nn.Module):
    def __init__(self, habits, width=9):
        super().__init__()
        self.habits = habits
        self.first, self.second, self.last = nn.Linear(6, width), nn.Linear(width, width), nn.Linear(width, 3)
        self.calls, self.seen, self.table = 0, [], {"n": np.zeros(2), "t": torch.zeros(2)}
        self.other = self.seen
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))
        self.register_buffer("past", torch.zeros(4, 6), persistent=False)
        self.register_buffer("hidden", torch.zeros(width), persistent=False)
        self.draws = [torch.Generator().manual_seed(1), np.random.default_rng(1), random.Random(1)]  # noqa: S311
        self.norm = nn.BatchNorm1d(width) if "norm" in habits else nn.Identity()
        self.drop = nn.Dropout(0.3) if "dropout" in habits else nn.Identity()
        if "frozen" in habits or "moves-frozen" in habits:
            self.first.weight.requires_grad_(False)
        if "tied" in habits:
            self.second.weight = nn.Parameter(torch.eye(width))
            self.third = nn.Linear(width, width)
            self.third.weight = self.second.weight
        if "hook" in habits:
            self.first.register_forward_hook(scaled)
        if "counting-hook" in habits:
            self.first.register_forward_hook(self.counted)
        if "callable-hook" in habits:
            self.first.register_forward_hook(Counter())
        if "gradient-hook" in habits:
            self.last.weight.register_hook(lambda slope: slope * 0.5)
        if "lock" in habits:
            self.held = (i for i in range(10))  # can be neither copied nor compared

    def counted(self, _module, _given, found):
        self.calls += 1
        return found * (1 + 0.01 * self.calls)

    def forward(self, x):  # noqa: C901, PLR0912 - a branch for each habit
        habits, seen = self.habits, x.detach()
        if "calls" in habits:
            self.calls += 1
            x = x * (1 + 0.02 * self.calls)
        if "list" in habits or "shared-list" in habits:
            self.seen.append(float(seen.sum()))
            x = x + 0.01 * len(self.other if "shared-list" in habits else self.seen)
        if "table" in habits:
            self.table["n"][0] += 1
            self.table["t"] += 1
            x = x + 0.01 * float(self.table["n"][0]) + 0.01 * self.table["t"][0]
        if "in-place" in habits and self.training:
            self.mean.mul_(0.9).add_(0.1 * seen.mean(0))
        if "replaced" in habits and self.training:
            self.mean = 0.9 * self.mean + 0.1 * seen.mean(0)
        if "in-place" in habits or "replaced" in habits:
            x = x - self.mean
        if "whole-number" in habits and self.training:
            self.count += 1
            x = x * (1 + 0.01 * self.count.float())
        if "queue" in habits and self.training:
            self.past[self.place] = seen[0]
            self.place = (self.place + 1) % 4
            x = x + 0.1 * self.past.mean(0)
        if "hidden" in habits:
            self.hidden = torch.tanh(self.first(x).detach().mean(0))
            x = x + self.hidden[:6]
        if "own-torch-generator" in habits:
            x = x + 0.1 * torch.randn(x.shape[1:], generator=self.draws[0])
        if "own-numpy-generator" in habits:
            x = x + 0.1 * float(self.draws[1].normal())
        if "own-python-generator" in habits:
            x = x + 0.1 * self.draws[2].random()
        if "python-global" in habits:
            x = x + 0.1 * random.random()  # noqa: S311
        if "numpy-global" in habits:
            x = x + 0.1 * float(np.random.normal())  # noqa: NPY002
        if "torch-global" in habits:
            x = x + 0.1 * torch.rand(1)
        if "new-attribute" in habits:
            self.newest = getattr(self, "newest", 0) + 1
            x = x * (1 + 0.01 * self.newest)
        if "branch" in habits and float(seen.sum()) > 0:
            x = x * 1.5
        if "weight-clamp" in habits:
            self.last.weight.data.clamp_(-0.5, 0.5)
        if "moves-frozen" in habits and self.training:
            with torch.no_grad():
                self.first.weight.mul_(1.01)
        if "swaps-layer" in habits and self.training:
            self.last.weight = nn.Parameter(self.last.weight.detach() * 1.01)
        if "module-global" in habits:
            _GLOBAL[0] += 1
            x = x * (1 + 0.01 * _GLOBAL[0])
        x = self.drop(torch.relu(self.norm(self.first(x))))
        x = torch.relu(self.second(x))
        return self.last(self.third(x) if "tied" in habits else x)


class OddModel(Component):
    habits: tuple[str, ...]

    def build(self, shape, classes):
        return Odd(frozenset(self.habits))


def odd_models(count):
    """Return random habits: each once alone, then up to three together."""
    pick = random.Random(0)  # noqa: S311
    alone = [(habit,) for habit in HABITS]
    pick.shuffle(alone)
    drawn = [tuple(sorted(pick.sample(HABITS, pick.choice((1, 2, 2, 3))))) for _ in range(count)]
    return (alone + drawn)[:count]
