"""The contract check of compressors."""

import math

import numpy as np

from fedsim.arrays import Vector
from fedsim.learning import Compressor
from fedsim.testing.examination import Examination, at_least_two

_ROUNDING = 1e-5


def check_compressor(
    compressor: Compressor, *, tensors: tuple[int, ...] = (24, 4, 40), draws: int = 200, seed: int = 0
) -> None:
    """Check that a compressor keeps the contract of `fedsim.learning.Compressor`; return None if it does.

    It compresses random updates, one with a single number that is not zero, one of zeros, one of a model of one
    parameter, and one with numbers that are not finite. It must

    * be a `Compressor` whose ``lossless`` and ``remembers`` are True or False,
    * return with ``bits`` a finite number of at least 0, the same each time,
    * return with ``compress`` a float32 array of the shape of the update, finite where the update is finite, zeros for
      zeros, and the update itself if it is lossless,
    * return the same again for the same update and the same draws, whatever it was asked in between, and as a copy of
      itself: it keeps nothing, and draws from the generator that it is given alone,
    * leave the update alone (it is read-only),
    * with ``remembers`` leave out, in the mean over many draws, no more than the update has: a mean squared error above
      its squared norm would let the clients' memories grow without bound.

    Parameters
    ----------
    compressor : with its options
    tensors : number of parameters of each tensor of the usual model, at least two of them
    draws : with which the mean squared error is taken, at least 2
    seed : of updates and draws, >= 0

    Raises
    ------
    ContractError
        Naming the compressor, the fault and the trial.
    ValueError
        If ``tensors`` or ``draws`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.learning import TopK
    >>> check_compressor(TopK(share=0.1), draws=50)
    """
    at_least_two(tensors=len(tensors), draws=draws)
    part = Examination(compressor)
    part.derives(compressor, Compressor, "compress", "lossless", "remembers")
    rng = np.random.default_rng([seed, 1])
    usual = rng.standard_normal(sum(tensors)).astype(np.float32)
    single, wild = np.zeros_like(usual), usual.copy()
    single[-1] = -3.0
    wild[[0, 5]] = np.inf, np.nan
    trials = {
        "a random update": (usual, tensors),
        "a single number": (single, tensors),
        "an update of zeros": (np.zeros_like(usual), tensors),
        "a model of one parameter": (usual[:1], (1,)),
        "numbers that are not finite": (wild, tensors),
    }
    for title, (update, sizes) in trials.items():
        _Trial(compressor, title, update, sizes, seed).check(draws)


class _Trial(Examination):
    read_only = "the update is read-only"

    def __init__(self, compressor: Compressor, title: str, update: Vector, tensors: tuple[int, ...], seed: int) -> None:
        super().__init__(compressor, f"in the trial with {title}")
        self.compressor, self.update, self.tensors, self.seed = compressor, update, tensors, seed

    def check(self, draws: int) -> None:
        bits: object = self.ask("bits", self.compressor.bits, self.tensors)
        told: object = bits
        whole = isinstance(told, int | float) and math.isfinite(told) and told >= 0
        self.law(whole, f"bits returned {bits!r}; a finite number of at least 0 is needed")
        self.law(bits == self.compressor.bits(self.tensors), "bits differ when they are asked for again")
        kept = self.steady("compress", self.compressor, self._compressed_after_another)
        if not np.all(np.isfinite(self.update)):
            return
        self.law(bool(np.all(np.isfinite(kept))), "compress returned numbers that are not finite")
        self.law(self.update.any() or not kept.any(), "compress returned other numbers than zeros for zeros")
        if self.compressor.lossless:
            self.law(np.array_equal(kept, self.update), "compress returned another update, though it is lossless")
        if self.compressor.remembers:
            self._check_errors(draws)

    def _check_errors(self, draws: int) -> None:
        size = float(np.square(self.update, dtype=np.float64).sum())
        errors = [
            float(np.square(self._compressed(self.compressor, draw) - self.update.astype(np.float64)).sum())
            for draw in range(draws)
        ]
        slack = 4 * float(np.std(errors)) / math.sqrt(draws) + _ROUNDING * size
        self.law(
            np.mean(errors) <= size + slack,
            f"compress has a mean squared error of {np.mean(errors):.4g} over an update of squared norm {size:.4g}, "
            "though it remembers; memories would grow without bound",
        )

    def _compressed_after_another(self, compressor: Compressor) -> Vector:
        self._compressed(compressor, 1)
        return self._compressed(compressor, 0)

    def _compressed(self, compressor: Compressor, draw: int) -> Vector:
        rng = np.random.default_rng([self.seed, 2, draw])
        found = self.ask("compress", compressor.compress, self.update, self.tensors, rng)
        return self.array("compress", found, self.update.shape, np.float32, least=None)
