"""`check_partition` refuses broken divisions, each for its own fault, and passes fedsim's."""
# ruff: noqa: ARG005 (a division takes what the contract gives)

import numpy as np

from fedsim import Component
from fedsim.learning import PARTITIONS
from fedsim.testing import check_partition
from tests.support.checks import passes, refuses
from tests.support.lies import lying, spoilt

OPTIONS = {
    "dirichlet": {"alpha": 0.5},
    "sizes": {"samples": 20},
    "log-normal": {"sigma": 2.0},
    "quantity-skew": {"concentration": 2.0},
}


class Slices(Component):
    """Consecutive samples; the broken ones differ from it in one thing each."""

    def assign(self, labels, classes, clients, streams):
        return np.array_split(np.arange(labels.size), clients)


def slicing(change):
    return spoilt(Slices, "assign", change)()


OWN = [PARTITIONS.make({"kind": kind, **OPTIONS.get(kind, {})}) for kind in sorted(set(PARTITIONS.builtin) - {"file"})]
test_sound_divisions_pass = passes(check_partition, [*OWN, Slices()])
test_broken_divisions_are_refused_for_their_fault = refuses(
    check_partition,
    [
        (slicing(lambda parts: [np.append(part, part[:1]) for part in parts]), "returned sample 0 twice"),
        (slicing(lambda parts: [part + 1 for part in parts]), "returned 400 for client 7; allowed: .* at most 399"),
        (slicing(lambda parts: [*parts, parts[0][:0]]), "allowed: a list of 8 arrays"),
        (slicing(lambda parts: [part / 1 for part in parts]), "float64 .* for client 0; allowed: .*whole numbers"),
        (lying(Slices, "assign", lambda self, labels, *of: labels.sort())(), "read-only"),
        (slicing(lambda parts: [np.random.permutation(part) for part in parts]), "global random generator"),  # noqa: NPY002
        (slicing(lambda parts: [*map(np.random.default_rng().permutation, parts)]), "differs when it is repeated"),
    ],
)
