"""Views that stay as they are."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.rounds import Knowledge
from fedsim.selectors import RoundView


def snapshot(view: RoundView, features: FloatArray) -> RoundView:
    """Return copies of the columns of a view, those made at request included."""
    columns: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(RoundView)}
    copied = {name: _copy(value) for name, value in columns.items() if isinstance(value, np.ndarray)}
    made = {name: _copy(make()) for name, make in view.at_request.items()}
    at_request = {name: (lambda column=column: column.copy()) for name, column in made.items()}
    whole = {**columns, **copied, "features": _copy(features[view.client]), "at_request": at_request}
    return RoundView(**whole)


def no_candidates(knowledge: Knowledge, number: int, time_s: float) -> RoundView:
    return replace(knowledge.view(number, time_s, np.zeros(0, dtype=np.int64)), at_request={})


def _copy(column: Any) -> Any:
    copied = np.array(column)
    copied.flags.writeable = False
    return copied
