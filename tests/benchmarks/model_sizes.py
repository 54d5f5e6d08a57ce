"""Parameters, bits and floating-point operations of each model, on samples of the data set that it is meant for.

Usage: python tests/benchmarks/model_sizes.py
"""

from typing import Final

from fedsim.learning import MODELS
from fedsim.learning.data.shapes import Shape, TokenShape
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.flops import training_flops

COLOUR: Final = 3, 32, 32
CASES: Final[tuple[tuple[str, str, Shape, int], ...]] = (
    ("mlp", "MNIST", (1, 28, 28), 10),
    ("logistic-regression", "Synthetic(a, b)", (60,), 10),
    ("cnn3", "CIFAR-10", COLOUR, 10),
    ("cnn5", "CIFAR-10", COLOUR, 10),
    ("fedsampling-cnn", "EMNIST by class", (1, 28, 28), 62),
    ("resnet-18", "CIFAR-10", COLOUR, 10),
    ("resnet-34", "CIFAR-10", COLOUR, 10),
    ("mobilenet-v2", "CIFAR-10", COLOUR, 10),
    ("shufflenet-v2", "CIFAR-10", COLOUR, 10),
    ("text-cnn", "30 given vectors of 300, 18 classes", (30, 300), 18),
    ("text-cnn", "30 words of 30,000, 18 classes", TokenShape(30, 30_000), 18),
    ("text-attention", "30 given vectors of 300, 18 classes", (30, 300), 18),
    ("char-lstm", "Tiny Shakespeare", TokenShape(80, 66), 66),
)


def main() -> None:
    print(f"{'model':20} {'samples':36} {'parameters':>12} {'Mbit':>8} {'MFLOP':>10}")
    for kind, samples, shape, classes in CASES:
        model = MODELS.make(kind)
        layout = build_flat(model, shape, classes, seed=0).layout
        bits, flops = 32 * layout.initial.size, training_flops(model, shape, classes)
        print(f"{kind:20} {samples:36} {layout.parameters:12,} {bits / 1e6:8.2f} {flops / 1e6:10,.3f}")


if __name__ == "__main__":
    main()
