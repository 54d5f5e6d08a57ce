"""`check_compressor` refuses broken compressors, each for its own fault, and passes sound ones."""
# ruff: noqa: ARG005 (a compressor takes what the contract gives)

import numpy as np
from pydantic import PrivateAttr

from fedsim.learning import QSGD, Compressor, NoCompression, RandomK, TopK
from fedsim.testing import check_compressor
from tests.support.checks import passes, refuses
from tests.support.lies import lying, stating


class SignOnly(Compressor):
    """Sign and mean absolute value; the broken ones differ from it in one thing each."""

    @property
    def remembers(self):
        return True

    def bits(self, tensors):
        return float(sum(tensors) + 32)

    def compress(self, update, tensors, rng):
        return (np.sign(update) * np.float32(np.abs(update).mean())).astype(np.float32)


def compressing(answer):
    """Return a compressor that answers with a function of update, tensors and generator."""
    return lying(SignOnly, "compress", lambda self, *given: answer(*given))()


class Counts(SignOnly):
    _calls: int = PrivateAttr(0)

    def compress(self, update, tensors, rng):
        self._calls += 1
        return super().compress(update, tensors, rng) / np.float32(self._calls)


def divides(update, tensors, rng):
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(update), update / np.abs(update), update).astype(np.float32)


class BitsThatGrow(SignOnly):
    _asked: int = PrivateAttr(0)

    def bits(self, tensors):
        self._asked += 1
        return self._asked


test_sound_compressors_pass = passes(
    check_compressor,
    [
        NoCompression(),
        SignOnly(),
        QSGD(),
        QSGD(levels=1, bucket=7, norm="max"),
        TopK(share=0.1),
        TopK(share=0.5, error_feedback=False),
        RandomK(share=0.1),
        RandomK(share=0.1, error_feedback=False, shared_seed=True),
    ],
)
test_broken_compressors_are_refused_for_their_fault = refuses(
    check_compressor,
    [
        (compressing(lambda u, t, r: (3 * u).astype(np.float32)), r"mean squared error of .* a random update"),
        (Counts(), "differs when it is repeated"),
        (compressing(lambda u, t, r: u.fill(0)), "read-only"),
        (
            compressing(lambda u, t, r: np.zeros(u.size)),
            r"float64 of shape \(68,\); float32 of shape \(68,\) is needed",
        ),
        (compressing(lambda u, t, r: u[1:].copy()), r"shape \(67,\)"),
        (compressing(lambda u, t, r: np.float32(np.random.rand()) * u), "global random generator"),  # noqa: NPY002
        (
            stating(
                SignOnly,
                remembers=False,
                compress=lambda self, u, t, r: (u + r.standard_normal(u.size)).astype(np.float32),
            )(),
            "other numbers than zeros for zeros",
        ),
        (compressing(divides), "not finite.*a single number"),
        (lying(SignOnly, "bits", lambda self, tensors: None)(), "bits returned None"),
        (BitsThatGrow(), "bits differ"),
        (stating(SignOnly, lossless=True)(), "though it is lossless"),
        (stating(SignOnly, remembers=1)(), "remembers: 1 is not allowed"),
        (object(), "does not derive"),
    ],
)
