"""What Flower's strategies do: their evaluations, the curve of a run, and the weights of the replies that they use.

A strategy with an ``evaluate_fn`` evaluates at the server, and that is the curve. Without one it is the aggregate of
what the nodes report.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final
from unittest.mock import patch

from flwr.app import Message, RecordDict
from flwr.serverapp.strategy import Strategy
from flwr.serverapp.strategy.strategy_utils import aggregate_arrayrecords

Evaluated = Callable[[Mapping[str, Any]], None]
"""Takes the metrics of an evaluation at the instant at which it is made."""


Weighed = Callable[[Mapping[int, float]], None]
"""Takes the weight of each node's reply as a strategy aggregates it; 0 of one that it has not used."""
_AVERAGE: Final = "flwr.serverapp.strategy.fedavg.aggregate_arrayrecords"


@contextmanager
def watched_strategies(evaluated: Evaluated, weighed: Weighed) -> Iterator[None]:
    """Pass on the metrics of every evaluation of a strategy, and the weights of the replies that it aggregates."""
    averages: list[list[float]] = []

    def average(records: list[RecordDict], key: str) -> Any:
        averages.append([float(next(iter(record.metric_records.values()))[key]) for record in records])
        return aggregate_arrayrecords(records, key)

    def watching(aggregate: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(aggregate)
        def aggregating(server_round: int, replies: Iterable[Message]) -> Any:
            received = list(replies)
            averages.clear()
            result = aggregate(server_round, received)
            weighed(_weights(received, averages[-1] if averages else []))
            return result

        return aggregating

    with patch.object(Strategy, "start", _start(Strategy.start, evaluated, watching)), patch(_AVERAGE, average):
        yield


def _weights(replies: list[Message], weights: list[float]) -> dict[int, float]:
    """Return the share of each node's reply in an aggregate, an equal one where it is no weighted average."""
    valid = [reply for reply in replies if not reply.has_error()]
    if len(weights) != len(valid) or sum(weights) <= 0:
        weights = [1.0] * len(valid)
    found = {reply.metadata.src_node_id: 0.0 for reply in replies}
    for reply, weight in zip(valid, weights, strict=True):
        found[reply.metadata.src_node_id] = weight / sum(weights)
    return found


def _start(
    start: Callable[..., Any], evaluated: Evaluated, watching: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """Return `Strategy.start` whose ``evaluate_fn``, or else whose aggregation of evaluations, passes metrics on."""
    signature = inspect.signature(start)

    @wraps(start)
    def watched(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        strategy, evaluate = bound.arguments["self"], bound.arguments.get("evaluate_fn")
        of_nodes = strategy.aggregate_evaluate
        if evaluate is not None:
            bound.arguments["evaluate_fn"] = _passing_on(evaluate, evaluated)
        else:
            of_nodes = _passing_on(of_nodes, evaluated)
        with (
            patch.object(strategy, "aggregate_train", watching(strategy.aggregate_train)),
            patch.object(strategy, "aggregate_evaluate", of_nodes),
        ):
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
