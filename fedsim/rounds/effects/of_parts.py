"""The effects of a run: those of each part of its scenario, in the order in which they are asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from fedsim.answers import Contract, PartOf, Several
from fedsim.devices.contracts import DROPOUT, Dropout
from fedsim.devices.energy import ENERGY, Energy
from fedsim.rounds.effects.battery import Battery
from fedsim.rounds.effects.connections import Connections
from fedsim.rounds.effects.contract import EFFECT, Effect, Effects
from fedsim.rounds.effects.leaving import Hazards, Offline, Vanishing
from fedsim.rounds.effects.selector.allocation import Allocation
from fedsim.rounds.effects.widths import Widths
from fedsim.rounds.effects.without_samples import WithoutSamples
from fedsim.rounds.run import Run

OTHERS: Final = "others"
ORDER: Final = (
    "learning",
    "selector",
    "rounds.late",
    "devices.availability",
    "devices.dropout",
    OTHERS,
    "rounds.effects",
    "rounds.faults",
    "network",
    "devices.energy",
    "privacy",
)
"""Places of parts: links wait and set up after all other waits, and batteries pay for what others have changed.

Of two causes at one instant the first counts.
"""


class Part(Protocol):
    """A part of a scenario that may bring effects."""

    def effects(self, run: Any) -> Sequence[Any]:
        """Return the effects that the part brings."""
        ...


PART: Final = Contract("any part", Part, {"effects": Several(PartOf(Effect, EFFECT))})


def effects_of(parts: Mapping[str, Part], run: Run, of_selector: Sequence[Effect] = ()) -> Effects:
    """Return the effects of the parts of a scenario, which are given by their paths, and those of its selector."""
    found: dict[str, list[Effect]] = {place: [] for place in ORDER}
    found["selector"] += [*of_selector, Allocation()]
    for path, part in parts.items():
        place = next((place for place in ORDER if f"{path}.".startswith(f"{place}.")), OTHERS)
        found[place] += PART.checked(part).effects(run)
        if path in _OF_ROOMS_BELOW:
            found[place] += _OF_ROOMS_BELOW[path](part, run)
    return Effects(effect for place in ORDER for effect in found[place])


def _of_links(_: Part, run: Run) -> Sequence[Effect]:
    return [] if run.links.connection is None else [Connections(run.links.connection)]


def _of_availability(model: Any, run: Run) -> Sequence[Effect]:
    return [Offline(run.availability)] if model.may_leave else []


def of_dropout(law: Dropout, run: Run) -> Sequence[Effect]:
    """Return how clients vanish: at instants that are known, or at rates of phases whose durations are not."""
    law = DROPOUT.checked(law)
    rates_per_s = law.phase_hazards()
    if rates_per_s is not None and run.shared[0]:
        return [Hazards(law, rates_per_s)]
    return [Vanishing(law)] if law.possible else []


def _of_energy(law: Energy, run: Run) -> Sequence[Effect]:
    batteries = ENERGY.checked(law).build(run)
    return [] if batteries is None else [Battery(batteries)]


def _of_learning(_: Part, run: Run) -> Sequence[Effect]:
    widths = run.workload.learner.widths
    found: list[Effect] = [] if widths is None else [Widths(widths)]
    works = run.workload.learner.work_samples(np.arange(run.clients)) > 0
    # Without any work of any client, nothing tells which of them have data.
    return [*found, WithoutSamples(works)] if works.any() and not works.all() else found


_OF_ROOMS_BELOW: Final[Mapping[str, Callable[[Any, Run], Sequence[Effect]]]] = {
    "network": _of_links,
    "devices.availability": _of_availability,
    "devices.dropout": of_dropout,
    "devices.energy": _of_energy,
    "learning": _of_learning,
}
"""Effects of parts of rooms that cannot know this one."""
