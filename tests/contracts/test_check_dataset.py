"""`check_dataset` refuses broken data sets, each for its own fault, and passes fedsim's."""

import numpy as np

from fedsim import Component
from fedsim.capabilities import USERS
from fedsim.learning import DATASETS, Dataset
from fedsim.testing import check_dataset
from tests.support.checks import passes, refuses
from tests.support.tiny_targets import TinyTargets


class Points(Component):
    """Points of a plane, labelled by their half; the fault is an option."""

    fault: str = "none"

    @property
    def provides(self):
        return frozenset({USERS} if self.fault in {"gap", "no users"} else ())

    def load(self, data_dir=None):
        rng = np.random.default_rng(None if self.fault == "seedless" else 0)
        x = rng.normal(size=(60, 2)).astype(np.float32)
        y = (x[:, 0] > 0).astype(np.int64)
        users = np.repeat([0, 2], 20) if self.fault in {"gap", "not said"} else None
        match self.fault:
            case "arrays":
                return x, y
            case "leak":
                return Dataset(x[:40], y[:40], x[30:50], y[30:50], classes=2)
            case "label":
                return Dataset(x[:40], y[:40], x[40:], y[40:], classes=3)
            case "not finite":
                return Dataset(x[:40] * np.float32(np.inf), y[:40], x[40:], y[40:], classes=2)
            case "draws":
                np.random.seed(0)  # noqa: NPY002
        return Dataset(x[:40], y[:40], x[40:], y[40:], classes=2, train_users=users)


class Unlike:
    def load(self, data_dir=None):
        return Points().load()


SETS = [Points(), TinyTargets(of="numbers"), TinyTargets(of="label-sets"), *map(DATASETS.make, ("digits", "synthetic"))]
test_sound_sets_pass = passes(check_dataset, SETS)
test_broken_sets_are_refused_for_their_fault = refuses(
    check_dataset,
    [
        (Points(fault="arrays"), "Points.load returned tuple; a fedsim.learning.Dataset is needed"),
        (Points(fault="seedless"), "Points.load: the content differs when it is loaded again"),
        (Points(fault="draws"), "Points.load drew from a global random generator"),
        (Points(fault="label"), r"Points.load: of 3 labels, no training sample has \[2\]"),
        (Points(fault="leak"), "Points.load: 10 of 20 test samples are training samples too"),
        (Points(fault="not finite"), "train_x: numbers must be finite"),
        (Points(fault="gap"), "Points.load: users must be numbered from 0 without gaps"),
        (Points(fault="not said"), "Points.provides does not name 'users', though the set has train_users"),
        (Points(fault="no users"), "Points.provides names 'users', but there is no train_users"),
        (Unlike(), "Unlike.load: it does not derive from fedsim.Component"),
    ],
)
