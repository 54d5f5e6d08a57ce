"""Uniform, all, the fastest in expectation, and the catalogue they stand in."""

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.selectors import SELECTORS, All, Fastest, Pause, Uniform
from tests.support.families import by_family
from tests.support.views import rng, view_of


@pytest.mark.parametrize("make", [lambda: Uniform(5), lambda: Fastest(5), All, lambda: Pause(5)])
@pytest.mark.parametrize("client", [[], [4], [1, 8, 9], [0, 1, 2, 3, 4]])
def test_candidates_no_more_than_the_cohort_are_all_taken(make, client):
    assert make().select(view_of(client, clients=30, oracle={}), rng()).client.tolist() == client


def test_fastest_takes_the_least_expected_and_lower_ids_first():
    view = view_of([3, 5, 8, 9], oracle={"expected_duration_s": np.array([0.5, 0.2, 0.5, 0.1])})
    assert Fastest(3).select(view, rng()).client.tolist() == [3, 5, 9]


def test_the_oracles_are_known_by_name_and_refuse_the_view_of_a_real_server():
    oracles = {kind for kind in SELECTORS.builtin if SELECTORS.load(kind).oracle}
    assert oracles == {"fastest", "pause-genie", "refl-oracle", "soonest"}
    for kind in oracles:
        with pytest.raises(SelectorError, match="oracle"):
            SELECTORS.make({"kind": kind, "cohort": 1}).build().select(view_of(3), rng())


@pytest.mark.parametrize("kind", ["fedsuv", "oort-fedscale", "pause"])
def test_the_first_cohort_is_drawn_by_the_rng(kind):
    first = [SELECTORS.make({"kind": kind, "cohort": 3}).build() for _ in range(8)]
    cohorts = {tuple(one.select(view_of(20), rng(seed)).client.tolist()) for seed, one in enumerate(first)}
    assert len(cohorts) > 4


@pytest.mark.parametrize("kind", by_family(SELECTORS))
def test_the_catalogue_builds_each_from_a_table_and_back(kind):
    options = {"all": {}, "fedcs": {"deadline_s": 2.0}, "cpow-d": {"cohort": 7, "samples": 10}}
    options |= {
        "fedsampling": {"samples": 9, "threshold": 20},
        "fixed-ratio": {"ratio": 0.25},
        "poisson": {"rate": 0.5},
    }
    table = {"kind": kind, **options.get(kind, {"cohort": 7})}
    recipe = SELECTORS.make(table)
    described = SELECTORS.describe(SELECTORS.make(recipe.build()))
    assert {name: described[name] for name in table} == table
    assert recipe.build() is not recipe.build()


@pytest.mark.parametrize("kind", by_family(SELECTORS))
def test_each_says_where_it_comes_from_and_what_it_costs(kind):
    assert SELECTORS.load(kind).paper
    assert SELECTORS.load(kind).communication


class Own(Uniform):
    first: "Nowhere" = 1  # noqa: F821


def test_a_class_of_ones_own_may_annotate_what_it_likes():
    assert (Own(cohort=2).cohort, Own(cohort=2).first) == (2, 1)
    with pytest.raises(ValueError, match="cohort: 0 is not allowed; it must be a whole number of at least 1"):
        Own(cohort=0)
