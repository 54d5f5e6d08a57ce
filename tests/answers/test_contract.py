"""A checker around a part: what passes, what is hidden, and what a refusal says."""

import copy

import numpy as np
import pytest

from fedsim.answers import (
    Contract,
    Number,
    Numbers,
    PartOf,
    attributed,
    attributing,
    same_shape,
    shaped,
    unchecked,
)
from fedsim.errors import PartError, ScenarioError
from fedsim.identity import identity
from fedsim.network.distributions import LATENCY_LAW, Constant


class Law:
    """The protocol of the tests, with a method that calls another one."""

    limit: float = 1.0

    def draw(self, client, u):
        raise NotImplementedError

    def twice(self, client, u):
        return 2 * self.draw(client, u)


class Honest(Law):
    other = "free"

    def draw(self, client, u):
        return u


class Lying(Honest):
    limit = -1.0

    def draw(self, client, u):
        return -np.ones(u.size)


MEMBERS = {"limit": Number(least=0), "draw": Numbers(same_shape("u"), least=0), "twice": Numbers(same_shape("u"))}
LAW = Contract("law", Law, MEMBERS, inherited=("twice",))
IDS, U = np.array([4, 7]), np.array([0.5, 0.25])


def test_an_honest_part_answers_as_before():
    law = LAW.checked(Honest())
    assert (law.limit, law.other) == (1.0, "free")
    assert law.draw(IDS, U).tolist() == law.draw(client=IDS, u=U).tolist() == [0.5, 0.25]
    assert (law == LAW.checked(Honest())) is False
    assert hash(law) == hash(unchecked(law))
    assert copy.deepcopy(law).draw(IDS, U).tolist() == [0.5, 0.25]


def test_fedsims_own_part_is_returned_as_it_is():
    own = Constant(value_s=1.0)
    assert LATENCY_LAW.checked(own) is own


def test_a_lie_names_part_value_and_client():
    law = LAW.checked(Lying())
    with pytest.raises(PartError, match=r"^law .*:Lying\.draw returned -1\.0\n  allowed: .* of at least 0") as caught:
        law.draw(IDS, U)
    assert caught.value.client == 4
    with pytest.raises(PartError, match=r"limit returned -1\.0\n  allowed: a number of at least 0"):
        _ = law.limit
    caught.value.place(3, 1.5)
    caught.value.place(9, 9.0)
    assert str(caught.value).splitlines()[2:] == ["  client: 4", "  round: 3", "  simulated second: 1.5"]
    again = type(caught.value)(*caught.value.args)
    assert str(again) == str(caught.value), "SimPy makes copies of errors from their arguments"


def test_arguments_cannot_be_written():
    class Writing(Honest):
        def draw(self, client, u):
            client[0] = 9
            return u

    with pytest.raises(PartError, match="failed with ValueError: assignment destination is read-only"):
        LAW.checked(Writing()).draw(IDS, U)
    assert IDS[0] == 4


def test_errors_of_fedsim_pass_and_others_become_the_cause():
    class Refusing(Honest):
        error: BaseException

        def draw(self, client, u):
            raise self.error

    part = Refusing()
    law = LAW.checked(part)
    part.error = ScenarioError("no")
    with pytest.raises(ScenarioError, match=r"^no$"):
        law.draw(IDS, U)
    part.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        law.draw(IDS, U)
    part.error = ZeroDivisionError("by zero")
    with pytest.raises(
        PartError, match=r"failed with ZeroDivisionError: by zero\n  where: test_contract\.py, line"
    ) as caught:
        law.draw(IDS[:1], U[:1])
    assert caught.value.__cause__ is part.error
    assert caught.value.client == 4, "a call about one client names it"


def test_parts_of_parts_are_checked_too():
    class Maker:
        made = Lying()

        def make(self):
            return self.made

    maker = Contract("maker", Maker, {"make": PartOf(Law, LAW)})
    made = maker.checked(Maker()).make()
    with pytest.raises(PartError, match="draw returned"):
        made.draw(IDS, U)
    with pytest.raises(PartError, match=r"make returned 3\n  allowed: a part of type .*Law"):
        maker.checked(type("Mine", (Maker,), {"made": 3})()).make()


def test_an_identity_is_that_of_the_part():
    class Own(Constant):
        pass

    own = Own(value_s=2.0)
    assert identity(LATENCY_LAW.checked(own)) == identity(own)
    assert unchecked(LATENCY_LAW.checked(own)) is own
    assert unchecked(own) is own


def test_a_call_about_many_clients_names_the_first_of_them_and_how_many():
    class Failing(Honest):
        def draw(self, client, u):
            raise KeyError("price")

    law = LAW.checked(Failing())
    many = np.arange(10, 30)
    with pytest.raises(PartError) as caught:
        law.draw(many, np.zeros(20))
    assert str(caught.value).splitlines()[2] == "  client: one of 20: 10, 11, 12, 13, 14, ..."
    again = type(caught.value)(*caught.value.args)
    assert str(again) == str(caught.value)
    caught.value.rename_clients(np.arange(100, 200))
    assert caught.value.clients == (110, 111, 112, 113, 114)


def test_what_happens_before_a_run_has_five_lines_too():
    text = str(PartError("part.member failed", "where: file.py, line 1, in member")).splitlines()
    assert text[2:] == [
        "  client: none is named in the call",
        "  round: before the first",
        "  simulated second: none, the clock has not begun",
    ]


@pytest.mark.parametrize(
    ("answer", "client"),
    [
        (np.array([[0.0, 1.0], [2.0, -1.0]]), 7),  # the second row is wrong
        (np.array([[0.0, 1.0], [2.0, 3.0]]), None),
        (np.array([[np.nan, 1.0], [2.0, -1.0]]), 4),
    ],
)
def test_a_wrong_row_of_a_table_names_its_client(answer, client):
    class Pairs:
        def pairs(self, client): ...

    class Mine:
        def pairs(self, client):
            return answer

    part = Contract("pairs", Pairs, {"pairs": Numbers(shaped("client", 2), least=0)}).checked(Mine())
    if client is None:
        assert part.pairs(IDS).tolist() == answer.tolist()
        return
    with pytest.raises(PartError) as caught:
        part.pairs(IDS)
    assert caught.value.client == client


def test_what_fails_outside_a_contract_is_attributed_by_its_traceback():
    class Failing:
        def step(self):
            return {}["x"]

    with pytest.raises(KeyError) as caught:
        Failing().step()
    error = attributed(caught.value)
    assert error is not None
    assert "Failing.step failed with KeyError" in str(error)


def test_a_method_of_a_class_is_attributed_to_the_class_and_fedsims_own_to_none():
    class Failing:
        @classmethod
        def made(cls):
            return 1 // 0

    with pytest.raises(PartError, match=r"Failing\.made failed with ZeroDivisionError"), attributing():
        Failing.made()
    with pytest.raises(ZeroDivisionError), attributing():
        divmod(1, 0)
    with pytest.raises(ScenarioError), attributing():
        raise ScenarioError("no")
