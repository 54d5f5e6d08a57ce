"""What a server step may know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Availability
from fedsim.learning import Learner, Release
from fedsim.privacy import PrivacyAccountant, ReleaseFacts, SideInformation
from fedsim.privacy.side_information import released_numbers
from fedsim.rounds.aggregation.weightings import BySamples, Weighting
from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.effects.privacy_budget import PrivacyBudget
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Cancel, LateRule
from fedsim.rounds.run import Run
from fedsim.rounds.secure.exchange import SecureParts
from fedsim.rounds.server.refused import Refused
from fedsim.rounds.server.view import Knowledge
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class RoundRules:
    """When rounds end, and what becomes of the updates that arrive."""

    policy: RoundPolicy
    late: LateRule = field(default_factory=Cancel)
    minimum_updates: int = 1
    weighting: Weighting = field(default_factory=BySamples)
    server_restart: ServerRestart | None = None
    refused: Refused | None = None


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What hides the numbers of clients, and whether its cost in signal is recorded."""

    releases: ReleaseFacts | None = None
    side_information: SideInformation | None = None
    secure: SecureParts | None = None
    noise_to_signal: bool = False
    numbers_from_outside: bool = False


@dataclass(frozen=True, kw_only=True)
class ServerContext:
    """What the server process of one run depends on."""

    clients: Run
    streams: Streams
    availability: Availability
    learner: Learner
    selector: SelectorPort
    knowledge: Knowledge
    rules: RoundRules
    protection: Protection = field(default_factory=Protection)

    @cached_property
    def expected_duration_s(self) -> FloatArray:
        """Mean seconds of a participation of each client, shape (K,)."""
        return np.asarray(self.clients.expected_s.sum(axis=0))

    @cached_property
    def accountant(self) -> PrivacyAccountant | None:
        budget = Effects(self.clients.effects).of(PrivacyBudget)
        return None if budget is None else budget.accountant

    def sent_numbers(
        self, client: IntArray, releases: Sequence[Release], columns: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """Return what clients send in place of numbers beside updates or in place of losses; by name.

        Without learning there are no numbers, and each stays NaN.
        """
        protection = self.protection
        known = self.learner.architecture is not None or protection.numbers_from_outside
        if protection.side_information is None or not known:
            return dict(columns)
        keys = [(one, release.index) for one, release in zip(client.tolist(), releases, strict=True)]
        generators = (self.clients.streams.generator("side-information", *key) for key in keys)
        epsilon = [release.epsilon for release in releases]
        sent = released_numbers(protection.side_information, columns, epsilon, generators)
        if not protection.numbers_from_outside:
            return sent
        # A number that was not reported is not sent either.
        return {name: np.where(np.isnan(columns[name]), np.nan, column) for name, column in sent.items()}
