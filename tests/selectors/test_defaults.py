"""What a selector does without options, number by number as its paper says, and which values it refuses."""

import inspect
import math
import re

import numpy as np
import pytest

from fedsim.selectors import SELECTORS
from tests.support.selector_defaults import DEFAULTS, NEEDED


def held(value):
    """Return what an object holds, all the way down."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: held(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [held(one) for one in value]
    return {"": type(value).__name__, **held(vars(value))} if hasattr(value, "__dict__") else value


@pytest.mark.parametrize("kind", sorted(SELECTORS.builtin))
def test_what_is_left_out(kind):
    made = SELECTORS.load(kind)
    options = inspect.signature(made).parameters.values()
    needed = {option.name: NEEDED[option.name] for option in options if option.default is option.empty}
    given = DEFAULTS.get(kind, {})
    assert {option.name for option in options} == {*needed, *given}
    assert repr(held(made(**needed))) == repr(held(made(**needed, **given)))


NUMBERS = [
    (kind, option)
    for kind, options in DEFAULTS.items()
    for option, value in {**options, "cohort": 1}.items()
    if isinstance(value, int | float) and not isinstance(value, bool) and (kind, option) != ("fedcs", "cohort")
]


def make(kind, **options):
    """Return a selector with these options, and values of those that have no default."""
    made = SELECTORS.load(kind)
    needed = {name: NEEDED[name] for name in NEEDED if name in inspect.signature(made).parameters}
    return made(**{**needed, **options})


@pytest.mark.parametrize(("kind", "option"), NUMBERS)
def test_no_number_is_negative(kind, option):
    with pytest.raises(ValueError, match=f"^{option}.* is not allowed"):
        make(kind, **{option: -1})


# Values other than those below 0, which no number may have.
REFUSED = [
    ("bsfl", {"confidence": "m"}),
    ("clustered-similarity", {"matrix": "round"}),
    ("cpow-d", {"samples": 0}),
    ("cs-ucb", {"cohort": 0, "tau_max_s": 0.0}),
    ("cs-ucb-q", {"tau_max_s": math.inf, "weight": 1.1}),
    ("fedcor", {"interval": 1, "gamma": 0.0, "noise": 0.0, "beta": 1.1, "mean": "one"}),
    ("fedsampling", {"samples": 0, "threshold": 1, "epsilon": 0.0, "alpha": 1.5, "query": "often", "clip": 2}),
    ("fedsampling", {"cohort": 0}),
    ("fedsuv", {"cohort": 0, "basis": 0, "keep": 0, "samples_per_round": 0, "length_scale": -1.0}),
    ("fedsuv", {"rho": 1.1, "delta": 1.0, "ridge": 0.0, "noise": 0.0, "utility_scale": 0.0}),
    ("fedsuv", {"delta": 0.0, "scaling": "log", "kernel": "cubic", "elimination": "all", "fill": "all"}),
    ("fedsuv", {"negative_gain": "abs", "when_disjoint": "union"}),
    ("importance", {"weights": "equal"}),
    ("oort", {"cohort": 0, "window": 0, "blacklist_after": 0, "samples_per_round": 0, "pacer_step_s": 0.0}),
    ("oort", {"exploration": 1.5, "exploration_least": 2.0, "clip": 1.1, "cut_off": 2.0, "blacklist_share": 1.2}),
    ("oort", {"pacer_asked": "always", "silent": "loud"}),
    ("oort-fedscale", {"cohort": 0, "pacer_step": 0, "blacklist_after": 0, "sample_window": 0.5, "clip": 1.5}),
    ("oort-fedscale", {"exploration": 1.5, "silent": "loud"}),
    ("pause", {"cohort": 0, "tau_min_s": 0.0, "beta": 0.5, "gamma": math.inf, "zeta": 0.0, "time_index": "code"}),
    ("pause", {"cohort": True, "tau_min_s": math.nan, "zeta": "3"}),
    ("pause", {"cohort": 2.0}),
    ("pause-enumeration", {"beta": 0.9}),
    ("pause-vanilla-sa", {"start": "warm"}),
    ("pow-d", {"wait_s": 0.0}),
    ("pyramidfl", {"most_more": 99.5, "beta": 1.5, "steps": 0, "until": "end"}),
    ("refl", {"harmonics": 0, "ridge": 0.0, "slot_s": -1.0, "least_share": 1.5}),
    ("refl", {"harmonics": 10**7}),
    ("refl", {"harmonics": 501}),
    ("sa-pause", {"iterations": 0, "kappa": 0.0, "zeta": 0.0}),
    (
        "tifl",
        {
            "improvement": "most",
            "credits": 0,
            "tiers": 0,
            "interval": 0,
            "tries": 0,
            "policy": "quick",
            "timeout_s": 0.0,
        },
    ),
]


@pytest.mark.parametrize(
    ("kind", "option", "value"), [(kind, option, value) for kind, row in REFUSED for option, value in row.items()]
)
def test_a_value_that_is_not_allowed_is_named_with_what_is(kind, option, value):
    with pytest.raises(ValueError, match=rf"^{re.escape(f'{option}: {value!r}')} is not allowed; it must be "):
        make(kind, **{option: value})


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("clustered-similarity", {"matrix": "round"}, "matrix: 'round' .* must be 'paper' or 'reference-code'"),
        ("cs-ucb-q", {"rates": [0.5, 2.0]}, r"rates\[1\]: 2.0 is not allowed; it must be "),
        ("fedsuv", {"rho": 1.1}, "rho: 1.1 is not allowed; it must be at most 1"),
        ("fedsuv", {"delta": 1.0}, "delta: 1.0 is not allowed; it must be below 1"),
        ("fedsuv", {"scaling": "log"}, "scaling: 'log' is not allowed; it must be 'rank' or 'range' or 'none'"),
        ("importance", {"weights": "equal"}, "weights: 'equal' .* must be 'unbiased' or 'samples'"),
        ("pause-genie", {"expected_reward": [0.5, 1.5]}, r"expected_reward\[1\]: 1.5 is not allowed; it must be "),
        ("pause-genie", {"expected_reward": [-0.5]}, r"expected_reward\[0\]: -0.5 is not allowed; it must be "),
        ("refl", {"periods_s": []}, r"periods_s: \[\] is not allowed"),
        ("refl", {"periods_s": [86400.0, 0.0]}, "periods_s: 0.0 is not allowed"),
        ("refl", {"harmonics": 251, "periods_s": [3600.0, 86400.0]}, "harmonics: 251 is not allowed"),
        ("tifl", {"tiers": 3, "policy": "random"}, "policy: 'random'.* is not allowed"),
        *(
            ("tifl", {"tiers": tiers, "probabilities": values}, "probabilities.* is not allowed")
            for tiers, values in ((3, [1.0, 2.0]), (2, [0.0, 0.0]), (2, [-1.0, 2.0]), (2, [1e308, 1e308]))
        ),
        ("tifl", {"tiers": 1, "probabilities": 1}, "probabilities: 1.* is not allowed"),
        ("tifl", {"tiers": 1, "probabilities": "1"}, "probabilities: '1'.* is not allowed"),
    ],
)
def test_values_that_do_not_go_together_are_named(kind, options, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        make(kind, **options)
