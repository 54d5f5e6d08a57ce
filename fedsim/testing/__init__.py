"""Contract checks for parts of your own, each a function that raises an error at the first fault.

`check_selector` runs a selector in rounds with a small synthetic server::

    from fedsim.testing import check_selector

    def test_my_selector():
        check_selector(MySelector(cohort=5))

Names load when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedsim.testing.selectors import check_selector

_PLACES = {
    "check_selector": "fedsim.testing.selectors",
}

__all__ = ["check_selector"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fedsim.testing' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
