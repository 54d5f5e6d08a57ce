"""The interface between a server and a selector: views, cohorts, questions to clients, reports.

A selector is any object with two methods; no base class and no import besides NumPy is needed::

    select(view: RoundView, rng: numpy.random.Generator) -> Cohort   (or an array of client ids)
    observe(reports: Reports) -> None

Optional are a method ``probe`` (see `Probe`) and the attributes of `PublishedSelector`. A view has columns with one
element per candidate, so that a million candidates cost arrays and not objects. It holds the knowledge of a real
server at that moment and never the future. A method that needs more sets ``oracle = True`` on its class, gets an
`OracleView` and is listed as an oracle.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.selectors.cohorts import Allocation as Allocation, Cohort as Cohort, Sampling as Sampling
from fedsim.selectors.questions import Answers as Answers, Probe as Probe


@dataclass(frozen=True, kw_only=True)
class RoundView:
    """The server's knowledge at a selection; arrays have shape (n,), one element per candidate.

    The arrays are read-only, and some change later in the run: copy those that are used after the call.

    Attributes
    ----------
    round : int
        From 1.
    time_s : float
        Simulated time of the selection, in seconds.
    clients : int
        Number of clients K in the crowd, candidates or not; ids are 0..K-1.
    wanted : int or None
        Number of clients that the server asks for; None for the selector's own number. The server takes that many
        at random if the selector returns more.
    client : ids of the candidates, ascending
    samples : training samples of each candidate
    total_samples : int
        Training samples of the whole crowd, ``|D|``.
    participations : number of times that each candidate was selected before
    last_duration_s : seconds of each candidate's last participation delivered before this round; NaN before the first
    last_loss : mean training loss of each candidate's last update delivered before this round; NaN before the first,
        and in a run whose selector does not ask for losses (``needs = ("loss",)``)
    privacy_spent : epsilon that each candidate has leaked so far, 0 without privacy
    privacy_budget : float or None
        Largest epsilon that a client may leak in a run; None without privacy.
    features : array of shape (n, f)
        Declared features of a selector with ``uses_features = True``: expected seconds of downlink, work and uplink,
        and samples. f is 0 for other selectors.
    up_bits : float
        Size of an update in bits; 0 if the learner states none.
    snr_hz : array of shape (n,), or None on links without radio
        Channel of each candidate's uplink as the base station knows it from the client's last report: the mean power
        received of a client at full power over the density of noise and interference, in Hz. In a band of b Hz its mean
        SNR is ``snr_hz / b``.
    allocates : bool
        Whether the network takes an `Allocation` of bands and powers.
    deadline_s : float or None
        Longest time that the server waits for the coming cohort, in seconds; None without a limit.
    answers : Answers or None
        Answers to the selector's probe; None if there was no probe.
    at_request : functions without arguments by name
        Each makes a column when it is first read: `fading_gain`, `full_power_dbm`, `charge_j`, `capacity_j`,
        `charging_w` and `participation_j`, of shape (n,), and `label_histogram`. A column without a function is None. A
        function holds during the selection; what is read later may be younger.

    Examples
    --------
    >>> from fedsim import Testbed
    >>> with Testbed("scenarios/testbed/cell.toml") as testbed:
    ...     view = testbed.view()
    >>> view.round, view.client.size == view.samples.size
    (1, True)
    """

    round: int
    time_s: float
    clients: int
    wanted: int | None = None
    client: IntArray
    samples: IntArray
    total_samples: int
    participations: IntArray
    last_duration_s: FloatArray
    last_loss: FloatArray
    privacy_spent: FloatArray
    privacy_budget: float | None
    features: FloatArray
    up_bits: float = 0.0
    snr_hz: FloatArray | None = None
    allocates: bool = False
    deadline_s: float | None = None
    answers: Answers | None = None
    at_request: Mapping[str, Callable[[], FloatArray]] = field(default_factory=dict)

    @cached_property
    def fading_gain(self) -> FloatArray | None:
        """Power gain of each uplink's fading now, of mean 1, as sounding signals show it; None without radio.

        The instantaneous SNR of a candidate in a band of b Hz is ``snr_hz * fading_gain / b``. It holds for a coherence
        time, and an upload begins only after the download and the work.
        """
        return self._made("fading_gain")

    @cached_property
    def full_power_dbm(self) -> FloatArray | None:
        """Most power of each candidate's transmitter, with which `snr_hz` is measured; None where it is not known."""
        return self._made("full_power_dbm")

    @cached_property
    def charge_j(self) -> FloatArray | None:
        """Joules in each candidate's battery, as it declares when it checks in; None without batteries."""
        return self._made("charge_j")

    @cached_property
    def capacity_j(self) -> FloatArray | None:
        """Joules of each candidate's full battery; None without batteries."""
        return self._made("capacity_j")

    @cached_property
    def charging_w(self) -> FloatArray | None:
        """Power of each candidate's charger less that of its idle device; None without batteries."""
        return self._made("charging_w")

    @cached_property
    def participation_j(self) -> FloatArray | None:
        """Mean joules that a participation takes from each candidate's battery; None without batteries.

        The mean is over the durations that clients declare as features: downlink, work and uplink.
        """
        return self._made("participation_j")

    @cached_property
    def label_histogram(self) -> FloatArray | None:
        """Shares of each candidate's samples with each label, of sum 1, shape (n, labels), as clients declared once.

        With privacy each client's shares are noisy (`fedsim.privacy.label_histograms`). None without labels, and for
        selectors that do not state ``uses_labels = True``.
        """
        return self._made("label_histogram")

    def _made(self, name: str) -> FloatArray | None:
        """Return a column of `at_request`; None without a function for it."""
        if name not in self.at_request:
            return None
        column = self.at_request[name]()
        column.flags.writeable = False
        return column

    @property
    def count(self) -> int:
        """Number of candidates n; at a server of a large crowd it is known without a column."""
        return self.client.size

    def pick(self, place: IntArray) -> IntArray:
        """Return the ids of the candidates at given places in ascending order, shape (m,); without a column, too.

        Parameters
        ----------
        place : in 0..n-1, shape (m,)
        """
        return np.asarray(self.client[place])

    def below(self, client: int) -> int:
        """Return how many candidates have a lower id than a given one; without a column, too.

        Parameters
        ----------
        client : id of any client
        """
        return int(np.searchsorted(self.client, client))

    def includes(self, client: IntArray) -> BoolArray:
        """Return which ids are those of candidates, shape (m,); without a column, too.

        Parameters
        ----------
        client : any ids, shape (m,)
        """
        if not self.client.size:
            return np.zeros(client.size, dtype=np.bool_)
        place = np.searchsorted(self.client, client)
        return np.asarray(self.client[np.minimum(place, self.client.size - 1)] == client)

    def at_edge(self, members: IntArray, total_samples: int) -> "RoundView":
        """Return what an edge server shows its selector: its clients as a crowd of their own, with ids from 0.

        Parameters
        ----------
        members : ids of the edge server's clients in the whole crowd, ascending, shape (k,)
        total_samples : of the edge server's clients
        """

        def local(client: IntArray) -> IntArray:
            return np.searchsorted(members, client)

        answers = None if self.answers is None else replace(self.answers, client=local(self.answers.client))
        client = local(self.client)
        return replace(self, client=client, clients=members.size, total_samples=total_samples, answers=answers)

    def settle(self) -> None:
        """Take all columns, before what they show changes; here all are there."""


@dataclass(frozen=True, kw_only=True)
class OracleView(RoundView):
    """A round view with knowledge that no server has."""

    expected_duration_s: FloatArray
    coming_duration_s: Callable[[], FloatArray] | None = None
    coming_uplink_s: Callable[[], FloatArray] | None = None
    coming_energy_j: Callable[[], FloatArray] | None = None
    stays: Callable[[FloatArray, FloatArray], BoolArray] | None = None


@dataclass(frozen=True, kw_only=True)
class Reports:
    """The server's knowledge of ended participations; arrays have shape (m,), one element per participation.

    A synchronous server reports each round's cohort at the end of the round; a client that delivers later is not
    reported again. An asynchronous server reports the clients that have delivered or were given up since its last
    aggregation. A client with two ended participations occurs twice, and may be in flight again.

    Attributes
    ----------
    round : int
    time_s : float
        Simulated time at which the round ended, in seconds.
    client : ids, in the cohort's order
    delivered : whether the update arrived in time
    duration_s : seconds from the start of the participation until the update arrived or, without an update, until the
        server stopped waiting (a censored duration)
    loss : mean training loss of a delivered update if ``needs`` name it, NaN otherwise
    measured : the measurements that ``needs`` name, as arrays by name; NaN without a delivered update

    Examples
    --------
    >>> import numpy as np
    >>> one = Reports(
    ...     round=1,
    ...     time_s=2.5,
    ...     client=np.array([4, 9]),
    ...     delivered=np.array([True, False]),
    ...     duration_s=np.array([1.5, 2.5]),
    ...     loss=np.array([0.7, np.nan]),
    ... )
    >>> one.client[one.delivered].tolist()
    [4]
    """

    round: int
    time_s: float
    client: IntArray
    delivered: BoolArray
    duration_s: FloatArray
    loss: FloatArray
    measured: Mapping[str, NDArray[np.floating[Any]]] = field(default_factory=dict)


@runtime_checkable
class Selector(Protocol):
    """The two methods of a selector; the optional attributes are those of `PublishedSelector`."""

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the cohort of the round that begins now."""
        ...

    def observe(self, reports: Reports) -> None:
        """Learn from the outcomes of participations."""
        ...


class PublishedSelector:
    """The optional attributes of a selector, with their defaults.

    Attributes
    ----------
    paper : publication of the method
    needs : measurements of delivered updates, some of `fedsim.measurements.MEASUREMENTS`
    oracle : whether the views are `OracleView`
    communication : messages besides the cohort's models and updates: ``"a number up per update"``
    uses_features : whether clients declare features
    uses_labels : whether clients declare the shares of their labels, which leak
    asks_losses : whether a question of ``probe`` may be for losses, which leak; with privacy, a question for losses is
        refused where this is not stated
    asks_norms : whether ``probe`` asks for norms of updates, which runs with privacy, servers that do not wait for
        their rounds and compression with a memory refuse
    draws_samples : whether clients of a cohort draw samples (`Cohort.sampling`), which asynchronous servers and some
        other settings refuse
    asks_sizes : whether ``probe`` asks for numbers of samples, which leak
    sizes_cost : epsilon of such an answer; 0 for one that discloses the number for certain
    sizes_paid_once : whether all such answers of a client cost one; a client that is asked again then answers the same
        again
    sizes_unlinked : whether such answers are drawn anew each time nevertheless, since nothing links those of a client
    numbers_of_clients : options that hold one number for each client of the server, or None
    may_stall : why rounds without any delivery may be much more frequent than with uniform cohorts in a crowd of which
        half never delivers; empty if they are not, which `fedsim.testing.check_selector` then checks

    Examples
    --------
    >>> class Longest(PublishedSelector):
    ...     uses_features = True
    ...     def select(self, view, rng):
    ...         return view.client[np.argsort(view.features[:, 1])[-5:]]
    >>> from fedsim.selectors import SelectorInfo
    >>> SelectorInfo.of(Longest).knowledge, SelectorInfo.of(Longest).communication
    ('declared features', 'nothing')
    """

    numbers_of_clients: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    oracle: ClassVar[bool] = False
    communication: ClassVar[str] = "nothing"
    uses_features: ClassVar[bool] = False
    uses_labels: ClassVar[bool] = False
    may_stall: str = ""
    asks_losses: bool = False
    asks_norms: bool = False
    draws_samples: ClassVar[bool] = False
    asks_sizes: ClassVar[bool] = False
    sizes_cost: float = 0.0
    sizes_paid_once: bool = False
    sizes_unlinked: bool = False

    def observe(self, reports: Reports) -> None:
        """Ignore the reports; methods with memory override this."""
