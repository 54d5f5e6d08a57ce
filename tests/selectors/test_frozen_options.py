"""Every option of every selector takes and refuses the same values as yesterday, in the same words."""

import inspect
import math

import pytest

from fedsim.selectors import SELECTORS
from tests.support.frozen_answers import check_frozen
from tests.support.selector_defaults import DEFAULTS, NEEDED

VALUES = (
    *(-1, 0, 1, 2, True, -0.5, 0.0, 1e-9, 0.5, 1.0, 1.0 + 1e-9, math.nan, math.inf, None),
    *("x", [], [0.5], [0.5, 0.5], [0.0, 1.0], [-0.1, 1.1], [math.nan, 1.0]),
)


@pytest.mark.parametrize("kind", sorted(SELECTORS.builtin))
def test_options_are_taken_and_refused_as_before(kind):
    made = SELECTORS.load(kind)
    needed = {name: NEEDED[name] for name in NEEDED if name in inspect.signature(made).parameters}
    found = {}
    for option in sorted({*needed, *DEFAULTS.get(kind, {})}):
        said = found.setdefault(option, {})
        for value in VALUES:
            try:
                made(**{**needed, option: value})
                words = "taken"
            except (ValueError, TypeError) as error:
                words = str(error).replace(f": {value!r} is", ": it is")
            said.setdefault(words, []).append(repr(value))
    check_frozen("options", kind, found)
