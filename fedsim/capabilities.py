"""What a part of a scenario requires of the others, and what it provides.

A part states both as sets of names, `fedsim.Component.requires` and `fedsim.Component.provides`. A scenario is refused
if a part requires what no part provides, or provides what another one names in `fedsim.Component.excludes`. The names
below are those of fedsim's own parts; parts of your own may use others.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

MODEL_BITS: Final = "model-bits"
"""The size of a model in bits. Provided by the learner."""
SAMPLES: Final = "samples"
"""The number of samples of every client. Provided by the learner."""
FLOPS: Final = "flops"
"""The floating-point operations of a sample in training. Provided by the learner."""
NO_LOSSES: Final = "no-losses"
"""A client that was sent always delivers at last. Provided by devices and faults together."""
TIME_LIMIT: Final = "time-limit"
"""A round has a longest duration, known when its cohort is sent. Provided by policies."""
EDGES: Final = "edges"
"""Rounds may run at several edge servers below a cloud. Provided by policies."""
SITES: Final = "sites"
"""A client's transfers end at one of several sites. Provided by networks."""
ROUTES: Final = "routes"
"""Models may travel between edge servers and cloud over the clients' network. Provided by networks."""
TIERS: Final = "tiers"
"""Edge servers are numbered by speed, the fastest first. Provided by groupings."""
ENDS_AT_EDGES: Final = "ends-at-edges"
"""The network itself names the edge server at which a client's transfers end. Provided by networks."""
ENDS_AT_CLOUD: Final = "ends-at-cloud"
"""Transfers of clients end at the cloud, beyond edge servers. Provided by networks."""
MOBILITY: Final = "mobility"
"""Clients move from one site to another. Provided by networks."""
USERS: Final = "users"
"""Each training sample belongs to a user, such as a writer or a speaker. Provided by data sets."""
LABELS: Final = "labels"
"""Each training sample has a label. Provided by the task."""
UPDATES: Final = "updates"
"""An aggregation has the updates of its clients at once. Provided by policies."""


class Capable(Protocol):
    """What states requirements and provisions: every `fedsim.Component` does."""

    @property
    def requires(self) -> frozenset[str]:
        """Names of what other parts of the scenario must provide."""
        ...

    @property
    def provides(self) -> frozenset[str]:
        """Names of what other parts of the scenario may require."""
        ...


class Capabilities(NamedTuple):
    """The requirements and provisions of a table that is no `fedsim.Component`."""

    requires: frozenset[str] = frozenset()
    provides: frozenset[str] = frozenset()


def missing(requires: frozenset[str], provides: Iterable[frozenset[str]]) -> list[str]:
    """Return the names that are required and that no part provides, sorted.

    >>> missing(frozenset({"flops", "samples"}), [frozenset({"samples"}), frozenset()])
    ['flops']
    """
    return sorted(requires.difference(*provides))
