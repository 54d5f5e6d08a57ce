"""What a server step may know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Availability
from fedsim.learning import Learner, Release
from fedsim.privacy import ReleaseFacts, SideInformation
from fedsim.privacy.side_information import released_numbers
from fedsim.rounds.aggregation.weightings import BySamples, Weighting
from fedsim.rounds.clients.context import ClientContext
from fedsim.rounds.faults import ServerRestart
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Cancel, LateRule
from fedsim.rounds.secure.exchange import SecureParts
from fedsim.rounds.server.knowledge import Knowledge
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class ServerContext:
    """What the server process of one run depends on.

    Attributes
    ----------
    clients : what its clients' participations depend on
    streams : random streams of this server's own decisions
    availability : of the clients that this server may select
    knowledge : what the server knows of its clients
    late : what becomes of late clients
    minimum_updates : with fewer a round ends without a new model
    expected_duration_s : mean duration of every client's participation, shown to oracles, shape (K,); None for none
    server_restart : when the server crashes; None for never
    side_information : makes numbers private that clients send beside updates; None for numbers sent as they are
    noise_to_signal : whether rounds record the noise of privacy in the updates that they used
    releases : what the tables say of private releases; None without privacy
    secure : of secure aggregation; None for updates in clear
    weighting : by which weights updates count, under a policy without a rule of its own
    learner : what is learned
    selector : which clients take part
    policy : when a round is over
    numbers_from_outside : whether numbers beside updates are reported from outside, without learning

    Examples
    --------
    >>> from fedsim import Scenario
    >>> from fedsim.wiring import build_context
    >>> context = build_context(Scenario(
    ...     name="four", crowd={"clients": 4}, learning="none", network="pause-two-speed", devices={"compute": "zero"},
    ...     rounds={"count": 1, "minimum_updates": 2}, selector="all",
    ... ))
    >>> context.minimum_updates, context.knowledge.participations.tolist()
    (2, [0, 0, 0, 0])
    """

    clients: ClientContext
    streams: Streams
    availability: Availability
    learner: Learner
    selector: SelectorPort
    policy: RoundPolicy
    knowledge: Knowledge
    late: LateRule = field(default_factory=Cancel)
    minimum_updates: int = 1
    expected_duration_s: FloatArray | None = None
    server_restart: ServerRestart | None = None
    side_information: SideInformation | None = None
    noise_to_signal: bool = False
    releases: ReleaseFacts | None = None
    secure: SecureParts | None = None
    weighting: Weighting = field(default_factory=BySamples)
    numbers_from_outside: bool = False

    def sent_numbers(
        self, client: IntArray, releases: Sequence[Release], columns: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """Return what clients send in place of numbers beside updates, or as answers; by name, of shape (m,).

        Without learning there are no numbers, and each stays NaN.

        Parameters
        ----------
        client : ids, shape (m,)
        releases : of the numbers of each client, m of them
        columns : the numbers by name, each of shape (m,)
        """
        known = self.learner.architecture is not None or self.numbers_from_outside
        if self.side_information is None or not known:
            return dict(columns)
        keys = [(one, release.index) for one, release in zip(client.tolist(), releases, strict=True)]
        generators = (self.clients.streams.generator("side-information", *key) for key in keys)
        sent = released_numbers(self.side_information, columns, [release.epsilon for release in releases], generators)
        if not self.numbers_from_outside:
            return sent
        # What was not reported is not told either.
        return {name: np.where(np.isnan(columns[name]), np.nan, column) for name, column in sent.items()}
