"""A selector as the server sees it: methods that give checked answers, and attributes that are declared and checked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

import numpy as np

from fedsim.answers import asked, in_words
from fedsim.arrays import IntArray
from fedsim.code_digest import is_builtin
from fedsim.errors import PartError, SelectorError
from fedsim.inputs.plugins import with_package
from fedsim.measurements import MEASUREMENTS, NUMBERS
from fedsim.selectors.candidates import ask
from fedsim.selectors.contracts import Cohort, Probe, PublishedSelector, Reports, RoundView
from fedsim.selectors.sampling import CohortSelector
from fedsim.selectors.validation import as_cohort, as_probe


@dataclass(frozen=True, kw_only=True)
class SelectorInfo:
    """What a selector's class states about the method."""

    name: str
    needs: tuple[str, ...] = ()
    oracle: bool = False
    uses_features: bool = False
    uses_labels: bool = False
    asks_losses: bool = False
    asks_norms: bool = False
    draws_samples: bool = False
    asks_sizes: bool = False
    sizes_cost: float = 0.0
    sizes_paid_once: bool = False
    sizes_unlinked: bool = False
    probes: bool = False
    paper: str = ""
    communication: str = ""
    may_stall: str = ""

    @property
    def knowledge(self) -> str:
        """Knowledge besides the columns of every view, in words; empty for none."""
        parts = [f"{', '.join(self.needs)} (measured of delivered updates)"] if self.needs else []
        parts += ["declared features"] * self.uses_features
        parts += ["declared shares of labels"] * self.uses_labels
        parts += ["answers to its questions"] * self.probes
        parts += ["durations and availability of the future (an oracle)"] * self.oracle
        return "; ".join(parts)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers that clients compute from their data and send beside updates or as answers."""
        sent = tuple(need for need in self.needs if need in NUMBERS)
        return (*sent, "loss of the model, as an answer") if self.asks_losses else sent

    @property
    def leaks(self) -> tuple[str, ...]:
        """Names of all that clients disclose of their data beside updates: `numbers`, and what they declare once."""
        sizes = ("number of samples, as an answer",) if self.asks_sizes else ()
        return (*self.numbers, *sizes, *(("shares of labels, declared once",) if self.uses_labels else ()))

    @classmethod
    def of(cls, selector: object) -> "SelectorInfo":
        """Return what a selector, or the class of one, states about itself."""
        found = selector if isinstance(selector, type) else type(selector)
        name = with_package(found.__name__, found.__module__)
        for method in ("select", "observe"):
            if not callable(getattr(selector, method, None)):
                raise SelectorError(f"{name} is no selector: it has no method {method}")
        stated: dict[str, Any] = {name: _stated(selector, name, default) for name, default in _DEFAULTS.items()}
        needs, probe = stated["needs"], _stated(selector, "probe", None)
        if not isinstance(needs, tuple | list) or not all(need in MEASUREMENTS for need in needs):
            allowed = f"it must be a tuple of {MEASUREMENTS!r} or empty"
            raise SelectorError(f"{name}.needs: {needs!r} is not allowed; {allowed}")
        for attribute, default in _DEFAULTS.items():
            value = stated[attribute]
            if attribute != "needs" and not isinstance(value, type(default)):
                words = {bool: "True or False", float: "a floating-point number", str: "a short phrase"}
                allowed = next(word for kind, word in words.items() if isinstance(default, kind))
                raise SelectorError(f"{name}.{attribute}: {value!r} is not allowed; it must be {allowed}")
        if probe is not None and not callable(probe):
            raise SelectorError(f"{name}.probe: {probe!r} is not allowed; it must be a method, or be left out")
        return SelectorInfo(**{**stated, "name": name, "needs": tuple(needs), "probes": probe is not None})


_LEAST_OF_A_MEAN: Final = 0.5
"""Sum of weights below which, and above whose inverse, they are hardly meant for a mean; importance gives about 1."""
_DEFAULTS: Final = {each.name: each.default for each in fields(SelectorInfo) if each.name not in ("name", "probes")}
"""What a selector may state, and what holds where it does not."""


def _note_weights(remarks: list[str], cohort: Cohort, name: str, number: int) -> None:
    """Note once that the weights of a cohort are far from those of a mean."""
    if remarks or cohort.weights is None or cohort.sampling is not None or not cohort.client.size:
        return
    total = float(np.sum(cohort.weights))
    if not _LEAST_OF_A_MEAN <= total <= 1 / _LEAST_OF_A_MEAN:
        remarks.append(
            f"selector: the weights of {name} sum to {total:g} in round {number}: the model moves by {total:g} times "
            "the mean update; weights of a mean sum to 1"
        )


def _stated(selector: object, attribute: str, default: object) -> Any:
    """Return the value of an attribute; the default if it is missing, or a property of a class without an object."""
    value = getattr(selector, attribute, default)
    return default if isinstance(selector, type) and isinstance(value, property) else value


@dataclass(frozen=True, kw_only=True)
class SelectorPort(SelectorInfo):
    """A selector on a server: its answers are checked, and its attributes are known."""

    select: Callable[[RoundView, np.random.Generator], Cohort]
    observe: Callable[[Reports], None]
    probe: Callable[[RoundView, np.random.Generator], Probe | None] | None = None
    cohort: int | None = None
    ignores_reports: bool = False
    remarks: list[str] = field(default_factory=list, compare=False)
    """On weights of a selector of the user's own that are far from those of a mean; one at most."""

    @classmethod
    def of(cls, selector: object) -> Self:
        """Return the port of an object with the methods of a selector; answers of fedsim's own are not checked."""
        if isinstance(selector, cls):
            return selector
        info = SelectorInfo.of(selector)
        if isinstance(selector, type):
            raise SelectorError(f"{info.name} is a class; a server needs an object of it")
        found: Any = selector
        cohort, remarks = getattr(found, "cohort", None), list[str]()

        def select(view: RoundView, rng: np.random.Generator) -> Cohort:
            try:
                chosen = asked(info.name, "select", found.select, view, rng, error=SelectorError)
                cohort = as_cohort(chosen, view, info.name)
                if cohort.sampling is not None and not info.draws_samples:
                    raise SelectorError(
                        f"{info.name}.select returned sampling = {in_words(cohort.sampling)}",
                        f"allowed: only with {info.name}.draws_samples = True",
                    )
                _note_weights(remarks, cohort, info.name, view.round)
                return cohort
            except PartError as error:
                error.name_clients(view.client)
                raise

        def probe(view: RoundView, rng: np.random.Generator) -> Probe | None:
            try:
                question = asked(info.name, "probe", found.probe, view, rng, error=SelectorError)
                return None if question is None else as_probe(question, view, info.name)
            except PartError as error:
                error.name_clients(view.client)
                raise

        def observe(reports: Reports) -> None:
            try:
                asked(info.name, "observe", found.observe, reports, error=SelectorError)
            except PartError as error:
                error.name_clients(reports.client)
                raise

        own = is_builtin(type(selector))
        return cls(
            **vars(info),
            select=found.select if own else select,
            observe=found.observe if own else observe,
            probe=(found.probe if own else probe) if info.probes else None,
            cohort=cohort if isinstance(cohort, int) and not isinstance(cohort, bool) else None,
            ignores_reports=isinstance(found, PublishedSelector)
            and found.observe == PublishedSelector.observe.__get__(found),
            remarks=remarks,
        )

    def at_edge(self, members: IntArray, samples: IntArray) -> Self:
        """Return this selector at an edge server: it sees the edge's clients as a crowd with ids from 0."""
        total = int(samples[members].sum())

        def local(client: IntArray) -> IntArray:
            return np.searchsorted(members, client)

        def select(view: RoundView, rng: np.random.Generator) -> Cohort:
            with _named_in_the_crowd(members):
                cohort = ask(self.select, [view.at_edge(members, total)], rng)
            return replace(cohort, client=members[cohort.client])

        def probe(view: RoundView, rng: np.random.Generator) -> Probe | None:
            with _named_in_the_crowd(members):
                question = None if self.probe is None else self.probe(view.at_edge(members, total), rng)
            return None if question is None else replace(question, client=members[question.client])

        def observe(reports: Reports) -> None:
            with _named_in_the_crowd(members):
                self.observe(replace(reports, client=local(reports.client)))

        return replace(self, select=select, observe=observe, probe=self.probe and probe)


@contextmanager
def _named_in_the_crowd(members: IntArray) -> Iterator[None]:
    """Let errors name an edge's clients by their ids in the whole crowd."""
    try:
        yield
    except PartError as error:
        error.rename_clients(members)
        raise


def numbers_of_clients(factory: Callable[..., object]) -> tuple[str, ...]:
    """Return the options of a selector's class that hold one number for each client of the server."""
    if isinstance(factory, type) and issubclass(factory, PublishedSelector):
        return factory.numbers_of_clients
    return ()


def draws_samples(selector: Callable[..., object]) -> bool:
    """Return whether clients of the cohorts of a selector's class draw samples."""
    return isinstance(selector, type) and issubclass(selector, PublishedSelector) and selector.draws_samples


def cohort_is_mean(selector: Callable[..., object]) -> bool:
    """Return whether the cohorts of a selector's class have ``cohort`` clients on average only."""
    return isinstance(selector, type) and issubclass(selector, CohortSelector) and selector.cohort_is_mean
