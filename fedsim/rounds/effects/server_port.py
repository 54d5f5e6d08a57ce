"""What effects may ask of a server, and what it says of an aggregation."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.history.recorder import Recorder
from fedsim.learning import Learner, Model, Update
from fedsim.per_client import Values
from fedsim.rounds.plan import Plan
from fedsim.selectors import SelectorPort
from fedsim.streams import Streams


class Aggregated(NamedTuple):
    """The n updates that an aggregation has been given, and what it has made of them."""

    members: Sequence[tuple[Plan, IntArray]]
    """Cohorts, and positions in each; the arrays below follow them."""
    client: IntArray
    weight: FloatArray
    """In the model, shape (n,); 0 or NaN for an update without use."""
    updates: Sequence[Update]


class Tables(Protocol):
    """The tables of one server: where its rows go, and the edge server that they name, or -1."""

    recorder: Recorder
    edge: int

    def add_message(self, table: str, number: int, asked: Any, **columns: Any) -> None:
        """Add rows of messages beside participations to their table."""
        ...


class AskingServer(Protocol):
    """What an effect may ask of a server, whose round has a number, a start and a newest model."""

    asynchronous: bool
    env: Environment
    streams: Streams
    selector: SelectorPort
    learner: Learner
    number: int
    start_s: float
    model: Model

    @property
    def rows(self) -> Tables:
        """Where its rows go."""
        ...

    def message(
        self,
        client: IntArray,
        draw: int,
        bits: tuple[Values, Values],
        samples: FloatArray | None = None,
        compute_s: FloatArray | None = None,
    ) -> Plan:
        """Return the plan of a message down, some work and a message up, which start now; see `ask`."""
        ...

    def ask(
        self,
        plan: Plan,
        record: Callable[[Any], None] = ...,
        wait_s: float | None = None,
        in_vain: Callable[[int], str] = str,
    ) -> Generator[Event, Any, IntArray]:
        """Exchange one message with each client of a plan, and return the positions of those that have responded.

        The server waits for ``wait_s`` or, with None, until each client has responded or is lost.
        """
        ...

    def sent(self, plan: Plan, members: IntArray, numbers: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """Return what members send in place of numbers that they have computed, by name, each of shape (m,)."""
        ...
