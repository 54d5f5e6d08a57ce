"""The options of a constructor: their types, their defaults, and what is refused."""

import pytest
from pydantic import ValidationError

from fedsim.registry import parameters_of, table_of


class Plain:
    pass


class Part:
    def __init__(self, share: float, *names: str, size: int = 3, **others: object) -> None:
        pass


class Unknown:
    def __init__(self, part: "Nowhere" = None):  # noqa: F821
        pass


def made(clients: int) -> Part:
    return Part(1.0, size=clients)


def test_named_parameters_with_their_types_and_defaults():
    """Those without a name of their own cannot be options of a table."""
    assert parameters_of(Part) == {"share": (float, ...), "size": (int, 3)}
    assert parameters_of(made) == {"clients": (int, ...)}
    assert parameters_of(Plain) == {}


def test_a_type_that_is_nowhere_allows_every_value():
    assert table_of("part", Unknown)(part="x").part == "x"


@pytest.mark.parametrize("options", [{}, {"share": "1"}, {"share": float("nan")}, {"share": 1.0, "width": 2}])
def test_a_table_is_strict(options):
    with pytest.raises(ValidationError, match="1 validation error for part"):
        table_of("part", Part)(**options)
