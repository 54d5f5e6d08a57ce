"""Phases of a participation, its outcome and its fate, and what ended a round: codes and their labels."""

from enum import IntEnum
from typing import Final

NO_VALUE: Final = -1
"""No value in an array of codes or of counts; null in tables."""
UNDECIDED: Final = NO_VALUE
"""Fate of an update before it is known."""
NOT_CUT: Final = NO_VALUE
"""Phase in which a participation was cut short, for one that was not."""


class Coded(IntEnum):
    """A code in an array and a label in a table; codes count from 0."""

    @property
    def label(self) -> str:
        """The label in tables: the name in lower case with hyphens."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def labels(cls) -> tuple[str, ...]:
        return tuple(member.label for member in cls)


class Phase(Coded):
    """Phase of a participation. A participation that was not cut short has none as its ``cut_in``."""

    DOWNLINK = 0
    COMPUTE = 1
    UPLINK = 2


# Plain integers: an index into an array several times faster than a member of an enumeration.
DOWNLINK: Final = int(Phase.DOWNLINK)
COMPUTE: Final = int(Phase.COMPUTE)
UPLINK: Final = int(Phase.UPLINK)
PHASES: Final = Phase.labels()


class Outcome(Coded):
    DELIVERED = 0
    LATE = 1
    DROPPED = 2


class Fate(Coded):
    """Whether the time and the bits of a participation served."""

    USED = 0
    """The update was in time, and went into the next model after the version that it started from."""
    STALE_USED = 1
    """The update was used; it was late, or the model had changed since the version that it started from."""
    WASTED_LATE = 2
    """The server had stopped waiting: the client was cancelled, or its update arrived too late to be used."""
    WASTED_DROPPED = 3
    """The client was lost."""
    WASTED_UNMERGED = 4
    """The update arrived in time and was not used: there were too few updates, or the server crashed."""


class SecureStep(Coded):
    """Step of secure aggregation. The masked update itself is the upload of a participation."""

    ADVERTISE_KEYS = 0
    """A client sends its public keys."""
    SHARE_KEYS = 1
    """A client receives the keys of the others, and sends a share of its secrets to each of them."""
    RECEIVE_SHARES = 2
    """A client receives the others' shares, and expands its masks."""
    UNMASK = 3
    """A client that has delivered sends the shares by which the server takes masks away."""


class RoundEnd(Coded):
    ENOUGH = 0
    """The policy had what it waited for."""
    DEADLINE = 1
    """The round had lasted as long as its policy allows, and clients were missing."""
    RESTART = 2
    """The server crashed."""


class JudgedModel(Coded):
    """Which model was evaluated."""

    SERVER = 0
    """The server's, which is also that of the clients."""
    OWN = 1
    """Each client's own: the shared part with the client's."""


class JudgedSamples(Coded):
    """On which samples a model was evaluated; on none that it was trained on."""

    TEST_SET = 0
    """All samples of the test set."""
    PART_OF_TEST_SET = 1
    """Those of the client, of a test set that is divided."""
    HELD_OUT = 2
    """Those of the client's samples that are held out."""
