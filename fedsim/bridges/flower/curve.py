"""The evaluations of Flower's strategies, as they are made: the curve of a run.

A strategy with an ``evaluate_fn`` evaluates at the server, and that is the curve. Without one it is the aggregate of
what the nodes report.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from flwr.server.server import Server
from flwr.serverapp.strategy import Strategy

Evaluated = Callable[[Mapping[str, Any]], None]
"""Is told the metrics of an evaluation at the instant at which it is made."""


@contextmanager
def watched_evaluations(evaluated: Evaluated) -> Iterator[None]:
    """Tell of every evaluation of a strategy, of Flower's present kind and of its older one."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(Strategy, "start", _start(Strategy.start, evaluated)))
        stack.enter_context(patch.object(Server, "fit", _fit(Server.fit, evaluated)))
        yield


def _start(start: Callable[..., Any], evaluated: Evaluated) -> Callable[..., Any]:
    """Return `Strategy.start` with an ``evaluate_fn``, or an aggregation of evaluations, that tells of its results."""
    signature = inspect.signature(start)

    @wraps(start)
    def watched(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        strategy, evaluate = bound.arguments["self"], bound.arguments.get("evaluate_fn")
        if evaluate is not None:
            bound.arguments["evaluate_fn"] = _telling(evaluate, evaluated, dict)
            return start(*bound.args, **bound.kwargs)
        with patch.object(strategy, "aggregate_evaluate", _telling(strategy.aggregate_evaluate, evaluated, dict)):
            return start(*bound.args, **bound.kwargs)

    return watched


def _fit(fit: Callable[..., Any], evaluated: Evaluated) -> Callable[..., Any]:
    """Return `Server.fit` with a strategy that tells of its evaluations: at the server, or else of the nodes."""

    @wraps(fit)
    def watched(server: Any, *args: Any, **kwargs: Any) -> Any:
        strategy, central = server.strategy, False

        def at_server(result: Any) -> Mapping[str, Any]:
            nonlocal central
            central = True
            return _older(result)

        def of_nodes(result: Any) -> Mapping[str, Any]:
            return {} if central or result[0] is None else _older(result)

        with ExitStack() as stack:
            for name, metrics in (("evaluate", at_server), ("aggregate_evaluate", of_nodes)):
                stack.enter_context(patch.object(strategy, name, _telling(getattr(strategy, name), evaluated, metrics)))
            return fit(server, *args, **kwargs)

    return watched


def _telling(
    function: Callable[..., Any], evaluated: Evaluated, metrics: Callable[[Any], Mapping[str, Any]]
) -> Callable[..., Any]:
    """Return a function that tells of the metrics in what another one returns, if there are any."""

    @wraps(function)
    def telling(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        found = metrics(result) if result is not None else {}
        if found:
            evaluated(found)
        return result

    return telling


def _older(result: tuple[float, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return loss and metrics as older strategies give them as one mapping."""
    loss, metrics = result
    return {"loss": loss, **metrics}
