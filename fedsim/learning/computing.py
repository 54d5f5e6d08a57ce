"""How the results of a run were computed: by which executor, and how many of them had to be."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Self

from fedsim.errors import FedsimError


@dataclass(frozen=True)
class ExecutorUsed:
    """Which executor computes a run, as the folder of the run records it.

    Attributes
    ----------
    kind : of `fedsim.learning.EXECUTORS`, never ``"auto"``, or ``"module:Class"``
    device : in torch's words
    precision : of the arithmetic inside layers
    fingerprint : what the bits of its results are equal to

    Examples
    --------
    >>> used = ExecutorUsed("processes", "cpu", "float32", "sequential")
    >>> ExecutorUsed.from_json(used.to_json()) == used
    True
    >>> ExecutorUsed.from_json({"kind": "processes"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fedsim.errors.FedsimError: executor: {'kind': 'processes'} is not allowed; it must be a table ...
    """

    kind: str
    device: str
    precision: str
    fingerprint: str

    def to_json(self) -> dict[str, str]:
        """Return its values by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, table: object) -> Self:
        """Return what `to_json` described.

        Parameters
        ----------
        table : as it stands in ``run.json``

        Raises
        ------
        FedsimError
            If the table is not such a description.
        """
        names = [field.name for field in fields(cls)]
        if not (isinstance(table, Mapping) and all(isinstance(table.get(name), str) for name in names)):
            raise FedsimError(f"executor: {table!r} is not allowed; it must be a table of the texts {', '.join(names)}")
        return cls(**{name: table[name] for name in names})


@dataclass(frozen=True)
class Work:
    """What a learner has computed so far, and what it did not need to, since a store had it.

    Attributes
    ----------
    trained, trainings_found : local trainings that updates in use needed
    evaluated, evaluations_found : evaluations of models on the test set
    probed, probes_found : evaluations of models on clients' own data

    Examples
    --------
    >>> once, again = Work(trained=16, evaluated=5), Work(trainings_found=16, evaluations_found=5)
    >>> once.trained == again.trainings_found, again.trained  # the second run found all in the store of the first
    (True, 0)
    """

    trained: int = 0
    trainings_found: int = 0
    evaluated: int = 0
    evaluations_found: int = 0
    probed: int = 0
    probes_found: int = 0
