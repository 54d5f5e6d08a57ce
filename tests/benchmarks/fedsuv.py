"""Milliseconds (of processor time) per round of FedSUV's Gaussian process by library, and of selections by crowd.

    python tests/benchmarks/fedsuv.py process      own, scikit-learn, and GPyTorch where it is installed
    python tests/benchmarks/fedsuv.py selections   FedSUV and both forms of Oort, 10^3 to 10^6 clients
    python tests/benchmarks/fedsuv.py long         3,500 clients, 20 per round, 1,000 rounds

Six features as in section 4.2 of the paper, one core (set OMP_NUM_THREADS=1). Not a test: it asserts nothing.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from fedsim.selectors import FedSuv, Oort, OortFedScale, Reports, RoundView, Selector
from fedsim.selectors.fedsuv.features import Basis, median_distance
from fedsim.selectors.fedsuv.utility import UtilityProcess

Array = NDArray[np.float64]
CLIENTS, FEATURES, COHORT, NOISE = 3500, 6, 20, 0.1
LOOKED_AT = (1, 10, 30, 100, 300, 1000)


class Pooled:
    """Observations of a run: which clients are seen in which round, pooled as the methods see them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.features = rng.random((CLIENTS, FEATURES))
        self.truth = np.sin(4.0 * self.features @ rng.standard_normal(FEATURES))
        self.rounds = [rng.choice(CLIENTS, COHORT, replace=False) for _ in range(max(LOOKED_AT))]
        self.values = [self.truth[client] + NOISE * rng.standard_normal(COHORT) for client in self.rounds]

    def after(self, number: int) -> tuple[NDArray[np.int64], Array, Array]:
        """Return the clients seen by the end of a round, their means, and how often each was seen."""
        client, value = np.concatenate(self.rounds[:number]), np.concatenate(self.values[:number])
        count, total = np.bincount(client, minlength=CLIENTS), np.bincount(client, value, CLIENTS)
        seen = np.flatnonzero(count)
        return seen, total[seen] / count[seen], count[seen].astype(np.float64)


def timed(work: Callable[[], tuple[Array, Array]]) -> tuple[float, Array, Array]:
    """Return milliseconds and what came out."""
    began = time.process_time()
    mean, deviation = work()
    return 1e3 * (time.process_time() - began), mean, deviation


def with_sklearn(pooled: Pooled, number: int, scale: float) -> tuple[Array, Array]:
    """Fit and predict with scikit-learn; it has no update."""
    seen, mean, count = pooled.after(number)
    process = GaussianProcessRegressor(RBF(scale, "fixed"), alpha=NOISE**2 / count, optimizer=None)
    told: tuple[Array, Array] = process.fit(pooled.features[seen], mean).predict(pooled.features, return_std=True)
    return told


def with_gpytorch(pooled: Pooled, number: int, scale: float) -> tuple[Array, Array]:
    """Fit and predict with GPyTorch's exact process; its update takes no change of the noise of clients seen."""
    import gpytorch
    import torch

    class Process(gpytorch.models.ExactGP):  # type: ignore[misc, unused-ignore]
        def forward(self, x: torch.Tensor) -> object:
            return gpytorch.distributions.MultivariateNormal(torch.zeros(len(x), dtype=x.dtype), kernel(x))

    seen, mean, count = pooled.after(number)
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = scale
    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.tensor(NOISE**2 / count))
    process = Process(torch.tensor(pooled.features[seen]), torch.tensor(mean), likelihood).double().eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        told = process(torch.tensor(pooled.features))
        return told.mean.numpy(), told.variance.sqrt().numpy()


def processes() -> None:
    """Print milliseconds of one round's update and prediction, and how far the own process is from scikit-learn's."""
    pooled = Pooled(0)
    scale = median_distance(pooled.features)
    began = time.process_time()
    basis = Basis(pooled.features, "rbf", scale, 1024, 1e-6)
    process = UtilityProcess(CLIENTS, basis.size, NOISE)
    process.place(np.arange(CLIENTS), *basis.place(pooled.features))
    print(f"basis of {basis.size} points, once: {1e3 * (time.process_time() - began):.0f} ms")
    print(f"{'round':>6}{'clients seen':>14}{'own':>8}{'sklearn':>10}{'gpytorch':>10}{'mean off':>10}{'std off':>10}")
    for number, (client, value) in enumerate(zip(pooled.rounds, pooled.values, strict=True), start=1):

        def own(client: NDArray[np.int64] = client, value: Array = value) -> tuple[Array, Array]:
            process.observe(client, value)
            return process.posterior(np.arange(CLIENTS))

        own_ms, mean, deviation = timed(own)
        if number not in LOOKED_AT:
            continue
        other_ms, other_mean, other_deviation = timed(lambda number=number: with_sklearn(pooled, number, scale))
        try:
            third_ms = f"{timed(lambda number=number: with_gpytorch(pooled, number, scale))[0]:10.0f}"
        except ImportError:
            third_ms = f"{'-':>10}"
        off = np.abs(mean - other_mean).max(), np.abs(deviation - other_deviation).max()
        seen = pooled.after(number)[0].size
        print(f"{number:>6}{seen:>14}{own_ms:>8.1f}{other_ms:>10.0f}{third_ms}{off[0]:>10.1e}{off[1]:>10.1e}")


def play(selector: Selector, clients: int, rounds: int) -> list[float]:
    """Return milliseconds of each round, selecting and observing."""
    rng = np.random.default_rng(1)
    features = np.exp(rng.standard_normal((clients, FEATURES)))
    valid, worth = rng.random(clients), rng.random(clients)
    known = RoundView(
        round=1,
        time_s=0.0,
        clients=clients,
        client=np.arange(clients),
        samples=rng.integers(10, 200, clients),
        total_samples=1,
        participations=np.zeros(clients, dtype=np.int64),
        last_duration_s=np.full(clients, np.nan),
        last_loss=np.full(clients, np.nan),
        privacy_spent=np.zeros(clients),
        privacy_budget=None,
        features=features,
    )
    took_ms = []
    for number in range(1, rounds + 1):
        view = RoundView(**{**vars(known), "round": number})
        began = time.process_time()
        client = selector.select(view, np.random.default_rng(number)).client
        between = time.process_time()
        known.participations[client] += 1
        delivered = rng.random(client.size) < valid[client]
        heard = np.where(delivered, worth[client] + 0.1 * rng.standard_normal(client.size), np.nan)
        reports = Reports(
            round=number,
            time_s=float(number),
            client=client,
            delivered=delivered,
            duration_s=1.0 + rng.random(client.size),
            loss=heard,
            measured={"loss_rms": np.abs(heard), "accuracy_gain": heard},
        )
        again = time.process_time()
        selector.observe(reports)
        took_ms.append(1e3 * (between - began + time.process_time() - again))
    return took_ms


def selections() -> None:
    """Print the first round, which makes the basis, and the median of the others."""
    kinds: dict[str, Callable[[], Selector]] = {
        "fedsuv": lambda: FedSuv(COHORT),
        "fedsuv, no limit to the pool": lambda: FedSuv(COHORT, rho=0.0, keep=10**9),
        "oort": lambda: Oort(COHORT),
        "oort-fedscale": lambda: OortFedScale(COHORT),
    }
    print(f"{'clients':>8}{'selector':>30}{'first ms':>10}{'later ms':>10}{'worst ms':>10}")
    for clients in (1_000, 10_000, 100_000, 1_000_000):
        for name, make in kinds.items():
            took_ms = play(make(), clients, 10)
            print(
                f"{clients:>8}{name:>30}{took_ms[0]:>10.1f}{statistics.median(took_ms[1:]):>10.1f}"
                f"{max(took_ms[1:]):>10.1f}"
            )


def long() -> None:
    """Print the mean over a long run."""
    for name, selector in {"pool shrinks": FedSuv(COHORT), "pool stays": FedSuv(COHORT, rho=0.0, keep=10**9)}.items():
        took_ms = play(selector, CLIENTS, 1000)
        print(
            f"{name}: mean {statistics.fmean(took_ms):.1f} ms, median {statistics.median(took_ms):.1f} ms, "
            f"longest {max(took_ms):.0f} ms"
        )


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description="Time FedSUV.")
    parser.add_argument("what", choices=["process", "selections", "long"])
    {"process": processes, "selections": selections, "long": long}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
