"""What a server step may know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Availability, Batteries
from fedsim.learning import Learner, Release
from fedsim.privacy import PrivacyAccountant, ReleaseFacts, SideInformation
from fedsim.privacy.side_information import released_numbers
from fedsim.rounds.aggregation.weightings import BySamples, Weighting
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.effects.privacy_budget import PrivacyBudget
from fedsim.rounds.faults import ServerRestart
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Cancel, LateRule
from fedsim.rounds.run import Run
from fedsim.rounds.secure.exchange import SecureParts
from fedsim.rounds.server.refused import Refused
from fedsim.rounds.server.view import Knowledge
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class ServerContext:
    """What the server process of one run depends on."""

    clients: Run
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
    refused: Refused | None = None

    @cached_property
    def accountant(self) -> PrivacyAccountant | None:
        budget = Effects(self.clients.effects).of(PrivacyBudget)
        return None if budget is None else budget.accountant

    @cached_property
    def batteries(self) -> Batteries | None:
        battery = Effects(self.clients.effects).of(Battery)
        return None if battery is None else battery.batteries

    def sent_numbers(
        self, client: IntArray, releases: Sequence[Release], columns: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """Return what clients send in place of numbers beside updates or in place of losses; by name.

        Without learning there are no numbers, and each stays NaN.
        """
        known = self.learner.architecture is not None or self.numbers_from_outside
        if self.side_information is None or not known:
            return dict(columns)
        keys = [(one, release.index) for one, release in zip(client.tolist(), releases, strict=True)]
        generators = (self.clients.streams.generator("side-information", *key) for key in keys)
        sent = released_numbers(self.side_information, columns, [release.epsilon for release in releases], generators)
        if not self.numbers_from_outside:
            return sent
        # A number that was not reported is not sent either.
        return {name: np.where(np.isnan(columns[name]), np.nan, column) for name, column in sent.items()}
