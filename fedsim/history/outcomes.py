"""fedsim.history.outcomes."""

from enum import IntEnum
from typing import Final

PHASES: Final = ("downlink", "compute", "uplink")
DOWNLINK: Final = 0
COMPUTE: Final = 1
UPLINK: Final = 2


class Outcome(IntEnum):
    """How a participation ended."""

    DELIVERED = 0
    LATE = 1
    DROPPED = 2


UNDECIDED: Final = -1


class Fate(IntEnum):
    """Whether the time and bits of a participation served."""

    USED = 0
    """Its update was not late, and went into the next model after the version it started from."""
    STALE_USED = 1
    """Its update was late, or other models had been made since the version it started from, and was used."""
    WASTED_LATE = 2
    """The server had stopped waiting: it was cancelled, or what arrived was too late to be used."""
    WASTED_DROPPED = 3
    """The client was lost."""
    WASTED_UNMERGED = 4
    """It arrived in time and nothing came of it: too few others had arrived, or the server crashed."""


class RoundEnd(IntEnum):
    """What ended a round."""

    ENOUGH = 0
    """Its policy had what it waited for."""
    DEADLINE = 1
    """It had lasted as long as its policy allows, and clients were missing."""
    RESTART = 2
    """The server crashed."""


FATES: Final = tuple(fate.name.lower().replace("_", "-") for fate in Fate)
ENDS: Final = tuple(end.name.lower() for end in RoundEnd)
