"""Bits of coded messages against measured entropies, zstd, and subsets counted by hand."""

import math

import numpy as np
import pyarrow as pa
import pytest

from fedsim.learning import QSGD, RandomK, Supervised, TopK, TrainingRun
from fedsim.learning.compression.coding import bits_of_levels
from fedsim.streams import Streams


@pytest.mark.parametrize(
    ("levels", "fixed", "least", "most"), [(127, 8, 2.0, 2.6), (7, 4, 0.35, 0.53), (1, 2, 0.07, 0.1)]
)
def test_an_update_of_a_wide_perceptron_takes_the_bits_that_are_charged(levels, fixed, least, most):
    table = {"data": {"kind": "digits"}, "model": {"kind": "mlp", "hidden": [200]}, "local": {"batch_size": 10}}
    learner = Supervised.model_validate(table).build(TrainingRun(10, Streams(0)))
    update = learner.measure(learner.updates(learner.initial(), np.array([0])), ("update",))["update"][0]
    tensors = [64 * 200, 200, 200 * 10, 10]
    coded = QSGD(levels=levels, coding="entropy")
    charged = (coded.bits(tensors) - 32 * 4) / update.size
    measured = coded.measured_bits(update, tensors, np.random.default_rng(0))
    assert least <= measured <= most
    assert measured == pytest.approx(charged, rel=0.2)
    assert (QSGD(levels=levels).bits(tensors) - 32 * 4) / update.size == fixed


@pytest.mark.parametrize(("norm", "bucket"), [("l2", None), ("max", None), ("max", 16)])
@pytest.mark.parametrize("levels", [127, 1])
def test_a_general_code_needs_a_little_more_for_normal_numbers(levels, norm, bucket):
    size, rng = 100_000, np.random.default_rng(1)
    update = rng.normal(size=size).astype(np.float32)
    coded = QSGD(levels=levels, norm=norm, bucket=bucket, coding="entropy")
    found, rows = coded.compress(update, [size], rng), update.reshape(-1, bucket or size)
    largest = np.linalg.norm(rows, ord=np.inf if norm == "max" else 2, axis=1, keepdims=True)
    steps = np.rint(found.reshape(rows.shape) * levels / largest).astype(np.int8)
    zstd = 8 * len(pa.Codec("zstd", compression_level=19).compress(steps.tobytes(), asbytes=True))
    charged = coded.bits([size]) - 32 * len(rows)
    assert charged == pytest.approx(zstd, rel=0.2) or (levels == 1 and charged < zstd)
    assert coded.measured_bits(update, [size], rng) == pytest.approx(charged / size, rel=0.1)


def test_the_entropy_of_one_level_is_that_of_a_coin():
    """A normal number of deviation 0.01 is raised to level 1 with the share 0.01 sqrt(2 / pi)."""
    share = 0.01 * math.sqrt(2 / math.pi)
    coin = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
    assert bits_of_levels(0.01, 1) == pytest.approx(coin + share)
    assert bits_of_levels(1e9, 3) == pytest.approx(1)  # beyond the norm there is one level, and a sign
    assert bits_of_levels(1e5, 2**24) == pytest.approx(0.5 * math.log2(2 * math.pi * math.e * 1e10))
    assert bits_of_levels(8000.0, 2**24) == pytest.approx(0.5 * math.log2(2 * math.pi * math.e * 6.4e7), rel=1e-4)


def test_places_are_one_of_all_subsets():
    """Of 8 numbers 2 are sent: 28 pairs; with fixed lengths 3 bits each."""
    for kind in (TopK, RandomK):
        assert kind(share=0.25).bits([8]) == 2 * (32 + 3)
        assert kind(share=0.25, coding="entropy").bits([8]) == pytest.approx(2 * 32 + math.log2(28))
    assert 1.15 < TopK(share=0.01).bits([10**6]) / TopK(share=0.01, coding="entropy").bits([10**6]) < 1.31


def test_a_stated_number_of_bits_counts():
    assert QSGD(levels=7, coding="entropy", bits_per_number=0.4).bits([1000]) == 400 + 32
    with pytest.raises(ValueError, match=r"bits_per_number = 0\.4 is not allowed with coding = 'fixed'"):
        QSGD(levels=7, bits_per_number=0.4)
