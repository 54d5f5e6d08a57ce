"""How the full audit refuses a participation: by the rule that it breaks."""

from collections.abc import Callable

import numpy as np

from fedsim.arrays import BoolArray
from fedsim.errors import AuditError
from fedsim.rounds.clients.records import ParticipationRecords


def refuse(
    broken: str, wrong: BoolArray, number: int, records: ParticipationRecords, told: Callable[[int], str]
) -> None:
    """Refuse participations that break a rule.

    Parameters
    ----------
    broken : what a participation that breaks the rule does, in words
    wrong : which of them break it, shape (m,)
    number : round in which they began
    records : of the participations
    told : returns the sums that the rule compares, in words, for a position

    Raises
    ------
    AuditError
        If any breaks it; the message names the round, the client and the rule.
    """
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise AuditError(f"round {number}, client {records.client[i]}: {broken}: {told(i)}")
