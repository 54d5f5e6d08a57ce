"""How the full audit refuses a participation: by the rule that it breaks."""

from collections.abc import Callable

import numpy as np

from fedsim.arrays import BoolArray
from fedsim.errors import AuditError
from fedsim.rounds.effects.audit.records import Records


def refuse(broken: str, wrong: BoolArray, number: int, records: Records, told: Callable[[int], str]) -> None:
    """Refuse participations that break a rule."""
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise AuditError(f"round {number}, client {records.client[i]}: {broken}: {told(i)}")
