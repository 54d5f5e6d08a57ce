"""FedSUV against Algorithm 1 followed to the letter, with sets, loops and dense matrices, in random situations."""

import math

import numpy as np
import pytest

from fedsim.selectors import FedSuv
from tests.support.views import measured_reports_of, rng, view_of


class ToTheLetter:
    """Algorithm 1 and the choices that `FedSuv` documents; every observation is a row of a dense matrix."""

    def __init__(self, x, options, features):
        self.x, self.features = x, features
        vars(self).update(options)
        self.clients = len(x)
        self.left, self.removed_in = set(range(self.clients)), {}
        self.low, self.high = np.full((self.clients, 2), -np.inf), np.full((self.clients, 2), np.inf)
        self.tries, self.delivered, self.seen, self.values, self.measured = [], [], [], [], []

    def kernel_between(self, one, other):
        if not self.features:
            return np.equal.outer(np.array(one), np.array(other)).astype(float)
        apart = np.linalg.norm(self.x[one][:, None] - self.x[other][None], axis=-1) / self.length_scale
        if self.kernel == "rbf":
            return np.exp(-(apart**2) / 2)
        return (1 + math.sqrt(5) * apart + 5 * apart**2 / 3) * np.exp(-math.sqrt(5) * apart)

    def deviation(self, seen):
        everyone = list(range(self.clients))
        within = self.kernel_between(seen, seen) + self.noise**2 * np.eye(len(seen))
        across = self.kernel_between(everyone, seen)
        return np.sqrt(np.maximum(1 - np.einsum("ij,ji->i", across, np.linalg.solve(within, across.T)), 0))

    def unit(self):
        if self.utility_scale is not None:
            return self.utility_scale
        return math.sqrt(np.mean(np.square(self.measured))) or 1.0 if self.measured else 1.0

    def half_width(self, number):
        beta = 2 * math.log(self.clients * math.pi**2 * number**2 / (3 * self.delta))
        return math.sqrt(beta) * self.unit()

    def bounds(self, number):
        """Equations 4 and 5."""
        tried = self.x[self.tries]
        inverse = np.linalg.inv(self.ridge * np.eye(self.x.shape[1]) + tried.T @ tried)
        centre = self.x @ inverse @ (tried.T @ np.array(self.delivered, dtype=float))
        alpha = 1 + math.sqrt(math.log(4 / self.delta) / 2)
        width = alpha * np.sqrt(np.einsum("ni,ij,nj->n", self.x, inverse, self.x))
        within = self.kernel_between(self.seen, self.seen) + self.noise**2 * np.eye(len(self.seen))
        across = self.kernel_between(list(range(self.clients)), self.seen)
        mean = across @ np.linalg.solve(within, np.array(self.values, dtype=float))
        known = self.utility_scale is not None or self.measured
        spread = self.half_width(number) * self.deviation(self.seen) if known else np.full(self.clients, np.inf)
        return np.stack([centre - width, mean - spread], 1), np.stack([centre + width, mean + spread], 1)

    def prune(self, number, keep):
        low, high = self.bounds(number)
        if len(self.left) > (1 - self.rho) * self.clients:  # lines 5 to 8
            best = max(self.left, key=lambda k: low[k, 0])
            least = keep if self.elimination == "guard" else max(keep, (1 - self.rho) * self.clients)
            out = [k for k in self.left if k != best and high[k, 0] <= low[best, 0]]
            self.remove(sorted(out, key=lambda k: high[k, 0]), number, least)
        for k, side in np.ndindex(self.clients, 2):  # line 9; of an empty intersection the paper says nothing
            if k not in self.left:
                continue
            under, over = max(self.low[k, side], low[k, side]), min(self.high[k, side], high[k, side])
            if under > over and self.when_disjoint == "restart":
                under, over = low[k, side], high[k, side]
            elif under > over:
                under = over = self.high[k, side] if low[k, side] > self.high[k, side] else self.low[k, side]
            self.low[k, side], self.high[k, side] = under, over
        out = [k for k in self.left if any(k != j and self.dominates(j, k) for j in self.left)]  # lines 10 to 18
        self.remove(sorted(out, key=lambda k: self.high[k, 1]), number, keep)

    def dominates(self, j, k):
        return np.all(self.high[k] <= self.low[j]) and np.any(self.high[k] < self.low[j])

    def remove(self, out, number, least):
        for k in out[: max(len(self.left) - math.ceil(least), 0)]:
            self.left.remove(k)
            self.removed_in[k] = number

    def is_choice(self, chosen, candidates, size, number):
        """Whether a cohort is one of lines 19 and 20, whatever the order of equal clients."""
        inside, chosen = [k for k in candidates if k in self.left], list(chosen)
        high = {k: round(self.high[k, 1] / self.unit(), 4) for k in candidates}
        if len(inside) > size:
            width = {k: np.hypot(*((self.high[k] - self.low[k]) / [1, self.unit()])) for k in inside}
            first = [k for k in chosen if width[k] >= max(width.values()) - 1e-6]
            if self.batch == "hallucinated":
                return any(self.hallucinates(one, inside, chosen, number) for one in first)
            return any(is_top([k for k in chosen if k != one], [k for k in inside if k != one], high) for one in first)
        outside = [k for k in candidates if k not in self.left]
        rank = {k: (self.removed_in[k], high[k]) for k in outside}
        filled = [k for k in chosen if k in outside]
        least = size if self.fill == "removed" else len(inside)
        return set(inside) <= set(chosen) and len(chosen) == least and is_top(filled, outside, rank)

    def hallucinates(self, first, inside, chosen, number):
        """Whether a cohort is that of GP-BUCB after its first client, one of equal ones being as good as another."""
        taken, known = [first], self.utility_scale is not None or self.measured
        while len(taken) < len(chosen):
            fall = self.deviation(self.seen) - self.deviation([*self.seen, *taken])
            bound = np.round(self.high[:, 1] - (self.half_width(number) * fall if known else 0.0), 6)
            taken.append(max((k for k in inside if k not in taken), key=lambda k: (bound[k], k in chosen)))
        return set(taken) == set(chosen)

    def observe(self, client, delivered, loss, gain, samples):
        used = np.minimum(samples[client], self.samples_per_round or np.inf)
        utility = used * loss * (np.maximum(gain, 0) if self.negative_gain == "zero" else gain)
        instead = utility[delivered].mean() if self.undelivered == "mean" and delivered.any() else 0.0
        self.measured += utility[delivered].tolist()
        for k, arrived, value in zip(client.tolist(), delivered.tolist(), utility.tolist(), strict=True):
            self.tries.append(k)
            self.delivered.append(arrived)
            if arrived or self.undelivered != "nothing":
                self.seen.append(k)
                self.values.append(value if arrived else instead)


def is_top(chosen, among, rank):
    """Whether no other client of a crowd has a greater rank than one chosen."""
    others = [rank[k] for k in among if k not in chosen]
    return not chosen or not others or min(rank[k] for k in chosen) >= max(others)


OPTIONS = {
    "rho": (0.0, 0.4, 1.0),
    "elimination": ("guard", "cap"),
    "keep": (None, None, 1, 3),
    "fill": ("removed", "none"),
    "delta": (0.1, 0.9),
    "ridge": (1.0, 0.3),
    "noise": (0.1, 1.0),
    "length_scale": (0.3, 1.0),
    "kernel": ("rbf", "matern52"),
    "undelivered": ("zero", "mean", "nothing"),
    "utility_scale": (None, 2.5),
    "when_disjoint": ("restart", "collapse"),
    "negative_gain": ("zero", "keep"),
    "samples_per_round": (None, 3),
    "batch": ("top", "hallucinated"),
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
@pytest.mark.cases(20, 60)
def test_algorithm_1_to_the_letter(seed, cases):
    for case in cases:
        luck = np.random.default_rng([seed, case])
        clients, columns = int(luck.integers(1, 9)), int(luck.choice([0, 2, 3]))
        cohort, samples = int(luck.integers(1, clients + 2)), luck.integers(1, 6, clients)
        features = luck.random((clients, columns)) if columns else None
        options = {name: values[luck.integers(len(values))] for name, values in OPTIONS.items()}
        selector = FedSuv(cohort, scaling="none", fit="none", **options)
        letter = ToTheLetter(np.eye(clients) if features is None else features, options, columns > 0)
        for number in range(1, int(luck.integers(3, 9))):
            there = np.arange(clients) if number == 1 else np.flatnonzero(luck.random(clients) < luck.choice([1, 0.7]))
            wanted = None if number == 1 or luck.random() < 0.8 else int(luck.integers(0, clients + 1))
            known = {"features": features, "samples": samples[there], "wanted": wanted}
            client = selector.select(view_of(there, clients=clients, round=number, **known), rng(number)).client
            size = min(cohort if wanted is None else wanted, there.size)
            if size:
                letter.prune(number, options["keep"] or wanted or cohort)
                assert selector.left.tolist() == sorted(letter.left), (case, number)
                found = selector.rectangle(np.arange(clients))
                due = np.stack([letter.low, letter.high], 1).transpose(2, 1, 0).reshape(4, -1)
                np.testing.assert_allclose(list(vars(found).values()), due, atol=1e-5 * letter.unit(), rtol=1e-5)
                assert letter.is_choice(client.tolist(), there.tolist(), size, number), (case, number)
            # As many reports as one bound needs to fall below others.
            client = np.repeat(client, luck.choice([1, 1, 40]))
            delivered = luck.random(client.size) < np.where(client % 2, 0.95, 0.1)
            loss, gain = luck.exponential(size=client.size), luck.normal(0.1, 0.3, client.size)
            selector.observe(measured_reports_of(client, delivered, loss, gain, number=number))
            letter.observe(client, delivered, loss, gain, samples)
