"""What a step of a client may know."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fedsim.devices import Availability, Batteries, ComputeTimes, Dropout
from fedsim.devices.availability.on_off import OnOffProcess
from fedsim.network import Links
from fedsim.privacy import PrivacyAccountant
from fedsim.rounds.clients.workload import Workload
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.connections import Connections
from fedsim.rounds.effects.contract import Effect, Effects
from fedsim.rounds.effects.leaving import Crashes, Hazards, Offline, Vanishing
from fedsim.rounds.effects.outages import Outages
from fedsim.rounds.effects.partial_work import PartialWork
from fedsim.streams import Streams


@dataclass(frozen=True, kw_only=True)
class ClientContext:
    """What the participations of one run depend on."""

    streams: Streams
    links: Links
    compute: ComputeTimes
    availability: Availability
    dropout: Dropout
    workload: Workload
    accountant: PrivacyAccountant | None = None
    batteries: Batteries | None = None
    may_leave: bool = True
    devices_up: OnOffProcess | None = None
    links_up: OnOffProcess | None = None
    least_work: float = 1.0
    own_effects: Sequence[Effect] = ()

    @cached_property
    def effects(self) -> Effects:
        """Effects in the order in which they are asked: batteries pay for what the user's own have changed."""
        links, dropout = self.links, self.dropout
        found: list[Effect] = []
        if self.least_work < 1.0:
            found.append(PartialWork(self.least_work, self.workload.learner))
        if self.links_up is not None:
            found.append(Outages(self.links_up))
        if links.connection is not None:
            found.append(Connections(links.connection))
        if self.devices_up is not None:
            found.append(Crashes(self.devices_up))
        if self.may_leave:
            found.append(Offline(self.availability))
        rates_per_s = dropout.phase_hazards()
        if dropout.possible and (rates_per_s is None or not links.shared.down):
            found.append(Vanishing(dropout))
        found += self.own_effects
        if self.batteries is not None:
            found.append(Battery(self.batteries))
        if rates_per_s is not None and links.shared.down:
            found.append(Hazards(dropout, rates_per_s))
        return Effects(found)
