"""What a selector does without options, number by number as its paper says, and refusals in words.

What each option refuses by itself is frozen (`test_frozen_cohorts.py`).
"""

import inspect

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


def make(kind, **options):
    """Return a selector with these options, and values of those that have no default."""
    made = SELECTORS.load(kind)
    needed = {name: NEEDED[name] for name in NEEDED if name in inspect.signature(made).parameters}
    return made(**{**needed, **options})


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("cs-ucb-q", {"rates": [0.5, 2.0]}, r"rates\[1\]: 2.0 is not allowed; it must be "),
        ("fedsuv", {"scaling": "log"}, "scaling: 'log' is not allowed; it must be 'rank' or 'range' or 'none'"),
        ("pause-genie", {"expected_reward": [0.5, 1.5]}, r"expected_reward\[1\]: 1.5 is not allowed; it must be "),
        ("refl", {"harmonics": 251, "periods_s": [3600.0, 86400.0]}, "harmonics: 251 is not allowed"),
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
