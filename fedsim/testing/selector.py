"""Check that a selector keeps the contract."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import numpy as np
from scipy.stats import hypergeom

from fedsim.errors import SelectorError
from fedsim.selectors import Selector, SelectorInfo, SelectorPort
from fedsim.testing.examination import alike, at_least_two, maker
from fedsim.testing.server import Answered, AsynchronousServer, Server, Trial

_NAME: Final = "a crowd of which half never delivers"
_SPREAD: Final = 4.0
"""Standard deviations above the number that uniform cohorts would leave empty."""


def check_selector(
    selector_or_factory: Selector | Callable[[], Selector], *, clients: int = 40, rounds: int = 30, seed: int = 0
) -> None:
    """Check that a selector keeps the contract of `fedsim.selectors.Selector`; return nothing if it does.

    The attributes are checked as by `fedsim.selectors.SelectorPort`. Then the selector runs in trials: crowds of
    constant and of varying availability, of one or two clients, without data, deliveries, answers or learning; with and
    without privacy and reports; servers that ask for few or many clients; asynchronous servers, which may report a
    client twice. In each trial the selector must

    * return a valid cohort of the candidates in every round, an empty one only without candidates,
    * ask valid questions, if it has a method ``probe``, and work with some answers and with none,
    * not change the arrays of a view, which are read-only,
    * return the same cohorts and questions as a fresh copy with the same reports and the same ``rng``: no random
      generator of its own, no clock, no memory shared between copies,
    * not react in rounds up to r to different reports that another copy gets after round r,
    * work with a server's knowledge, unless its class has ``oracle = True``,
    * leave few rounds without a delivery where half of the crowd never delivers, unless its
      ``may_stall`` says why not.

    Parameters
    ----------
    selector_or_factory : a selector, deep-copied for each use, or a callable that returns a new one
    clients, rounds : size of the usual trial; both at least 2
    seed : whole number of at least 0

    Raises
    ------
    SelectorError
        Naming the selector, the fault, and the trial and round in which it occurred.
    ValueError
        If ``clients`` or ``rounds`` is below 2.

    Examples
    --------
    >>> from fedsim.selectors import Uniform
    >>> check_selector(Uniform(cohort=2), clients=6, rounds=2)
    """
    at_least_two(clients=clients, rounds=rounds)
    fresh = _factory(selector_or_factory)
    SelectorPort.of(fresh())  # refuses what is no selector before any round
    trials = (
        Trial("a crowd that stays", clients, features=3),
        Trial("a crowd without privacy", clients, budget=None),
        Trial("clients that come and go", clients, present=0.4, idle_every=3, radio=False, batteries=False),
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
        cohorts = _server(trial, seed, fresh).run(rounds)
        again = _server(trial, seed, fresh)
        _compare(again, again.run(rounds), cohorts, "differs between two fresh copies")
        _check_side_by_side(trial, seed, fresh, cohorts)
    refuse_stalling(fresh, clients, 2 * rounds, seed)


def _factory(selector_or_factory: Selector | Callable[[], Selector]) -> Callable[[], Selector]:
    """Return a callable that makes a selector in its initial state."""
    given = selector_or_factory
    if inspect.isclass(given) or (callable(given) and not isinstance(given, Selector)):
        return cast(Callable[[], Selector], given)
    try:
        return maker(given)
    except Exception as error:
        name = SelectorInfo.of(given).name
        raise SelectorError(f"{name} cannot be deep-copied ({error}); hand over a function that makes one") from error


def _server(trial: Trial, seed: int, fresh: Callable[[], Selector]) -> Server:
    return (AsynchronousServer if trial.asynchronous else Server)(trial, seed, fresh())


def _check_side_by_side(trial: Trial, seed: int, fresh: Callable[[], Selector], cohorts: list[Answered]) -> None:
    """Run two copies in turn, one of which gets false reports from the middle round on."""
    middle = (len(cohorts) + 1) // 2
    truthful, tampered = _server(trial, seed, fresh), _server(trial, seed, fresh)
    answered: list[Answered] = []
    misled: list[Answered] = []
    for number in range(1, len(cohorts) + 1):
        misled.append(tampered.run_round(number, tampered=number >= middle))
        answered.append(truthful.run_round(number))
    _compare(tampered, misled[:middle], cohorts[:middle], "depends on feedback of the same or a later round")
    _compare(truthful, answered, cohorts, "depends on the reports to another copy")


def _compare(server: Server, answered: list[Answered], expected: list[Answered], fault: str) -> None:
    for number, (one, other) in enumerate(zip(answered, expected, strict=True), start=1):
        server.place = f"in the trial with {server.trial.name}, round {number}"
        for method, column, left, right in _pairs(one, other):
            if (left is None) != (right is None) or not alike(left, right):
                thing = "cohort" if method == "select" else "question"
                raise server.fault(
                    f"{method}: the {thing}'s {column} {fault}, {left!r} against {right!r}; with the same rng and "
                    f"feedback it must give the same {thing}"
                )


def _pairs(one: Answered, other: Answered) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield method, column and both values of the answers of two copies."""
    for method, answer, another in (("probe", one.probe, other.probe), ("select", one.cohort, other.cohort)):
        left, right = ({} if given is None else vars(given) for given in (answer, another))
        for column in {**left, **right}:
            yield method, column, left.get(column), right.get(column)


def refuse_stalling(fresh: Callable[[], Selector], clients: int, rounds: int, seed: int) -> None:
    """Check the rounds without a delivery in a crowd of which half never delivers, chosen at random.

    In the last two thirds of the rounds there must not be many more than uniform cohorts of the same sizes would leave
    (by the hypergeometric law), unless the selector's attribute ``may_stall`` says why.
    """
    trial = Trial(_NAME, clients, delivering=1.0, answering=1.0, silent=0.5, features=4)
    server = Server(trial, seed, fresh())
    if server.selector.may_stall:
        return
    cohorts = [answered.cohort.client for answered in server.run(rounds)][rounds // 3 :]
    sizes = np.array([cohort.size for cohort in cohorts])
    chance = np.asarray(hypergeom.pmf(sizes, clients, int(server.silent.sum()), sizes))
    expected, spread = float(chance.sum()), float(np.sqrt((chance * (1 - chance)).sum()))
    empty = sum(bool(server.silent[cohort].all()) for cohort in cohorts)
    server.place = f"in the trial with {_NAME}"
    server.law(
        empty <= expected + _SPREAD * spread + 1.0,
        f"select left {empty} of the last {len(cohorts)} rounds without a delivery, where uniform cohorts of the same "
        f"sizes leave {expected:.1f}; a client that never delivered is not one that was never tried, or the attribute "
        "may_stall says why",
    )
