"""FedSUV against Algorithm 1 followed to the letter, with sets, loops and dense matrices."""

import numpy as np
import pytest

from fedsim.selectors import FedSuv
from tests.support.views import measured_reports_of, rng, view_of

DELTA = 0.1
ALPHA = 1 + np.sqrt(np.log(4 / DELTA) / 2)


def beta(clients, number):
    return 2 * np.log(clients * np.pi**2 * number**2 / (3 * DELTA))


class ToTheLetter:
    """Algorithm 1 with sets, loops and dense matrices; x in the unit square, kernel exp(-d^2 / 2 l^2), unit prior."""

    def __init__(self, x, cohort, rho, noise, length_scale, undelivered, batch):
        self.x, self.cohort, self.noise, self.rho = x, cohort, noise, rho
        self.undelivered, self.batch = undelivered, batch
        self.kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / (2 * length_scale**2))
        self.left = set(range(len(x)))
        self.low, self.high = np.full((len(x), 2), -np.inf), np.full((len(x), 2), np.inf)
        self.gram, self.response, self.seen, self.values = np.eye(2), np.zeros(2), [], []

    def spread(self, seen, number):
        across = self.kernel[:, seen]
        gain = across @ np.linalg.inv(self.kernel[np.ix_(seen, seen)] + self.noise**2 * np.eye(len(seen)))
        return np.sqrt(beta(len(self.x), number) * (1 - np.einsum("ij,ij->i", gain, across)))

    def bounds(self, number):
        centre = self.x @ np.linalg.solve(self.gram, self.response)
        width = ALPHA * np.sqrt(np.einsum("ni,ij,nj->n", self.x, np.linalg.inv(self.gram), self.x))
        across = self.kernel[:, self.seen]
        gain = across @ np.linalg.inv(
            self.kernel[np.ix_(self.seen, self.seen)] + self.noise**2 * np.eye(len(self.seen))
        )
        spread = self.spread(self.seen, number)
        mean = gain @ np.array(self.values)
        return np.stack([centre - width, mean - spread], 1), np.stack([centre + width, mean + spread], 1)

    def select(self, number):
        low, high = self.bounds(number)
        if len(self.left) > (1 - self.rho) * len(self.x):  # lines 5 to 8
            best = max(low[k, 0] for k in self.left)
            self.left -= {k for k in self.left if high[k, 0] <= best}
        lows, highs = np.maximum(self.low, low), np.minimum(self.high, high)  # line 9
        apart = lows > highs  # an empty intersection, of which the paper says nothing, begins anew
        self.low, self.high = np.where(apart, low, lows), np.where(apart, high, highs)
        for k in sorted(self.left, key=lambda k: self.high[k, 1]):  # lines 10 to 18
            if len(self.left) == self.cohort:
                break
            if any(k != j and np.all(self.high[k] <= self.low[j]) for j in self.left):
                self.left.remove(k)
        left = sorted(self.left)
        first = max(left, key=lambda k: np.hypot(*(self.high[k] - self.low[k])))  # line 19
        if self.batch == "hallucinated":
            chosen = [first]
            while len(chosen) < self.cohort:
                fall = self.spread(self.seen, number) - self.spread([*self.seen, *chosen], number)
                chosen.append(max((k for k in left if k not in chosen), key=lambda k: (self.high[:, 1] - fall)[k]))
            return sorted(chosen)
        others = sorted((k for k in left if k != first), key=lambda k: -self.high[k, 1])  # line 20
        return sorted([first, *others[: self.cohort - 1]])

    def observe(self, client, delivered, utility):
        instead = utility[delivered].mean() if self.undelivered == "mean" and delivered.any() else 0.0
        for k, arrived, value in zip(client.tolist(), delivered, utility, strict=True):
            self.gram += np.outer(self.x[k], self.x[k])
            self.response += self.x[k] * arrived
            if arrived or self.undelivered != "nothing":
                self.seen.append(k)
                self.values.append(value if arrived else instead)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
@pytest.mark.parametrize(
    ("undelivered", "batch"), [("nothing", "top"), ("zero", "top"), ("mean", "top"), ("zero", "hallucinated")]
)
def test_algorithm_1_to_the_letter(seed, undelivered, batch):
    luck, clients, cohort = np.random.default_rng(seed), 24, 4
    x = luck.random((clients, 2))
    options = {"noise": 0.1, "length_scale": 0.4, "rho": 0.4, "undelivered": undelivered, "batch": batch}
    selector = FedSuv(cohort, delta=DELTA, scaling="none", utility_scale=1.0, fit="none", **options)
    letter = ToTheLetter(x, cohort, **options)
    # Everybody delivers once, so that no two bounds are equal.
    selector.select(view_of(clients, features=x), rng())
    letter.select(1)
    client, delivered = np.arange(clients), np.ones(clients, dtype=bool)
    for number in range(2, 50):
        value = np.clip(x[client, 1] + 0.1 * luck.standard_normal(client.size), 0, 1)
        selector.observe(measured_reports_of(client, delivered, value))
        letter.observe(client, delivered, value)
        client = selector.select(view_of(clients, round=number, features=x), rng(number)).client
        assert client.tolist() == letter.select(number)
        assert selector.left.tolist() == sorted(letter.left)
        delivered = luck.random(cohort) < x[client, 0]
    assert cohort < len(letter.left) < clients
