"""The contract check of laws of compute times."""

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import FLOPS, SAMPLES
from fedsim.devices import ComputeTime
from fedsim.errors import ContractError
from fedsim.streams import Streams

T = TypeVar("T", bound=np.generic)

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
    """
    if clients < 2:
        raise ValueError(f"clients: {clients!r} is not allowed; it must be at least 2")
    for size in (clients, 1, 2):
        _Crowd(law, size, seed).check()
    crowd = _Crowd(law, clients, seed)
    crowd.check_mean(draws)
    if paired:
        larger, ids = _Crowd(law, 2 * clients, seed), np.arange(clients)
        samples = larger.samples[ids]
        crowd.compare(
            3,
            larger.duration_s(3, ids, samples),
            crowd.duration_s(3, ids, samples),
            "differ in a crowd of twice the size",
        )


class _Crowd:
    """A law built for some clients, and checked questions to it."""

    def __init__(self, law: ComputeTime, clients: int, seed: int, flops_per_sample: float = _FLOPS_PER_SAMPLE) -> None:
        self.law, self.clients, self.seed = law, clients, seed
        self.name = type(law).__name__
        self.samples = np.random.default_rng(seed).integers(1, 200, clients).astype(np.float64)
        try:
            self._times = law.build(clients, Streams(seed), flops_per_sample if FLOPS in law.requires else None)
        except Exception as error:
            raise ContractError(f"{self.name}.build failed with {type(error).__name__}: {error}{self._at()}") from error
        for method in ("duration_s", "expected_s"):
            if not callable(getattr(self._times, method, None)):
                raise ContractError(f"{self.name}.build returned {self._times!r}; it has no method {method}")

    def duration_s(self, draw: int, client: IntArray, samples: FloatArray) -> FloatArray:
        """Return the durations of some clients in a draw, checked, shape (n,)."""
        given = _read_only(client), draw, _read_only(samples)
        return self._asked("duration_s", draw, lambda: self._times.duration_s(*given), client.size)

    def expected_s(self, samples: FloatArray) -> FloatArray:
        """Return the mean durations of all clients, checked, shape (K,)."""
        return self._asked("expected_s", None, lambda: self._times.expected_s(_read_only(samples)), self.clients)

    def compare(self, draw: int | None, found: FloatArray, wanted: FloatArray, fault: str) -> None:
        """Refuse durations, or with no draw expected ones, that are not those wanted."""
        if not np.array_equal(found, wanted):
            i = int(np.flatnonzero(found != wanted)[0])
            method = "expected_s" if draw is None else "duration_s"
            raise ContractError(
                f"{self.name}.{method}: the times {fault}, for one client {found[i]:.9g} and "
                f"{wanted[i]:.9g} s{self._at(draw)}"
            )

    def check(self) -> None:
        """Ask for the same durations in several ways, and for other numbers of samples."""
        ids, samples = np.arange(self.clients), self.samples
        first = {draw: self.duration_s(draw, ids, samples) for draw in (1, 2, _LATE_DRAW)}
        expected = self.expected_s(samples)
        some = ids[::-2]
        for draw in (2, 1):
            self.compare(draw, self.duration_s(draw, ids, samples), first[draw], "differ when they are asked for again")
            alone = self.duration_s(draw, some, samples[some])
            self.compare(draw, alone, first[draw][some], "depend on the other clients asked for, or on their order")
        self.duration_s(1, ids[:0], samples[:0])
        again = _Crowd(self.law, self.clients, self.seed)
        self.compare(2, again.duration_s(2, ids, samples), first[2], "differ between two builds with one seed")
        self.compare(None, again.expected_s(samples), expected, "differ between two builds with one seed")
        most = first[1]
        for more in (np.zeros(self.clients), 0.5 * samples, 3.0 * samples):
            other = self.duration_s(1, ids, more)
            if SAMPLES not in self.law.requires:
                self.compare(1, other, first[1], "depend on the samples, though requires does not name them")
            low, high = (other, most) if more[0] < samples[0] else (most, other)
            if np.any(low > high):
                raise ContractError(f"{self.name}.duration_s returned a shorter duration for more samples{self._at(1)}")

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
                f"client {i}'s mean duration in s"
                if i < self.clients
                else "the clients' mean of duration over expected"
            )
            raise ContractError(
                f"{self.name}.expected_s is not the mean of duration_s: {what} is {mean[i]:.6g} over {draws} draws, "
                f"with a standard error of {error[i]:.2g}, and not {wanted[i]:.6g}{self._at()}"
            )

    def _asked(self, method: str, draw: int | None, ask: Callable[[], ArrayLike], size: int) -> FloatArray:
        """Return the answer of a method if it is an array of durations."""
        where = self._at(draw)
        try:
            answer = ask()
        except Exception as error:
            hint = "; the arrays given must not be changed" if "read-only" in str(error) else ""
            raise ContractError(
                f"{self.name}.{method} failed with {type(error).__name__}: {error}{hint}{where}"
            ) from error
        if not (isinstance(answer, np.ndarray) and answer.dtype == np.float64 and answer.shape == (size,)):
            shown = f"{answer.dtype} {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
            raise ContractError(
                f"{self.name}.{method} returned {shown}; it must be a float64 array of shape ({size},){where}"
            )
        if not np.all((answer >= 0) & np.isfinite(answer)):
            raise ContractError(
                f"{self.name}.{method} returned {answer.min()} to {answer.max()} s; times must be finite and at "
                f"least 0{where}"
            )
        return answer.copy()

    def _at(self, draw: int | None = None) -> str:
        return f" ({self.clients} clients)" if draw is None else f" (draw {draw}, {self.clients} clients)"


def _read_only(values: NDArray[T]) -> NDArray[T]:
    """Return a copy of an array that cannot be written."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy.view()
