"""Every selector of the catalogue keeps the contract."""

import pytest

from fedsim.selectors import SELECTORS
from fedsim.testing import check_selector

OPTIONS = {
    "bsfl": [{"cohort": 5}, {"cohort": 3, "confidence": "crowd"}],
    "clustered-similarity": [
        {"cohort": 5},
        {"cohort": 3, "similarity": "manhattan", "matrix": "reference-code"},
        {"cohort": 4, "similarity": "squared-euclidean"},
    ],
    "cpow-d": [{"cohort": 5, "samples": 10}],
    "cs-ucb-q": [{"cohort": 5}, {"cohort": 3, "weight": 1.0, "promise": 1.0}],
    "divfl": [
        {"cohort": 5},
        {"cohort": 4, "start": "in-turn", "weights": "represented"},
        {"cohort": 6, "start": "zero", "subset": 7, "refresh_every": 5},
    ],
    "fastest": [{"cohort": 5}],
    "fedcs": [{"deadline_s": 3.0}, {"deadline_s": 1.0, "share": 0.5, "uploads": "parallel"}, {"deadline_s": 0.01}],
    "fedsuv": [
        {"cohort": 5},
        {"cohort": 3, "utility_scale": 1.0, "scaling": "none", "elimination": "cap", "negative_gain": "keep"},
        {"cohort": 2, "basis": 3, "kernel": "matern52", "fill": "none", "when_disjoint": "collapse", "rho": 0.9},
    ],
    "importance": [{"cohort": 5}, {"cohort": 4, "draw": "systematic", "weights": "samples", "floor": 0.0}],
    "loss-proportional": [{"cohort": 5}, {"cohort": 3, "data_exponent": 0.5}],
    "oort": [{"cohort": 5}, {"cohort": 4, "window": 2, "pacer_step_s": 0.2, "blacklist_after": 3, "silent": "mean"}],
    "oort-fedscale": [{"cohort": 5}, {"cohort": 4, "pacer_step": 2, "blacklist_after": 3, "silent": "zero"}],
    "pause": [{"cohort": 5}, {"cohort": 3, "time_index": "reference-code", "beta": 1.0, "zeta": 3.0}],
    "pause-enumeration": [{"cohort": 2}],
    "pause-vanilla-sa": [{"cohort": 5, "iterations": 30}],
    "pow-d": [{"cohort": 5}, {"cohort": 3, "candidates": 12, "weights": "samples"}, {"cohort": 5, "candidates": 1}],
    "refl": [{"cohort": 5}, {"cohort": 8, "hold_off": 1, "adaptive_target": True, "slot_s": 1.0}],
    "refl-oracle": [{"cohort": 5}, {"cohort": 8, "rule": "reference-code", "adaptive_target": True}],
    "rpow-d": [{"cohort": 5}, {"cohort": 3, "candidates": 12}],
    "sa-pause": [{"cohort": 5, "iterations": 30}, {"cohort": 3, "iterations": 30, "start": "last", "kappa": 1.0}],
    "tifl": [
        {"cohort": 5},
        {"cohort": 3, "interval": 2, "credits": 2, "timeout_s": 1.0, "tries": 2},
        {"cohort": 4, "profiling": "rounds", "policy": "random"},
        {"cohort": 4, "tiers": 2, "policy": "slow"},
        {"cohort": 4, "tiers": 2, "probabilities": [0.9, 0.1]},
    ],
    "uniform": [{"cohort": 1}, {"cohort": 5}, {"cohort": 1000}],
    "weighted": [{"cohort": 5}, {"cohort": 1000, "weights": "samples"}],
}
CASES = [(kind, options) for kind in sorted(SELECTORS.builtin) for options in OPTIONS.get(kind, [{"cohort": 5}])]


def build(kind, options):
    taken = {name: value for name, value in options.items() if name in SELECTORS.option_names(kind)}
    return SELECTORS.make_recipe({"kind": kind, **taken}).build()


@pytest.mark.parametrize(("kind", "options"), CASES, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(CASES)])
def test_selector_keeps_the_contract(kind, options):
    check_selector(build(kind, options), seed=1)
    check_selector(lambda: build(kind, options), clients=7, rounds=12, seed=2)
