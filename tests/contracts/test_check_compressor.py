"""`check_compressor` refuses broken compressors, each for its own fault, and passes sound ones."""
# ruff: noqa: ARG005 (a compressor takes what the contract gives)

from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import PrivateAttr

from fedsim.errors import ContractError
from fedsim.learning import QSGD, Compressor, NoCompression, RandomK, TopK
from fedsim.testing import check_compressor
from tests.support.lies import lying


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


class AddsNoise(SignOnly):
    remembers: ClassVar[Any] = False

    def compress(self, update, tensors, rng):
        return (update + rng.standard_normal(update.size)).astype(np.float32)


class Divides(SignOnly):
    def compress(self, update, tensors, rng):
        with np.errstate(all="ignore"):
            return np.where(np.isfinite(update), update / np.abs(update), update).astype(np.float32)


class BitsThatGrow(SignOnly):
    _asked: int = PrivateAttr(0)

    def bits(self, tensors):
        self._asked += 1
        return self._asked


class SaysLossless(SignOnly):
    lossless: ClassVar[bool] = True


class Undecided(SignOnly):
    remembers: ClassVar[Any] = 1


@pytest.mark.parametrize(
    "sound",
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
def test_sound_compressors_pass(sound):
    assert check_compressor(sound) is None


@pytest.mark.parametrize(
    ("broken", "fault"),
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
        (AddsNoise(), "other numbers than zeros for zeros"),
        (Divides(), "not finite.*a single number"),
        (lying(SignOnly, "bits", lambda self, tensors: None)(), "bits returned None"),
        (BitsThatGrow(), "bits differ"),
        (SaysLossless(), "though it is lossless"),
        (Undecided(), "remembers: 1 is not allowed"),
        (object(), "does not derive"),
    ],
)
def test_broken_compressors_are_refused_for_their_fault(broken, fault):
    with pytest.raises(ContractError, match=fault):
        check_compressor(broken)
