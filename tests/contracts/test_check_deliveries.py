"""The check of rounds without a delivery: what it refuses, what it lets pass, and why."""

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.selectors import SELECTORS, FedSuv, SelectorInfo, Uniform
from fedsim.testing.selector import refuse_stalling


class NeverTried:
    """Prefers clients without a delivery, whether they were tried or not: the fault itself."""

    def select(self, view, rng):
        return view.client[np.lexsort((rng.random(view.client.size), ~np.isnan(view.last_duration_s)))[:5]]

    def observe(self, reports):
        pass


class Excused(NeverTried):
    may_stall = "the test says so"


def test_a_selector_that_asks_the_same_silent_clients_for_ever_is_refused():
    fault = (
        r"^NeverTried\.select left 40 of the last 40 rounds without a delivery, where uniform cohorts of the same "
        r"sizes leave 0\.9; .* may_stall says why \(in the trial with a crowd of which half never delivers\)"
    )
    with pytest.raises(SelectorError, match=fault):
        refuse_stalling(NeverTried, clients=40, rounds=60, seed=0)


def test_a_reason_is_enough_and_what_it_is_must_be_a_phrase():
    refuse_stalling(Excused, clients=40, rounds=60, seed=0)
    assert SelectorInfo.of(Excused).may_stall == "the test says so"
    Excused.may_stall, reason = True, Excused.may_stall
    try:
        with pytest.raises(SelectorError, match=r"Excused\.may_stall: True is not allowed"):
            SelectorInfo.of(Excused)
    finally:
        Excused.may_stall = reason


@pytest.mark.parametrize("cohort", [1, 3, 40])
def test_uniform_cohorts_pass_whatever_their_size(cohort):
    for seed in range(2):
        refuse_stalling(lambda: Uniform(cohort), clients=40, rounds=30, seed=seed)


def test_what_was_mended():
    """FedSUV without observations of undelivered clients says why it stalls, and by default it need not."""
    assert "optimistic utility" in FedSuv(5, undelivered="nothing").may_stall
    for kind in ("fedsuv", "oort"):
        make = SELECTORS.make({"kind": kind, "cohort": 5}).build
        assert make().may_stall == ""
        refuse_stalling(make, clients=40, rounds=60, seed=3)
