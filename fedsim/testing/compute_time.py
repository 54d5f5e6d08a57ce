"""The contract check of laws of compute times."""

from functools import partial
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import FLOPS, SAMPLES
from fedsim.devices import ComputeTime
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, at_least_two

_FLOPS_PER_SAMPLE: Final = 1e6
_LATE_DRAW: Final = 3 * 2**40 + 5
"""A draw as a question before the selection has it, far above every number of a round."""
_STANDARD_ERRORS: Final = 7.0


def check_compute_time(
    law: ComputeTime, *, clients: int = 40, draws: int = 300, paired: bool = True, seed: int = 0
) -> None:
    """Check that a law of compute times keeps the contract of `fedsim.devices.ComputeTimes`; return None if it does.

    The law is built for crowds of several sizes. In each of them it must

    * depend on the number of samples only if its ``requires`` names ``"samples"``,
    * return finite durations of at least 0 as a float64 array with one element for each client that was asked for, in
      their order, for any draw, and for no clients as well,
    * return the same durations again for the same clients, draw and samples, whatever was asked in between, alone or
      among others, and from a second build with the same seed,
    * leave the arrays alone that it is given (they are read-only),
    * never return a shorter duration for more samples,
    * return with ``expected_s`` the mean of the durations over all draws.

    Parameters
    ----------
    law : settings with a method ``build``, as they stand in ``devices.compute``
    clients : number of clients of the usual crowd, at least 2
    draws : draws over which the mean is taken; 0 for no check of the mean
        The sample mean of each client, and of all clients together, may differ from ``expected_s`` by 7 standard
        errors, estimated from the sample. The estimate is too small for very heavy tails, such as a log-normal jitter
        with a sigma above 2.
    paired : whether a client's durations must be the same in a larger crowd, so that two crowds can be compared
    seed : seed of the random streams, >= 0

    Raises
    ------
    ContractError
        Naming the law, the fault, and the draw and the number of clients at which it shows.
    ValueError
        If ``clients`` is below 2.

    Examples
    --------
    >>> from fedsim.devices import Rate
    >>> check_compute_time(Rate(samples_per_s=100.0, jitter_sigma=0.2), clients=8)
    """
    at_least_two(clients=clients)
    for size in (clients, 1, 2):
        _Crowd(law, size, seed).check()
    crowd = _Crowd(law, clients, seed)
    crowd.check_mean(draws)
    if paired:
        larger, ids = _Crowd(law, 2 * clients, seed), np.arange(clients)
        samples = larger.samples[ids]
        one, other = (each.duration_s(3, ids, samples) for each in (larger, crowd))
        crowd.same(one, other, "duration_s: the times differ in a crowd of twice the size")


class _Crowd(Examination):
    def __init__(self, law: ComputeTime, clients: int, seed: int) -> None:
        super().__init__(law, f"{clients} clients")
        self.requires, self.clients = law.requires, clients
        self.samples = np.random.default_rng(seed).integers(1, 200, clients).astype(np.float64)
        flops = _FLOPS_PER_SAMPLE if FLOPS in law.requires else None
        self._build = partial(self.ask, "build", law.build, RunSetup(clients, Streams(seed), flops_per_sample=flops))
        self._times = self._build()
        for method in ("duration_s", "expected_s"):
            has = callable(getattr(self._times, method, None))
            self.law(has, f"build returned {self._times!r}; it has no method {method}")

    def duration_s(self, draw: int, client: IntArray, samples: FloatArray) -> FloatArray:
        self.place = f"draw {draw}, {self.clients} clients"
        times = self.ask("duration_s", self._times.duration_s, client, draw, samples)
        return self.array("duration_s", times, client.shape).copy()

    def expected_s(self, samples: FloatArray) -> FloatArray:
        self.place = f"{self.clients} clients"
        times = self.ask("expected_s", self._times.expected_s, samples)
        return self.array("expected_s", times, (self.clients,)).copy()

    def check(self) -> None:
        ids, samples = np.arange(self.clients), self.samples
        first = {draw: self.duration_s(draw, ids, samples) for draw in (1, 2, _LATE_DRAW)}
        expected, some = self.expected_s(samples), ids[::-2]
        for draw in (2, 1):
            again = self.duration_s(draw, ids, samples)
            self.same(again, first[draw], "duration_s: the times differ when they are asked for again")
            alone, fault = self.duration_s(draw, some, samples[some]), "depend on the other clients asked for"
            self.same(alone, first[draw][some], f"duration_s: the times {fault}, or on their order")
        self.duration_s(1, ids[:0], samples[:0])
        self._times = self._build()
        fault = "the times differ between two builds with one seed"
        self.same(self.duration_s(2, ids, samples), first[2], f"duration_s: {fault}")
        self.same(self.expected_s(samples), expected, f"expected_s: {fault}")
        for factor in (0.0, 0.5, 3.0):
            other, most = self.duration_s(1, ids, factor * samples), first[1]
            if SAMPLES not in self.requires:
                fault = "the times depend on the samples, though requires does not name them"
                self.same(other, most, f"duration_s: {fault}")
            low, high = (other, most) if factor < 1 else (most, other)
            self.law(np.all(low <= high), "duration_s returned a shorter duration for more samples")

    def check_mean(self, draws: int) -> None:
        """Compare the mean over some draws with the expected durations: client by client, and of all clients."""
        if draws < 2:
            return
        ids, expected = np.arange(self.clients), self.expected_s(self.samples)
        times = np.stack([self.duration_s(draw, ids, self.samples) for draw in range(1, draws + 1)])
        # Divided by its expectation, a draw's mean over all clients shows a small bias that they have in common.
        ratio = np.divide(times, expected, out=np.ones_like(times), where=expected > 0).mean(axis=1)
        columns = np.column_stack([times, ratio])
        mean, error = columns.mean(axis=0), columns.std(axis=0, ddof=1) / np.sqrt(draws)
        wanted = np.append(expected, 1.0)
        wrong = np.flatnonzero(np.abs(mean - wanted) > _STANDARD_ERRORS * error + 1e-9 * wanted)
        if wrong.size:
            i = int(wrong[0])
            what = (
                f"client {i}'s mean duration in s" if i < self.clients else "the clients' mean of duration / expected"
            )
            raise self.fault(
                f"expected_s is not the mean of duration_s: {what} is {mean[i]:.6g} over {draws} draws, with a "
                f"standard error of {error[i]:.2g}, and not {wanted[i]:.6g}"
            )
