"""What a user should read of a scenario before it runs: values of another size than usual, and parts that are off."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from pydantic import BaseModel

from fedsim.code_digest import is_builtin
from fedsim.identity import nested, parts_of
from fedsim.registry import units_of
from fedsim.rounds.policies.adaptive import QuantileDeadline
from fedsim.scenario.private_parts import sampling_rate
from fedsim.scenario.scenario import Scenario
from fedsim.scenario.update_numbers import cohort_of
from fedsim.selectors.baselines import All

USUAL: Final = {
    "bandwidth_hz": (1e3, 1e10),
    "carrier_hz": (1e5, 1e12),
    "_bps": (1.0, 1e13),
    "_kbps": (1e-3, 1e10),
    "power_dbm": (-80.0, 90.0),
    "_gain_dbi": (-60.0, 80.0),
    "noise_figure_db": (0.0, 40.0),
    "_m_per_s": (1e-3, 1e4),
    "radius_m": (0.1, 1e8),
    "distance_m": (0.1, 1e8),
    "height_m": (0.1, 1e5),
    "delay_s": (1e-9, 1e5),
    "rtt_s": (1e-6, 1e3),
    "samples_per_s": (1e-6, 1e9),
    "flops_per_s": (1e3, 1e20),
}
"""Least and greatest values of what there is, by the end of a field's name: a thousandfold error mostly leaves them."""

_MOST_UPDATES: Final = 1000
"""Of a client, that are tried on its budget."""


def doubts_of(scenario: Scenario) -> tuple[str, ...]:
    """Return sentences on a scenario that runs, and perhaps not as it is meant; none if there is nothing."""
    return (*_unusual(scenario), *_off(scenario), *_of_rounds(scenario), *_of_budget(scenario))


def _unusual(scenario: Scenario) -> Iterator[str]:
    for path, unit, value in _values(scenario, ""):
        least, greatest = next((USUAL[end] for end in USUAL if path.endswith(end)), (-float("inf"), float("inf")))
        if value and not least <= (value if least <= 0 else abs(value)) <= greatest:
            yield f"{path} = {value:.6g} {unit} is unusual; usual: {least:g} to {greatest:g} {unit}; is the unit right?"


def _values(table: object, path: str) -> Iterator[tuple[str, str, float]]:
    """Yield path, unit and value of each field with a unit; of a list the first value of an unusual size is enough."""
    units = units_of(type(table)) if isinstance(table, BaseModel) else {}
    for name, inner in nested(table):
        where = f"{path}.{name}" if path else name
        if units.get(name):
            several = inner if isinstance(inner, tuple) else (inner,)
            numbers = [one for one in several if isinstance(one, float)]
            yield from ((where, units[name], one) for one in sorted({min(numbers), max(numbers)})) if numbers else ()
        else:
            yield from _values(inner, where)


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
        yield (
            f"privacy.budget pays for {paid} updates of a client: about {paid * clients // cohort} of {rounds} rounds "
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
        yield f"selector.cohort = {cohort} is not used: rounds.policy asks for {asked} clients a round"
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
