"""Sizes of sub-models by hand, and which numbers they hold; `test_literal_rounds.py` trains them."""

import numpy as np
import pytest

from fedsim.learning import CNN3
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.layout import held
from fedsim.learning.models.narrowing import narrow_models

HETEROFL = {"kind": "heterofl", "widths": [1.0, 0.5, 0.25]}


def make(make_learner, **settings):
    return make_learner(model={"hidden": [8]}, algorithm=HETEROFL, **settings)


def test_bits_and_operations_of_each_width_by_hand(make_learner):
    widths = make(make_learner).widths
    numbers = [16 * hidden + hidden + hidden * 3 + 3 for hidden in (8, 4, 2)]
    assert widths.ratio.tolist() == [1.0, 0.5, 0.25]
    assert widths.down_bits.tolist() == widths.up_bits.tolist() == [32.0 * count for count in numbers]
    # Two operations for each multiply-add of 16 x hidden and hidden x 3: they fall with the width, as hidden does.
    assert widths.flops == pytest.approx([1.0, 0.5, 0.25])
    assert make(make_learner, model_bits=100.0).widths.up_bits == pytest.approx(
        [100.0, 100.0 * numbers[1] / numbers[0], 100.0 * numbers[2] / numbers[0]]
    )


def test_cnn3_has_the_counts_of_its_layers():
    """At half the width on CIFAR-10: convolutions 3-16-32-64, dense 256-64-32-16-10, each with normalisation."""
    shape = (3, 32, 32)
    layout = build_flat(CNN3(), shape, 10, 0).layout
    whole, half = narrow_models(CNN3(), layout, shape, 10, 0, (1.0, 0.5))

    def operations(a, b, c, d, e, f):
        convolutions = 30 * 30 * 27 * a + 13 * 13 * 9 * a * b + 4 * 4 * 9 * b * c
        return 2 * (convolutions + 4 * c * d + d * e + e * f + f * 10)

    def parameters(a, b, c, d, e, f):
        layers = 28 * a + (9 * a + 1) * b + (9 * b + 1) * c + (4 * c + 1) * d + (d + 1) * e + (e + 1) * f
        return layers + (f + 1) * 10 + 2 * (a + b + c + d + e + f)

    full, cut = (32, 64, 128, 128, 64, 32), (16, 32, 64, 64, 32, 16)
    assert (whole.parameters, half.parameters) == (parameters(*full), parameters(*cut)) == (170_474, half.parameters)
    assert half.numbers == half.parameters + 2 * sum(cut) + 6  # running means and variances, and counters
    assert half.flops == pytest.approx(operations(*cut) / operations(*full))
    mask = held(layout, half.shapes)
    assert (mask.sum(), mask[: layout.parameters].sum()) == (half.numbers, half.parameters)


def masks(learner, *shifts):
    return [held(learner._layout, learner._algorithm._narrow[1].shapes, shift) for shift in shifts]


def test_every_unit_is_held_alike_and_layers_of_several_widths_roll_on_their_own(make_learner):
    rolling = {"algorithm": {"kind": "fedrolex", "widths": [1.0, 0.5]}}
    counts = sum(mask.astype(int) for mask in masks(make_learner(**rolling, model={"hidden": [4]}), *range(4)))
    assert counts[:64].tolist() == [2] * 64
    assert counts[80:].tolist() == [4] * 3  # biases of the classes
    # Round 5 of layers of 4 and 6 units: windows from 1 and from 5, and the inputs of the second are the first's.
    (mask,) = masks(make_learner(**rolling, model={"hidden": [4, 6]}), 5)
    second = mask[68 : 68 + 24].reshape(6, 4)
    assert np.flatnonzero(second.any(axis=1)).tolist() == [0, 1, 5]
    assert np.flatnonzero(second.any(axis=0)).tolist() == [1, 2]
