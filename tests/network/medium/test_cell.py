"""The rules by which a cell's directions are shared, as a scenario describes them."""

import pytest
from pydantic import ValidationError

from fedsim.network import Cell
from fedsim.network.medium.cell import SHARINGS
from fedsim.network.medium.delayed import Delay
from fedsim.network.medium.disciplines import FirstCome
from tests.support.media import ends_of, opened


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
    built = [SHARINGS.make(recipe).build() for _ in range(2)]
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


@pytest.mark.parametrize("read", ["mean", "drawn"])
def test_a_transfer_that_waits_joins_as_late_as_one_that_is_sent_later_and_not_at_all_if_it_is_cancelled(read):
    """Client 1 is cancelled while it waits, so that the transfers of clients 0 and 2 share the band alone."""
    cell = Cell(uplink={"sharing": "equal", "fading_in_shares": read})
    ends = []
    for waits in (True, False):
        medium, env = opened(cell, [[50.0, 0.0], [60.0, 0.0], [70.0, 0.0]])
        wait, sent = Delay(env, 0.5), {}
        if waits:
            sent = {client: medium.start_after(wait, 1, client, 1e6) for client in range(3)}
            env.run(until=0.25)
            sent[1].cancel()
            assert (sent[0].sent_bits(), sent[0].queued_s()) == (0, 0)
            env.run(until=0.6)
        else:
            env.run(until=0.5)
            sent = {client: medium.uplink(client, 1e6) for client in (0, 2)}
        ends.append(ends_of(env, sent))
        env.run()
    assert ends[0] == ends[1]
    assert set(ends[0]) == {0, 2}
