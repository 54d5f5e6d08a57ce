"""The contract check of data sets."""

from pathlib import Path
from typing import Final

import numpy as np

from fedsim.capabilities import USERS
from fedsim.learning import Dataset
from fedsim.learning.data.datasets import DatasetPart
from fedsim.registry import Component
from fedsim.testing.examination import Examination

_MOST_SHARED: Final = 0.05


def check_dataset(part: DatasetPart, *, data_dir: Path | None = None) -> None:
    """Check that a data set keeps the contract of `fedsim.learning.Dataset`; return None if it does.

    It is loaded twice. It must

    * derive from `fedsim.Component` and return a `Dataset`, which checks types, shapes, labels and numbers itself,
    * have the same content each time, bit by bit, since results in a store go by it: draws that it needs come from a
      seed among its own options,
    * draw nothing from the global random generators,
    * have a training sample of each label,
    * have at most a twentieth of its test samples, with their targets, among its training samples: an accuracy would
      be too high by what a model has learned by heart,
    * number its users from 0 without gaps if it tells them, and name ``"users"`` in ``provides`` exactly then.

    Parameters
    ----------
    part : settings with a method ``load``, as they stand in ``learning.data``
    data_dir : folder in which it looks for its files; None where it needs no files

    Raises
    ------
    ContractError
        Naming the data set and the fault.

    Examples
    --------
    >>> from fedsim.learning import Digits
    >>> check_dataset(Digits())
    """
    _Trial(part, data_dir).check()


class _Trial(Examination):
    def __init__(self, part: DatasetPart, data_dir: Path | None) -> None:
        super().__init__(part)
        if not isinstance(part, Component):
            raise self.fault("load: it does not derive from fedsim.Component")
        self._part, self._provides, self._data_dir = part, part.provides, data_dir

    def check(self) -> None:
        data = self._loaded()
        self.law(data.digest == self._loaded().digest, "load: the content differs when it is loaded again")
        if data.labels is not None and data.classes is not None:
            lacking = np.setdiff1d(np.arange(data.classes), data.labels).tolist()
            self.law(not lacking, f"load: of {data.classes} labels, no training sample has {lacking[:3]}")
        self._check_samples_apart(data)
        self._check_users(data)

    def _loaded(self) -> Dataset:
        found: object = self.ask("load", lambda: self._part.load(self._data_dir))
        if not isinstance(found, Dataset):
            raise self.fault(f"load returned {type(found).__name__}; a fedsim.learning.Dataset is needed")
        return found

    def _check_samples_apart(self, data: Dataset) -> None:
        known = {x.tobytes() + y.tobytes() for x, y in zip(data.train_x, data.train_y, strict=True)}
        tests = [x.tobytes() + y.tobytes() for x, y in zip(data.test_x, data.test_y, strict=True)]
        shared = sum(test in known for test in tests)
        fault = f"load: {shared} of {len(tests)} test samples are training samples too; at most 5 % are allowed"
        self.law(shared <= _MOST_SHARED * len(tests), fault)

    def _check_users(self, data: Dataset) -> None:
        told, named = data.train_users is not None, USERS in self._provides
        fault = (
            "provides does not name 'users', though the set has" if told else "provides names 'users', but there is no"
        )
        self.law(told == named, f"{fault} train_users")
        if data.train_users is not None:
            users = np.unique(data.train_users)
            self.law(np.array_equal(users, np.arange(users.size)), "load: users must be numbered from 0 without gaps")
