"""How wrong values are told: by the path of the field, and shortly where a table holds arrays."""

from typing import Any

import numpy as np
import pytest

from fedsim.errors import ScenarioError
from tests.support.short_runs import of_learning


def refusal_of(**learning: Any) -> str:
    data = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 3
    with pytest.raises(ScenarioError) as refused:
        of_learning({"data": data, "model": {"hidden": [3]}, **learning})
    return str(refused.value)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("compression", {"kind": "top-k", "share": 0.5}, "learning.compression: 'top-k' is not allowed with"),
        ("aggregation", "median", "learning.aggregation: 'median' is not allowed with"),
        ("local", {"keep_optimizer_state": True}, "learning.local.keep_optimizer_state: True is not allowed with"),
    ],
)
def test_a_field_that_does_not_go_with_another_is_named_without_the_data(field: str, value: Any, path: str) -> None:
    algorithm = "heterofl" if field == "local" else "scaffold"
    words = refusal_of(algorithm=algorithm, **{field: value})
    assert words.startswith(path)
    assert "array" not in words


def test_a_value_with_an_array_is_told_in_one_line() -> None:
    words = refusal_of(allow_empty=np.ones((30, 30)))
    assert words.startswith("learning.allow_empty: array([[1., ")
    assert "\n" not in words
