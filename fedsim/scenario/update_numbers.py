"""Numbers of updates that a scenario asks for, and that its rounds can never have."""

from collections.abc import Iterator

import numpy as np

from fedsim.foreign import Stateful
from fedsim.identity import parts_of
from fedsim.learning import AGGREGATIONS, Aggregator
from fedsim.learning.aggregation.contracts import AGGREGATION
from fedsim.rounds import POLICIES
from fedsim.rounds.aggregation.weightings import NO_WEIGHT, Given
from fedsim.rounds.policies.count_based import KFastest
from fedsim.scenario.private_parts import Problem
from fedsim.scenario.sections import ScenarioTables
from fedsim.selectors import SelectorPort
from fedsim.selectors.adapter import cohort_is_mean


def update_problems(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield numbers of updates that are too few or never reached, and weights with which none would count."""
    rounds, cohort = tables.rounds, cohort_of(tables.selector)
    policy, buffer = POLICIES.kind_of(rounds.policy), rounds.policy.traits.buffer_size
    field, most = _most_updates(tables)
    enough = True
    for path, part in parts_of(tables):
        least = AGGREGATION.checked(part).least_updates if isinstance(part, Aggregator) else 1
        enough = enough and least <= most
        needs = f"{path} = {AGGREGATIONS.kind_of(part)!r} needs at least {least} updates" if least > 1 else ""
        if needs and buffer is not None and buffer < least:
            yield (
                ("rounds", "policy"),
                policy,
                f"{needs}, and this policy aggregates {buffer} at a time; allowed: a policy that aggregates as many",
            )
        elif needs and buffer is None and isinstance(cohort, int) and cohort < least and rounds.late.cancels:
            yield ("selector", "cohort"), cohort, f"{needs}; allowed: at least as many"
        elif needs and most < least:
            yield field, most, f"{needs}; allowed: at least as many"
        elif needs and max(rounds.minimum_updates, buffer or 0) < least:
            yield (
                ("rounds", "minimum_updates"),
                rounds.minimum_updates,
                f"{needs}; allowed: {least} or more, so that a round with fewer ends without a new model",
            )
    weights = rounds.weights
    if isinstance(weights, Given) and isinstance(weights.weight, float | tuple) and not np.any(weights.weight):
        yield ("rounds", "weights", "weight"), weights.weight, NO_WEIGHT
    if rounds.minimum_updates > most and enough:
        why = f"a round has never more updates than {'.'.join(field)} = {most}"
        if buffer is not None:
            why = f"the policy {policy!r} aggregates {most} at a time, which is never enough"
        yield ("rounds", "minimum_updates"), rounds.minimum_updates, f"{why}; allowed: 1 to {most}"


def cohort_of(selector: Stateful) -> object:
    """Return how many clients a selector chooses; None, or anything else, where that is not said."""
    return SelectorPort.of(selector.found).cohort if selector.content else selector.options.get("cohort")


def _most_updates(tables: ScenarioTables) -> tuple[tuple[str, ...], int]:
    """Return the field that limits the updates of an aggregation, and the number."""
    rounds, selector, traits = tables.rounds, tables.selector, tables.rounds.policy.traits
    if traits.buffer_size is not None:
        return ("rounds", "policy"), traits.buffer_size
    limits: dict[tuple[str, ...], int] = {("crowd", "clients"): tables.crowd.clients}
    if rounds.late.cancels and not traits.overlaps_rounds:
        cohort = cohort_of(selector)
        if isinstance(cohort, int) and traits.cohort_size is None and not cohort_is_mean(selector.stands_for):
            limits["selector", "cohort"] = cohort
        if isinstance(rounds.policy, KFastest):
            limits["rounds", "policy", "k"] = rounds.policy.k
    return min(limits.items(), key=lambda limit: limit[1])
