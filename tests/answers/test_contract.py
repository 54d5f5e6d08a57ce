"""A checker around a part: what passes, what is hidden, and what a refusal says."""

import copy

import numpy as np
import pytest

from fedsim.answers import Contract, Free, InstanceOf, Number, Numbers, PartOf, attributed, same_shape, unchecked
from fedsim.errors import PartError, ScenarioError
from fedsim.network.distributions import LATENCY_LAW, Constant
from fedsim.registry import identity


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
    with pytest.raises(PartError, match=r"^law .*:Lying\.draw returned -1\.0; allowed: .* of at least 0") as caught:
        law.draw(IDS, U)
    assert caught.value.client == 4
    with pytest.raises(PartError, match=r"limit returned -1\.0; allowed: a number of at least 0"):
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
        PartError, match=r"failed with ZeroDivisionError: by zero; where: test_contract\.py, line"
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
    with pytest.raises(PartError, match=r"make returned 3; allowed: a part of type .*Law"):
        maker.checked(type("Mine", (Maker,), {"made": 3})()).make()


def test_an_identity_is_that_of_the_part():
    class Own(Constant):
        pass

    own = Own(value_s=2.0)
    assert identity(LATENCY_LAW.checked(own)) == identity(own)
    assert unchecked(LATENCY_LAW.checked(own)) is own
    assert unchecked(own) is own


def test_what_fails_outside_a_contract_is_attributed_by_its_traceback():
    class Failing:
        def step(self):
            return {}["x"]

    with pytest.raises(KeyError) as caught:
        Failing().step()
    error = attributed(caught.value)
    assert error is not None
    assert "Failing.step failed with KeyError" in str(error)


def test_free_and_instances():
    assert Free()(3, {}) == 3
    assert InstanceOf(int)(3, {}) == 3
