"""What a server step may know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import FloatArray, IntArray
from fedsim.devices import Availability, Batteries
from fedsim.errors import ScenarioError
from fedsim.learning import Learner, Release
from fedsim.privacy import PrivacyAccountant, ReleaseFacts, SideInformation
from fedsim.privacy.side_information import released_numbers
from fedsim.rounds.aggregation.weightings import BySamples, Weighting
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.effects.faults.settings import ServerRestart
from fedsim.rounds.effects.privacy_budget import PrivacyBudget
from fedsim.rounds.policies.contracts import RoundPolicy
from fedsim.rounds.policies.late import Cancel, LateRule
from fedsim.rounds.run import Run
from fedsim.rounds.secure.exchange import SecureParts
from fedsim.rounds.server.view import Knowledge
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams

_NAMED: Final = 5
"""Updates that a note names."""


@dataclass
class Refused:
    """Clients and rounds of the updates that a run has refused since they were no numbers."""

    updates: list[tuple[int, int]] = field(default_factory=list)

    def note(self) -> str:
        """Return a sentence on them; empty without any."""
        if not self.updates:
            return ""
        named = ", ".join(f"client {client} in round {number}" for client, number in self.updates[:_NAMED])
        more = len(self.updates) - _NAMED
        return (
            f"{len(self.updates):,} updates were no numbers and were refused (rounds.refuse_nonfinite_updates): {named}"
            f"{f' and {more:,} others' if more > 0 else ''}. Usual causes: a too high learning.local.learning_rate, "
            "or very large values in the data"
        )


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

    @cached_property
    def batteries(self) -> Batteries | None:
        battery = Effects(self.clients.effects).of(Battery)
        return None if battery is None else battery.batteries

    def refusal_to_start(self, start_s: float) -> ScenarioError:
        """Return the error about a run whose first client could be selected too late."""
        if spent := self._why_spent():
            return ScenarioError(f"privacy: no round can start; {spent}; allowed: a budget that pays for an update")
        return ScenarioError(
            f"devices: no round can start; the first client is available, and charged enough, after {start_s} s; "
            "allowed: availability and energy that let one take part before rounds.until_s"
        )

    def why_nobody(self, time_s: float) -> str:
        """Return why no client will be selected from an instant on."""
        batteries = self.batteries
        if spent := self._why_spent():
            return spent
        if batteries is not None:
            everyone = np.arange(batteries.clients)
            if (batteries.charge_j(everyone, time_s) < batteries.least_j).all():
                least_j = np.max(batteries.least_j)
                return f"all {batteries.clients} batteries are below {least_j:.6g} J, the least charge, for good"
        return "no client will ever be available again"

    def _why_spent(self) -> str:
        """Return why no client can be selected for its privacy account; empty while one can."""
        accountant = self.accountant
        if accountant is None or len(accountant.closed) < accountant.spent.size:
            return ""
        return accountant.why_closed

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
