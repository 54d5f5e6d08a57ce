"""What a selector does without options: what its page and the paper of its method say, number by number."""

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


NUMBERS = [
    (kind, option)
    for kind, options in DEFAULTS.items()
    for option, value in {**options, "cohort": 1}.items()
    if isinstance(value, int | float) and not isinstance(value, bool) and (kind, option) != ("fedcs", "cohort")
]


@pytest.mark.parametrize(("kind", "option"), NUMBERS)
def test_no_number_is_negative(kind, option):
    made = SELECTORS.load(kind)
    needed = {name: NEEDED[name] for name in NEEDED if name in inspect.signature(made).parameters}
    with pytest.raises(ValueError, match=f"^{option}.* is not allowed"):
        made(**{**needed, option: -1})
