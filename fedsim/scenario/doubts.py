"""What a user should read of a scenario before it runs: values of another size than usual, and parts that are off."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from pydantic import BaseModel

from fedsim.code_digest import is_builtin
from fedsim.identity import VALUES, nested, parts_of
from fedsim.inputs.bounds import unusual
from fedsim.registry import units_of
from fedsim.rounds.policies.adaptive import QuantileDeadline
from fedsim.scenario.private_parts import sampling_rate
from fedsim.scenario.scenario import Scenario
from fedsim.scenario.update_numbers import cohort_of
from fedsim.selectors.baselines import All

_MOST_UPDATES: Final = 1000
"""Of a client, that are tried on its budget."""


def doubts_of(scenario: Scenario) -> tuple[str, ...]:
    """Return sentences on a scenario that runs, and perhaps not as it is meant; none if there is nothing."""
    return (*_unusual(scenario), *_off(scenario), *_of_rounds(scenario), *_of_budget(scenario))


def _unusual(table: object, path: str = "") -> Iterator[str]:
    units = units_of(type(table)) if isinstance(table, BaseModel) else {}
    for name, inner in nested(table):
        where = f"{path}.{name}" if path else name
        if units.get(name):
            several = inner if isinstance(inner, tuple) else (inner,)
            numbers = [one for one in several if isinstance(one, float)]
            yield from (f"{where} = {words}" for words in unusual(where, units[name], numbers))
        elif type(inner) not in VALUES:
            yield from _unusual(inner, where)


def _off(scenario: Scenario) -> Iterator[str]:
    told: dict[str, str] = {}
    for path, part in parts_of(scenario):
        if part.known_deviation:
            told.setdefault(part.known_deviation, path)
    yield from (f"{path} is simpler than the real thing: {deviation}" for deviation, path in told.items())


def _of_budget(scenario: Scenario) -> Iterator[str]:
    privacy, traits, clients = scenario.privacy, scenario.rounds.policy.traits, scenario.crowd.clients
    if privacy is None or privacy.composition is not None or sampling_rate(scenario) is not None:
        return
    whole = clients if scenario.selector.stands_for is All else cohort_of(scenario.selector)
    cohort = traits.buffer_size or traits.cohort_size or whole
    if not isinstance(cohort, int) or not is_builtin(type(privacy.budget)):
        return
    rounds = scenario.rounds.count
    account, paid, one = privacy.accountant(1), 0, np.zeros(1, dtype=np.int64)
    needed = min(math.ceil(rounds * cohort / clients), _MOST_UPDATES)
    while paid < needed and account.is_open(one)[0]:
        account.charge(0)
        paid += 1
    if paid < needed:
        of_all = f"of {rounds} rounds" if scenario.rounds.edges is None else "rounds of edge servers"
        yield (
            f"privacy.budget pays for {paid} updates of a client: about {paid * clients // cohort} {of_all} "
            f"with {'buffers' if traits.buffer_size else 'cohorts'} of {cohort}"
        )


def _of_rounds(scenario: Scenario) -> Iterator[str]:
    cohort, clients, policy = cohort_of(scenario.selector), scenario.crowd.clients, scenario.rounds.policy
    if isinstance(policy, QuantileDeadline) and policy.longest_s is None and scenario.devices.dropout.possible:
        yield (
            "rounds.policy: clients that are lost make the deadline longer, up to reach = "
            f"{policy.reach:g} times the slowest delivery; longest_s limits it too"
        )
    asked = policy.traits.cohort_size
    if isinstance(cohort, int) and asked not in (None, cohort):
        of = f" of crowd.clients = {clients}: all that are there take part" if (asked or 0) > clients else ""
        yield f"selector.cohort = {cohort} is not used: rounds.policy asks for {asked} clients a round{of}"
    elif isinstance(cohort, int) and cohort == clients > 1 and scenario.rounds.edges is None:
        yield (
            f"selector.cohort = {cohort} is the whole crowd: every client that is there takes part, unless the "
            "selector draws some of them several times"
        )
    target, told = scenario.rounds.target_accuracy, scenario.results.target_accuracy
    if target is not None and target < told:
        yield (
            f"rounds.target_accuracy = {target:g} ends the run before results.target_accuracy = {told:g}, whose second "
            f"is told, is reached; results.target_accuracy = {target:g} tells when the run got there"
        )
