"""Data sets handed over in Python or named by their class or function in a file: arrays, datasets of torch."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from fedsim.capabilities import USERS
from fedsim.errors import DataError
from fedsim.foreign import Foreign, code_of, parameters_of, place_of, required_of
from fedsim.learning.data.datasets import Dataset
from fedsim.learning.data.division import Division, Undivided
from fedsim.learning.data.given import ALLOWED, TARGET_FILL, MapStyle, divided, read
from fedsim.learning.generators import own_generators
from fedsim.registry import Component


class HandedData(Foreign):
    """A data set of the user's own: arrays, a dataset of torch, or a class or function that gives one."""

    reads: ClassVar[frozenset[str]] = frozenset({TARGET_FILL})

    @classmethod
    @own_generators(0)
    def of_object(cls, value: Any) -> Self:
        """Return the part of an object, which is read now and identified by the digest of its content."""
        if isinstance(value, str | bytes | Mapping | int | float) or value is None:
            raise ValueError(f"{value!r} is no data set; {ALLOWED}")
        place = place_of(value)
        if inspect.isclass(value) and issubclass(value, Component):
            raise ValueError(f"{place} is a class; allowed: a part of it, such as {value.__name__}()")
        if inspect.isclass(value) or (callable(value) and not isinstance(value, MapStyle)):
            made = cls._of_call(place, value)
            if code_of(value) is value and "<" not in place:
                return made
            data = made._read()
        else:
            data = read(value, None, f"data set {place}")
            data = data.copied() if data is value else data
        return cls.holding(data, place, content=divided(data).digest)

    @classmethod
    def _of_call(cls, place: str, found: Callable[..., Any]) -> Self:
        further = [name for name in required_of(found) if name not in ("data_dir", "train")]
        if further:
            raise ValueError(
                f"{place} needs {', '.join(further)}; allowed: an object that it gives, such as "
                f"{place.rpartition(':')[2]}(...), or parameters with defaults, 'train' and 'data_dir'"
            )
        return cls.holding(found, place)

    @classmethod
    def of_place(cls, place: str, found: Any, options: Mapping[str, Any]) -> Self:
        """Return the part that a class or function makes with options, ``target_fill`` among them."""
        part = super().of_place(place, found, options)
        fill = part._fill
        if fill is not None and (isinstance(fill, bool) or not isinstance(fill, int | float)):
            raise ValueError(f"{TARGET_FILL}: {fill!r} is not allowed; allowed: a number")
        return part

    @property
    def provides(self) -> frozenset[str]:
        """``"users"`` if an object says whose each sample is."""
        if not self.content:
            return frozenset()
        users = self.found.users if isinstance(self.found, Undivided) else self.found.train_users
        return frozenset({USERS} if users is not None else ())

    @own_generators(0)
    def load(
        self,
        data_dir: Path | None = None,
        division: Division | None = None,
        rng: np.random.Generator | None = None,
    ) -> Dataset:
        """Return the data set, divided by the draws of ``rng`` if it comes without a division.

        A class or function is called with the options, with ``data_dir`` if it has such a parameter, and if it has a
        parameter ``train`` twice: with True for the training set and with False for the test set. It gets
        ``target_fill`` only if it has such a parameter.
        """
        found = self.found if self.content else self._read(data_dir)
        if division is not None and not isinstance(found, Undivided):
            raise DataError(
                f"learning.test: data set {self.place} has a division of its own; allowed: no learning.test, or "
                "samples and targets as two arrays"
            )
        return divided(found, division, rng)

    def _read(self, data_dir: Path | None = None) -> Dataset | Undivided:
        if "train" in parameters_of(self.found) and "train" not in self.options:
            given: Any = tuple(self.called("data set", data_dir=data_dir, train=train) for train in (True, False))
        else:
            given = self.called("data set", data_dir=data_dir)
        return read(given, self._fill, f"data set {self.place}")

    @property
    def _fill(self) -> Any:
        return None if TARGET_FILL in self.for_call else self.options.get(TARGET_FILL)
