"""Tests of a check of `fedsim.testing`: it lets sound parts pass and refuses broken ones, each for its own fault."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fedsim.errors import ContractError


def passes(check: Callable[..., None], sound: Iterable[Any], **options: Any) -> Callable[[Any], None]:
    @pytest.mark.parametrize("part", sound, ids=_name)
    def test(part: Any) -> None:
        assert check(part, **options) is None

    return test


def refuses(
    check: Callable[..., None], broken: Iterable[Any], error: type[Exception] = ContractError, **options: Any
) -> Callable[[Any, str], None]:
    """Return the test that parts are refused, each with a pattern of what is said."""

    @pytest.mark.parametrize(("part", "fault"), broken, ids=_name)
    def test(part: Any, fault: str) -> None:
        with pytest.raises(error, match=fault):
            check(part, **options)

    return test


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
