"""What every selector must keep to, whoever wrote it."""

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from fedsim.errors import SelectorError
from fedsim.selectors import Selector, SelectorPort
from fedsim.testing.server import AsynchronousServer, Server
from fedsim.testing.trials import Played, Trial


def check_selector(
    selector_or_factory: Selector | Callable[[], Selector], *, clients: int = 40, rounds: int = 30, seed: int = 0
) -> None:
    """Check that a selector keeps the contract of `fedsim.selectors.Selector`; return nothing if it does.

    It is put through crowds that stay, come and go, consist of one or two clients, hold no data or never
    deliver, answer or learn; with and without privacy and feedback, with what its ``needs`` name, with servers that
    ask for few or many, and with asynchronous ones, which may report a client twice. In each of them it must

    * return a valid cohort of the candidates in every round, an empty one when there are none and only then,
    * ask valid questions, if it has a method ``probe``, and get by with the answers of some, or of nobody,
    * leave the arrays that it is shown alone (they are read-only),
    * return the same cohorts and questions again as a fresh copy with the same feedback and the same ``rng``: no
      luck of its own, no clock, no memory shared between copies,
    * not react in rounds up to r when another copy beside it is told something else after round r,
    * get by with what a server knows, unless its class says ``oracle = True``.

    Parameters
    ----------
    selector_or_factory : a selector, deep-copied for each use, or a callable that returns a new one
    clients, rounds : size of the usual trial; both at least 2
    seed : whole number of at least 0

    Raises
    ------
    SelectorError
        Naming the selector, what it did, and the trial and round in which it did it.
    ValueError
        If ``clients`` or ``rounds`` is too small to check anything.
    """
    if clients < 2 or rounds < 2:
        raise ValueError(f"clients and rounds: {clients!r} and {rounds!r} are not allowed; both must be at least 2")
    fresh = _factory(selector_or_factory)
    SelectorPort.of(fresh())  # refuses what is no selector before any round
    trials = (
        Trial("a crowd that stays", clients, features=3),
        Trial("a crowd without privacy", clients, budget=None),
        Trial("clients that come and go", clients, present=0.4, idle_every=3),
        Trial("a crowd of one client", 1, present=0.8),
        Trial("a crowd of two clients", 2, present=0.8),
        Trial("a crowd that never delivers", clients, delivering=0.0),
        Trial("a server that gives no feedback", clients, feedback=False),
        Trial("a crowd without data", clients, samples=False),
        Trial("a run about timing only", clients, learning=False),
        Trial("a server that asks for few or many", clients, wanted=(1, clients, 2, None)),
        Trial("clients that never answer", clients, answering=0.0),
        Trial("an asynchronous server", clients, features=3, wanted=(1,), asynchronous=True),
        Trial("an asynchronous server of two clients", 2, wanted=(1,), asynchronous=True),
    )
    for trial in trials:
        cohorts = _server(trial, seed, fresh).play(rounds)
        _compare(_server(trial, seed, fresh).play(rounds), cohorts, fresh, trial, "differs between two fresh copies")
        _check_side_by_side(trial, seed, fresh, cohorts)


def _factory(selector_or_factory: Selector | Callable[[], Selector]) -> Callable[[], Selector]:
    """Return a callable that makes a selector in its initial state."""
    given: Any = selector_or_factory
    if inspect.isclass(given) or not hasattr(given, "select"):
        if not callable(given):
            raise SelectorError(f"{given!r} is no selector: it has no method select")
        return cast(Callable[[], Selector], given)
    try:
        prototype = copy.deepcopy(given)
    except Exception as error:
        raise SelectorError(
            f"{type(given).__name__} cannot be deep-copied ({error}); hand over a function that makes one"
        ) from error
    return lambda: copy.deepcopy(prototype)


def _server(trial: Trial, seed: int, fresh: Callable[[], Selector]) -> Server:
    return (AsynchronousServer if trial.asynchronous else Server)(trial, seed, fresh())


def _check_side_by_side(trial: Trial, seed: int, fresh: Callable[[], Selector], cohorts: list[Played]) -> None:
    """Play two copies in turn, one of which is told something else after the middle round."""
    middle = (len(cohorts) + 1) // 2
    told_truth, told_lies = _server(trial, seed, fresh), _server(trial, seed, fresh)
    played: list[Played] = []
    misled: list[Played] = []
    for number in range(1, len(cohorts) + 1):
        misled.append(told_lies.play_round(number, tampered=number >= middle))
        played.append(told_truth.play_round(number))
    _compare(misled[:middle], cohorts[:middle], fresh, trial, "depends on feedback of the same or a later round")
    _compare(played, cohorts, fresh, trial, "depends on what another copy is told")


def _compare(
    played: list[Played], expected: list[Played], fresh: Callable[[], Selector], trial: Trial, fault: str
) -> None:
    for number, (one, other) in enumerate(zip(played, expected, strict=True), start=1):
        for method, column, left, right in _pairs(one, other):
            if (left is None) != (right is None) or not np.array_equal(left, right, equal_nan=False):
                thing = "cohort" if method == "select" else "question"
                raise SelectorError(
                    f"{type(fresh()).__name__}.{method}: the {thing}'s {column} {fault}, {left!r} against {right!r} "
                    f"(in the trial with {trial.name}, round {number}); with the same rng and feedback it must "
                    f"give the same {thing}"
                )


def _pairs(one: Played, other: Played) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield method, column and both values of whatever two copies have answered."""
    for column in ("client", "asks", "down_bits", "up_bits", "samples", "wait_s"):
        yield "probe", column, getattr(one.probe, column, None), getattr(other.probe, column, None)
    for column in ("client", "draws", "weights", "work"):
        yield "select", column, getattr(one.cohort, column), getattr(other.cohort, column)
