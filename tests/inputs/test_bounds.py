"""Every number of every kind of the catalogues has bounds: what no device and no network has is refused, by name."""

import inspect
import typing

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from fedsim.cli.kinds import catalogues
from fedsim.errors import ScenarioError
from fedsim.inputs.bounds import LATEST_S, MOST_PAIRS, check_pairs, out_of_bounds
from fedsim.network.radio.fading import Rayleigh
from fedsim.registry import Component, Settings
from fedsim.scenario import Scenario
from fedsim.selectors import SELECTORS
from fedsim.units import LONGEST_S, SECONDS, Seconds
from tests.golden import scenarios as golden
from tests.support.families import by_family

TINY = 5e-324
CATALOGUES = catalogues()


def flat(annotation):
    if not (inner := typing.get_args(annotation)):
        yield annotation
    for each in inner:
        yield from flat(each)


def tables():
    """Return every class of settings: of the catalogues but for selectors, and the tables within them."""
    found, waiting = set(), [Scenario]
    for name, catalogue in CATALOGUES.items():
        waiting += [catalogue.load(kind) for kind in catalogue.builtin if name not in ("executors", "selectors")]
    while waiting:
        table = waiting.pop()
        if inspect.isclass(table) and issubclass(table, BaseModel) and table not in found:
            found.add(table)
            waiting += [each for field in table.model_fields.values() for each in flat(field.annotation)]
    return sorted(found, key=lambda table: (table.__module__, table.__qualname__))


def numbers(table):
    return [
        name for name, field in table.model_fields.items() if {int, float} & set(flat(field.annotation)) - {tuple, dict}
    ]


def test_every_table_checks_its_bounds():
    assert len(tables()) > 100
    assert not [table for table in tables() if not issubclass(table, Settings)]


def test_whatever_is_enormous_is_refused_in_every_field_that_can_be_set_alone():
    """Required numbers are 1 here; a table that needs more than that is left to the test of scenarios."""
    tried = 0
    for table in tables():
        required = {
            name: 1 if int in set(flat(table.model_fields[name].annotation)) else 1.0
            for name in numbers(table)
            if table.model_fields[name].is_required()
        }
        try:
            table(**required)
        except (ValidationError, ScenarioError, TypeError):  # the last from abstract classes
            continue
        for name in numbers(table):
            whole = float not in set(flat(table.model_fields[name].annotation))
            for value in [2**70, -(2**70)] if whole else [1e300, -1e300]:
                with pytest.raises(ValidationError) as caught:
                    table(**{**required, name: value})
                assert caught.value.errors()[0]["loc"][0] == name
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("kind", by_family(SELECTORS))
def test_whatever_is_enormous_is_refused_in_every_option_of_a_selector(kind):
    options = golden.selector(kind, golden.ALL_SELECTORS.get(kind, [{}])[0])
    hints = typing.get_type_hints(SELECTORS.load(kind).__init__)
    for name, annotation in hints.items():
        kinds = set(flat(annotation))
        if {int, float} & kinds and str not in kinds:
            for value in (2**70, 1e300):
                with pytest.raises((ValidationError, PydanticCustomError)) as caught:
                    SELECTORS.make({**options, name: value})
                assert name in str(caught.value)


def test_tiny_times_are_refused_and_zero_is_left_to_the_field():
    with pytest.raises(ValidationError, match="absolute values from 1e-06 to 1e"):
        Rayleigh(coherence_s=TINY)
    with pytest.raises(ValidationError, match="greater than 0"):
        Rayleigh(coherence_s=0.0)


def test_numbers_in_lists_are_found():
    assert out_of_bounds((1.0, (2.0, 1e11)), SECONDS)[0] == 1e11
    assert out_of_bounds((1.0, True, "1e99", None), SECONDS) is None


class Own(Component):
    wait_s: Seconds = 1.0
    pause_s: float = 1.0
    factor: float = 1.0
    number: int = 1


def test_parts_of_the_users_own_are_bound_by_the_units_of_their_types_alone():
    assert Own(factor=1e200, pause_s=1e200, number=10**15).factor == 1e200
    with pytest.raises(ValidationError, match="wait_s"):
        Own(wait_s=1e200)
    with pytest.raises(ValidationError, match="number"):
        Own(number=2**63)


def test_pairs():
    check_pairs(MOST_PAIRS, 1, ScenarioError)
    with pytest.raises(ScenarioError, match="100000000 clients and 7 sites"):
        check_pairs(10**8, 7, ScenarioError)


def test_a_clock_of_64_bits_tells_thousandths_of_a_second_apart_at_its_end():
    assert np.spacing(LATEST_S) < 1e-3
    assert np.spacing(LONGEST_S) < 2e-6
