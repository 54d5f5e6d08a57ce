"""`check_partition` refuses broken divisions, each for its own fault, and passes fedsim's."""

import numpy as np

from fedsim import Component
from fedsim.learning import PARTITIONS
from fedsim.testing import check_partition
from tests.support.checks import passes, refuses

OPTIONS = {
    "dirichlet": {"alpha": 0.5},
    "sizes": {"samples": 20},
    "log-normal": {"sigma": 2.0},
    "quantity-skew": {"concentration": 2.0},
}


class Slices(Component):
    """Consecutive samples; the fault is an option."""

    fault: str = "none"

    def assign(self, labels, classes, clients, streams):  # noqa: PLR0911
        parts = np.array_split(np.arange(labels.size), clients)
        match self.fault:
            case "twice":
                return [np.append(part, part[:1]) for part in parts]
            case "outside":
                return [part + 1 for part in parts]
            case "too few":
                return [*parts, parts[0][:0]]
            case "floats":
                return [part / 1 for part in parts]
            case "sorts":
                labels.sort()
            case "draws":
                order = np.random.permutation(labels.size)  # noqa: NPY002
                return np.array_split(order, clients)
            case "seedless":
                return np.array_split(np.random.default_rng().permutation(labels.size), clients)
        return parts


OWN = [PARTITIONS.make({"kind": kind, **OPTIONS.get(kind, {})}) for kind in sorted(set(PARTITIONS.builtin) - {"file"})]
test_sound_divisions_pass = passes(check_partition, [*OWN, Slices()])
test_broken_divisions_are_refused_for_their_fault = refuses(
    check_partition,
    [
        (Slices(fault="twice"), "gives a sample twice"),
        (Slices(fault="outside"), r"not in 0\.\.399"),
        (Slices(fault="too few"), "a list of 8 arrays is needed"),
        (Slices(fault="floats"), "for client 0; whole numbers"),
        (Slices(fault="sorts"), "read-only"),
        (Slices(fault="draws"), "global random generator"),
        (Slices(fault="seedless"), "differs when it is repeated"),
    ],
)
