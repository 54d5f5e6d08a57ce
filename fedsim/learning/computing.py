"""How the results of a run were computed: by which executor, and how many of them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Self

from fedsim.errors import FedsimError


@dataclass(frozen=True)
class ExecutorUsed:
    """The executor of a run, as ``run.json`` records it."""

    kind: str
    device: str
    precision: str
    fingerprint: str
    fast: bool = False

    def to_json(self) -> dict[str, str | bool]:
        return asdict(self)

    @classmethod
    def from_json(cls, table: object) -> Self:
        names = [field.name for field in fields(cls) if field.name != "fast"]
        texts = isinstance(table, Mapping) and all(isinstance(table.get(name), str) for name in names)
        if not (isinstance(table, Mapping) and texts and isinstance(table.get("fast"), bool)):
            raise FedsimError(
                f"executor: {table!r} is not allowed; it must be a table of the texts {', '.join(names)}, and of fast, "
                "which is true or false"
            )
        return cls(**{name: table[name] for name in (*names, "fast")})


@dataclass(frozen=True)
class Work:
    """How many results a learner has computed, and how many it has found in a store."""

    trained: int = 0
    trainings_found: int = 0
    evaluated: int = 0
    evaluations_found: int = 0
    probed: int = 0
    probes_found: int = 0
