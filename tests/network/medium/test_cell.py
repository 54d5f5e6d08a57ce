"""The rules by which a cell's directions are shared, as a scenario describes them."""

import pytest
from pydantic import ValidationError

from fedsim.network import Cell
from fedsim.network.medium.cell import SHARINGS
from fedsim.network.medium.disciplines import FirstCome
from tests.support.media import opened


class Slow(FirstCome):
    """A rule of a user that leaves a share of the bandwidth idle."""

    def __init__(self, busy=1.0):
        super().__init__()
        self.busy = busy

    def rate_hz(self, bandwidth_hz):
        return self.busy * bandwidth_hz


NAMED = f"{__name__}:Slow"
WORDS = ["dedicated", "equal", "proportional-fair", "max-relative-snr", "first-come", "minimum-makespan"]


@pytest.mark.parametrize("named", [*WORDS, "fedsim.network.medium.disciplines:FirstCome"])
def test_a_rule_without_options_is_its_name_however_it_is_written(named):
    for written in (named, {"kind": named}):
        cell = Cell(uplink={"sharing": written})
        assert cell.uplink.sharing == named
        assert cell.model_dump()["uplink"]["sharing"] == named


@pytest.mark.parametrize("written", [Slow(0.25), {"kind": NAMED, "busy": 0.25}], ids=["object", "table"])
def test_a_rule_with_options_is_built_with_them_each_time_anew(written):
    recipe = Cell(uplink={"sharing": written}).uplink.sharing
    built = [SHARINGS.make_recipe(recipe).build() for _ in range(2)]
    assert [rule.rate_hz(8.0) for rule in built] == [2.0, 2.0]
    assert built[0] is not built[1]


def test_an_unknown_rule_is_refused_with_the_names_of_all():
    with pytest.raises(ValidationError) as refused:
        Cell(uplink={"sharing": "fastest"})
    (error,) = refused.value.errors()
    assert (error["loc"], error["type"], error["input"]) == (("uplink", "sharing"), "unknown_kind", "fastest")
    assert error["msg"] == (
        "input should be 'dedicated', 'equal', 'proportional-fair', 'max-relative-snr', 'first-come', "
        "'minimum-makespan', 'rate-fair', 'dcf' or 'module:Class'"
    )


def test_books_are_named_by_direction_and_site():
    cell = Cell(uplink={"sharing": "equal"}, downlink={"sharing": "first-come"})
    medium, _ = opened(cell, [[50.0, 0.0]])
    assert set(medium.books()) == {"downlink of site 0", "uplink of site 0"}
