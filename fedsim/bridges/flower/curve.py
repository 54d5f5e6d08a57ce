"""The evaluations of Flower's strategies, as they are made: the curve of a run.

A strategy with an ``evaluate_fn`` evaluates at the server, and that is the curve. Without one it is the aggregate of
what the nodes report.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from flwr.serverapp.strategy import Strategy

Evaluated = Callable[[Mapping[str, Any]], None]
"""Takes the metrics of an evaluation at the instant at which it is made."""


@contextmanager
def watched_evaluations(evaluated: Evaluated) -> Iterator[None]:
    """Pass on the metrics of every evaluation of a strategy."""
    with patch.object(Strategy, "start", _start(Strategy.start, evaluated)):
        yield


def _start(start: Callable[..., Any], evaluated: Evaluated) -> Callable[..., Any]:
    """Return `Strategy.start` whose ``evaluate_fn``, or else whose aggregation of evaluations, passes metrics on."""
    signature = inspect.signature(start)

    @wraps(start)
    def watched(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        strategy, evaluate = bound.arguments["self"], bound.arguments.get("evaluate_fn")
        if evaluate is not None:
            bound.arguments["evaluate_fn"] = _passing_on(evaluate, evaluated)
            return start(*bound.args, **bound.kwargs)
        with patch.object(strategy, "aggregate_evaluate", _passing_on(strategy.aggregate_evaluate, evaluated)):
            return start(*bound.args, **bound.kwargs)

    return watched


def _passing_on(function: Callable[..., Any], evaluated: Evaluated) -> Callable[..., Any]:
    @wraps(function)
    def passing_on(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if result:
            evaluated(dict(result))
        return result

    return passing_on
