"""The contract of an effect, every member of which has a default that does nothing."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from simpy import Event

from fedsim.answers import (
    Contract,
    Flag,
    Free,
    InstanceOf,
    Numbers,
    OptionalOf,
    same_shape,
)
from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.devices.tracking import AvailabilityTracker, PlainTracker
from fedsim.rounds.effects.server_port import Aggregated, AskingServer, Tables
from fedsim.rounds.effects.steps import MemberColumns, PartOfCohort, SomeMembers, Steps
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run
from fedsim.selectors import Answers, Cohort, RoundView

NEVER: Final = np.inf
E = TypeVar("E", bound="Effect")
Shown = Callable[[IntArray, float], FloatArray]
"""A column of a selector's view: values of clients, shape (n,), by their ids and the instant."""
Members = IntArray | int
"""Positions in a cohort, shape (m,), or one position: then values are numbers."""


class Limit(NamedTuple):
    """How far members get in a phase, each of shape (m,) or one number; what is reached first ends a participation."""

    after_s: FloatArray | float = NEVER
    """Seconds since the phase was due, waits included."""
    active_s: FloatArray | float = NEVER
    """Seconds of work, or of set-up and transfer, waits left out."""
    bits: FloatArray | float = NEVER
    """Bits carried; over own links with finite `active_s`, those that are carried in these seconds."""
    since_start_s: FloatArray | float = NEVER
    """Seconds since the cohort was sent, for what ends a participation at an instant, whatever its phase."""
    left_s: Callable[[int, float, float, float], float] | None = None
    """Of one member over a shared medium, at a position: seconds in which it cannot be reached, 0 where it is, from the
    seconds of set-up and transfer, those on the air, and the bits so far."""


class Never(NamedTuple):
    """Why no client can be selected any more."""

    field: str
    """Path of what says so in the scenario."""
    why: str
    """The reason, as a sentence without its full stop."""
    allowed: str
    """What lets a run go on."""


class Effect:
    """One thing beside radio and work that changes how participations go.

    A cohort is a `Plan`: arrays over its n members, which are named by their positions. Phases are 0, 1 and 2:
    downlink, work, uplink. Phases whose times are known are asked about ahead, for all members at once; others when
    they begin. So an answer depends on the plan and on the past alone. What must be asked at an instant stands in
    `wait_s` of a phase in `starts`, or in `settle`.

    The effects of a run are asked in one order: they change a plan in that order, and of two causes at one instant the
    first counts.

    Attributes
    ----------
    phases : those that the effect has to do with; about others it is not asked
    starts : phases of which `wait_s` is asked at the instant at which they are due, for each member alone
    may_end : whether `limit` or `passed` may end participations, which a server that waits for all clients cannot have
    adds : columns that it adds to the table ``participations``: names with a dot, such as ``"rest.ready_s"``, and what
        they say; those of questions and other messages are left out

    Examples
    --------
    >>> class Detour(Effect):
    ...     phases = frozenset({2})
    ...     def wait_s(self, plan, phase, members):
    ...         return 0.5, 0.0
    >>> Detour().wait_s(None, 2, np.array([0]))
    (0.5, 0.0)
    """

    phases: frozenset[int] = frozenset({0, 1, 2})
    starts: ClassVar[frozenset[int]] = frozenset()
    may_end: ClassVar[bool] = True
    adds: Mapping[str, str] = {}

    def at_edge(self, member: IntArray) -> "Effect":
        """Return the effect as one edge server asks it about its rounds: another one if it stores something of them.

        Parameters
        ----------
        member : ids of the edge server's clients, ascending
        """
        return self

    @final
    def says(self, member: str) -> bool:
        """Return whether the effect has a member of its own in place of the default.

        Parameters
        ----------
        member : name
        """
        home = next(kind for kind in type(self).__mro__ if member in vars(kind))
        return home is not Effect

    def begin(self, run: Run) -> None:
        """Begin a run: keep what is needed of it, start processes on its clock.

        Parameters
        ----------
        run : clock, links, medium and random streams of the run, and its number of clients
        """

    def free_s(self, client: IntArray, time_s: float) -> FloatArray | None:
        """Return from which instant on each client may be selected if it takes no part until then; None for always.

        It is the present or an earlier instant for a client that may be selected now, and inf for never. A later one
        may be too early: it is asked about again then.

        Parameters
        ----------
        client : ids, shape (n,)
        time_s : the present instant

        Returns
        -------
        free_s : instants, shape (n,)
        """

    def tracker(self, client: IntArray) -> AvailabilityTracker:
        """Return what follows which clients may be selected from look to look; by default `free_s` of all at each look.

        Parameters
        ----------
        client : ids, shape (n,)
        """

        def free(ids: IntArray, time_s: float, _: int) -> BoolArray:
            free_s = self.free_s(ids, time_s)
            return np.ones(ids.size, dtype=bool) if free_s is None else free_s <= time_s

        return PlainTracker(free, client, "look")

    def never(self, time_s: float) -> Never | None:
        """Return why no client can ever be selected again, where this effect alone prevents it; None elsewhere.

        Parameters
        ----------
        time_s : the present instant, from which on no client is free
        """

    def participation_j(self, client: IntArray, phases_s: FloatArray, on_air_s: FloatArray) -> FloatArray:
        """Return the joules of whole participations, shape (n,).

        Parameters
        ----------
        client : ids, shape (n,)
        phases_s : seconds of downlink, work and uplink, shape (3, n)
        on_air_s : seconds on the air down and up, shape (2, n)
        """
        return np.zeros(client.size)

    def shows(self) -> Mapping[str, Shown]:
        """Return columns that clients declare, by name: for a selector's view, and for the table ``clients`` at 0 s.

        A selector reads a column of `fedsim.selectors.RoundView` as its attribute, and any by ``at_request[name]()``.
        """
        return {}

    def plan(self, plan: Plan) -> None:
        """Change sizes and work of a cohort that is about to start.

        Parameters
        ----------
        plan : the cohort
        """

    def due(self, plan: Plan, phase: int, members: Members) -> None:
        """Change the work of members whose phase is due at ``plan.begun_s[phase]``.

        Parameters
        ----------
        plan, phase : the cohort, and 0, 1 or 2
        members : positions, shape (m,), or one position
        """

    def wait_s(self, plan: Plan, phase: int, members: Members) -> tuple[FloatArray | float, FloatArray | float]:
        """Return the seconds before a phase of members: waiting, which costs nothing, and setting up, a part of it.

        Parameters
        ----------
        plan, phase : the cohort, and 0, 1 or 2
        members : positions, shape (m,), or one position; so far they begin at ``plan.flows_s(phase, members)``

        Returns
        -------
        waiting, setting up : seconds, each of shape (m,) or one number
        """
        return 0.0, 0.0

    def limit(self, plan: Plan, phase: int, members: Members) -> Limit | None:
        """Return how far members get in a phase that is due at ``plan.begun_s[phase]``; None without limit.

        Parameters
        ----------
        plan, phase : the cohort, and 0, 1 or 2
        members : positions, shape (m,), or one position
        """

    def passed(self, plan: Plan, phase: int, members: Members) -> BoolArray | np.bool_ | None:
        """Take note that members have completed a phase, and return which of them end there; None for none.

        Parameters
        ----------
        plan, phase : the cohort, and 0, 1 or 2
        members : positions, shape (m,), or one position
        """

    def settle(self, plan: Plan, members: IntArray) -> None:
        """Take note of members that have ended, each at its ``plan.end_s``.

        Parameters
        ----------
        plan : the cohort, with what has become of its members
        members : positions, shape (m,)
        """

    def columns(self, plan: Plan, members: IntArray) -> Mapping[str, FloatArray | float]:
        """Return what tables say of members that are recorded, by the names of columns.

        Parameters
        ----------
        plan : the cohort, or messages (``plan.cohort`` is None)
        members : positions, shape (m,)

        Returns
        -------
        columns : numbers of shape (m,), or one for all; NaN where there is none
        """
        return {}

    def sends(self, plan: Plan, members: IntArray, numbers: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """Return what members send in place of numbers that they have computed, by name, each of shape (m,).

        Parameters
        ----------
        plan : the cohort, or a question
        members : positions, shape (m,)
        numbers : beside their updates, or in response to the question
        """
        return numbers

    def aggregated(self, aggregated: Aggregated) -> None:
        """Take note of an aggregation.

        Parameters
        ----------
        aggregated : what it has been given, and what it has made of it
        """

    def recorded(self, tables: Tables, plan: Plan, members: IntArray) -> None:
        """Add rows to tables of its own about members of a cohort that are recorded.

        Parameters
        ----------
        tables : of the server
        plan : the cohort
        members : positions, shape (m,)
        """

    def of_round(self, tables: Tables, number: int) -> Mapping[str, float | None]:
        """Return columns of the table of rounds at the end of a round.

        Parameters
        ----------
        tables : of the server, to which it may add rows of its own
        number : of the round
        """
        return {}

    def before_selection(self, server: AskingServer, view: RoundView) -> Generator[Event, Any, Answers | None]:
        """Exchange messages before a cohort is selected; return what the selector is to see of them, None for nothing.

        Parameters
        ----------
        server : whose messages go through the same links as all others
        view : what the selector would see
        """
        return None
        yield

    def before_dispatch(self, server: AskingServer, cohort: Cohort) -> Generator[Event, Any, Cohort]:
        """Exchange messages before a cohort is sent the model; return the part of it that is left.

        Parameters
        ----------
        server : whose messages go through the same links as all others
        cohort : that was selected
        """
        return cohort
        yield

    def before_aggregation(
        self, server: AskingServer, plan: Plan, members: IntArray
    ) -> Generator[Event, Any, IntArray]:
        """Exchange messages before updates are added up; return the members whose updates count.

        Parameters
        ----------
        server : whose messages go through the same links as all others
        plan : the cohort
        members : positions of those that have delivered, shape (m,), ascending
        """
        return members
        yield


class BesidePhases(Effect):
    """An effect that is asked about no phase, and ends no participation."""

    may_end = False
    phases: frozenset[int] = frozenset()


EFFECT: Final = Contract(
    "effect",
    Effect,
    {
        "may_end": Flag(),
        "begin": Free(),
        "free_s": OptionalOf(Numbers(same_shape("client"), infinite=True)),
        "tracker": Free(),
        "never": OptionalOf(InstanceOf(Never)),
        "participation_j": Numbers(same_shape("client"), infinite=True),
        "shows": Free(),
        "plan": Free(),
        "due": Free(),
        "wait_s": Free(),
        "limit": Free(),
        "passed": Free(),
        "settle": Free(),
        "columns": MemberColumns(),
        "at_edge": Free(),
        "sends": InstanceOf(Mapping),
        "aggregated": Free(),
        "recorded": Free(),
        "of_round": InstanceOf(Mapping),
        "before_selection": Steps(OptionalOf(InstanceOf(Answers))),
        "before_dispatch": Steps(PartOfCohort()),
        "before_aggregation": Steps(SomeMembers()),
    },
)


class Asked(NamedTuple):
    """The effects that are asked about one phase, in their order."""

    changing: Sequence[Effect]
    waiting: Sequence[Effect]
    limiting: Sequence[Effect]
    passing: Sequence[Effect]

    @property
    def quiet(self) -> bool:
        return not (self.changing or self.waiting or self.limiting or self.passing)


class Effects(tuple[Effect, ...]):
    """The effects of a run in their order, and which of them have a say in what."""

    def having(self, member: str) -> Sequence[Effect]:
        """Return the effects that have a member of their own in place of the default."""
        return [effect for effect in self if effect.says(member)]

    def of(self, kind: type[E]) -> E | None:
        return next((effect for effect in self if type(effect) is kind), None)

    def asked(self, phase: int) -> Asked:
        concerned = Effects(effect for effect in self if phase in effect.phases)
        return Asked(*map(concerned.having, ("due", "wait_s", "limit", "passed")))
