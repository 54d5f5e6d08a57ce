"""A network of satellites: a constant rate within windows of contact, and none between them.

Contacts are passes of a constellation in one circular orbit over the clients, or windows of a file. Streams:
``satellite-phase`` and ``satellite-track`` by client.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal, Protocol, Self, runtime_checkable

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from fedsim.answers import Contract, InstanceOf
from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import MODEL_BITS
from fedsim.inputs.paths import InputPath
from fedsim.inputs.tables import Origin, Table, owned, read_spans
from fedsim.network.contracts import LinkFacts, Links
from fedsim.per_client import ClientValues, PerClient, Values, at, values_of
from fedsim.registry import Component, Registry, Slot
from fedsim.run_setup import RunSetup
from fedsim.units import BITS_PER_SECOND, SPEED_OF_LIGHT_M_PER_S, Metres, NonNegative, Positive, Seconds

PASSES: Final = Registry(
    "satellite pass",
    "fedsim.passes",
    ("build",),
    {
        "constellation": "fedsim.network.satellite.satellite:Constellation",
        "file": "fedsim.network.satellite.satellite:WindowFile",
    },
)
_SAME: Final = 1e-12
"""Share of all contact that a message may need beyond it, by rounding."""
EARTH_M: Final = 6_371_000.0
GRAVITY_M3_PER_S2: Final = 3.986004418e14
"""The Earth's mean radius, and the product of the gravitational constant and its mass."""


@dataclass(frozen=True)
class Windows:
    """The windows of contact of each of K clients within one period, after which they repeat or there are no more."""

    start_s: FloatArray
    length_s: FloatArray
    period_s: float
    ends: bool = False

    @cached_property
    def before_s(self) -> FloatArray:
        """Contact before each window within the period, shape (K, M)."""
        return np.asarray(np.cumsum(self.length_s, axis=1) - self.length_s)

    @cached_property
    def total_s(self) -> FloatArray:
        return np.asarray(self.length_s.sum(axis=1))

    def contact_s(self, client: IntArray, time_s: FloatArray) -> FloatArray:
        inside_s = np.clip(time_s[:, None] - self.start_s[client], 0.0, self.length_s[client])
        return np.asarray(inside_s.sum(axis=1))

    def between_s(self, client: IntArray, from_s: FloatArray, until_s: FloatArray) -> FloatArray:
        (begun, phase_s), (ended, end_s) = (self._phase(time_s) for time_s in (from_s, until_s))
        return self.contact_s(client, end_s) - self.contact_s(client, phase_s) + (ended - begun) * self.total_s[client]

    def _phase(self, time_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the number of whole periods before instants, and the time within the period."""
        if self.ends:
            return np.zeros(time_s.shape), np.minimum(time_s, self.period_s)
        return np.divmod(time_s, self.period_s)

    def reached_s(self, client: IntArray, contact_s: FloatArray) -> FloatArray:
        """Return when clients have had some seconds of contact since the begin of a period."""
        total_s = self.total_s[client]
        periods = np.zeros(client.size)
        np.divide(contact_s, total_s, out=periods, where=total_s > 0)
        never = (total_s == 0) | (self.ends & (periods > 1 + _SAME))
        periods = np.zeros(client.size) if self.ends else np.maximum(np.ceil(periods) - 1.0, 0.0)
        left_s = contact_s - periods * total_s
        before_s, length_s, own = self.before_s[client], self.length_s[client], np.arange(client.size)
        # The first window at whose end the contact is enough; at the last one rounding may ask for a little more.
        window = np.minimum((before_s + length_s < left_s[:, None]).sum(axis=1), (length_s > 0).sum(axis=1) - 1)
        end_s = self.start_s[client][own, window] + np.minimum(left_s - before_s[own, window], length_s[own, window])
        return np.where(never, np.inf, periods * self.period_s + end_s)

    def until_s(self, client: IntArray, time_s: FloatArray, contact_s: Values) -> FloatArray:
        phase_s = self._phase(time_s)[1]
        reached_s = self.reached_s(client, self.contact_s(client, phase_s) + contact_s)
        return np.maximum(reached_s - phase_s, contact_s)

    def mean_until_s(self, contact_s: Values) -> FloatArray:
        """Return the mean of `until_s` over all instants of a period, shape (K,), as if the windows repeated.

        Let F(x) be the instant at which x seconds of contact are reached, and T the contact of a period P. A start
        within a window runs through the integral of F from s to s + T, which is that from 0 to T plus P s. A start
        within a gap after contact u ends at F(u + s).
        """
        clients, windows = self.start_s.shape
        ids, repeated = np.arange(clients), replace(self, ends=False)
        inside = (self.start_s * self.length_s + self.length_s**2 / 2).sum(axis=1) + self.period_s * contact_s
        # The gap before each window, and that after the last one, which ends in the next period.
        ends_s = np.column_stack([np.zeros(clients), self.start_s + self.length_s])
        gaps_s = np.column_stack([self.start_s, np.full(clients, self.period_s)]) - ends_s
        had_s = np.column_stack([self.before_s, self.total_s])
        for gap in range(windows + 1):
            end_s = repeated.reached_s(ids, had_s[:, gap] + contact_s)
            inside += gaps_s[:, gap] * np.where(self.total_s > 0, end_s, 0.0)
        mean_s = inside / self.period_s - self.period_s / 2
        return np.where(self.total_s > 0, mean_s, np.inf)


@runtime_checkable
class Contacts(Protocol):
    """The contacts of all clients of one run."""

    @property
    def windows(self) -> Windows: ...

    def delay_s(self, client: IntArray, time_s: FloatArray) -> FloatArray: ...


class Passes(Protocol):
    """When clients are in contact with a satellite."""

    def build(self, run: RunSetup) -> Contacts:
        """Return the contacts of one run.

        Parameters
        ----------
        run : what a part may read of its run
        """
        ...


CONTACTS: Final = Contract("passes", Passes, {"build": InstanceOf(Contacts)})


class Constellation(Component):
    """Satellites at equal distances in one circular orbit, which pass every client in turn.

    The Earth does not turn meanwhile, so that all passes of a client are alike. A client sees a satellite while it is
    at least at the least elevation. Its distance from the ground track, drawn once, makes its passes shorter.

    Attributes
    ----------
    altitude_m : of the orbit; 550 km are those of large constellations for the internet
    satellites : in the orbit
    least_elevation_deg : above the horizon
    off_track : greatest angle of a client from the ground track, as a share of that at which no pass is seen; uniform
    """

    altitude_m: Annotated[Metres, Field(ge=1e5, le=1e8)] = 550e3
    satellites: Annotated[PositiveInt, Field(le=10_000)] = 1
    least_elevation_deg: Annotated[float, Field(ge=0, le=80)] = 25.0
    off_track: Annotated[float, Field(ge=0, le=0.99)] = 0.9

    @property
    def known_deviation(self) -> str:
        return (
            "the Earth does not turn and every client lies below the orbit: passes come 7 to 9 times too often, and "
            "rounds are up to 110 times too fast"
        )

    @property
    def orbit_s(self) -> float:
        """Time of an orbit, by Kepler's third law."""
        return math.tau * math.sqrt((EARTH_M + self.altitude_m) ** 3 / GRAVITY_M3_PER_S2)

    @property
    def widest(self) -> float:
        """Angle at the centre of the Earth between a client and a satellite at the least elevation, in radians."""
        elevation = math.radians(self.least_elevation_deg)
        return math.acos(math.cos(elevation) * EARTH_M / (EARTH_M + self.altitude_m)) - elevation

    def build(self, run: RunSetup) -> "OrbitContacts":
        """Return the contacts of one run; the passes of clients begin at independent times."""
        ids = np.arange(run.clients)
        nearest = self.widest * self.off_track * run.streams.uniform("satellite-track", ids)
        period_s = self.orbit_s / self.satellites
        pass_s = np.arccos(math.cos(self.widest) / np.cos(nearest)) * self.orbit_s / math.pi
        length_s = np.minimum(pass_s, period_s)
        # The middle of a pass, in the period; a window that goes on in the next period is two.
        middle_s = period_s * run.streams.uniform("satellite-phase", ids)
        first_s = np.mod(middle_s - length_s / 2, period_s)
        over_s = np.maximum(first_s + length_s - period_s, 0.0)
        start_s = np.column_stack([np.where(over_s > 0, 0.0, first_s), np.where(over_s > 0, first_s, period_s)])
        lengths_s = np.column_stack(
            [np.where(over_s > 0, over_s, length_s), np.where(over_s > 0, length_s - over_s, 0)]
        )
        return OrbitContacts(Windows(start_s, lengths_s, period_s), self, nearest, middle_s)


@dataclass(frozen=True)
class OrbitContacts:
    windows: Windows
    orbit: Constellation
    nearest: FloatArray
    middle_s: FloatArray

    def delay_s(self, client: IntArray, time_s: FloatArray) -> FloatArray:
        period_s = self.windows.period_s
        since_s = np.mod(time_s - self.middle_s[client] + period_s / 2, period_s) - period_s / 2
        return self.range_m(client, since_s) / SPEED_OF_LIGHT_M_PER_S

    def range_m(self, client: IntArray, since_s: FloatArray) -> FloatArray:
        far = EARTH_M + self.orbit.altitude_m
        cosine = np.cos(self.nearest[client]) * np.cos(math.tau * since_s / self.orbit.orbit_s)
        return np.asarray(np.sqrt(EARTH_M**2 + far**2 - 2 * EARTH_M * far * cosine))


class WindowFile(Component):
    """Windows of contact from a file.

    Attributes
    ----------
    path : str
        A table with the columns ``client``, ``start_s`` and ``end_s``, a row for each window in any order; other
        columns are ignored. Times may be dates, or hours such as ``22:00``. Windows that overlap become one. A client
        that is not named has no contact.
    period_s : time after which the windows repeat
    delay_s : propagation delay
    after : ``"repeat"``, after `period_s`; or ``"none"``: there is no contact after the last window
        The default is ``"repeat"`` with a period; one of the two must be given.
    origin : instant of the file at which the run begins, a number or a date; by default 0, or the first date
    contact_with : node of a file of contact events (lines ``TIME CONN a b up`` and ``down``) whose contacts count; by
        default those with any node
    """

    path: InputPath
    period_s: Positive[Seconds] | None = None
    delay_s: NonNegative[Seconds] = 0.005
    after: Literal["repeat", "none"] | None = None
    origin: Origin = None
    contact_with: str | None = None

    @model_validator(mode="after")
    def _says_what_follows(self) -> Self:
        if (self.period_s is None) == (self.after != "none"):
            given = "is given with after = 'none'" if self.period_s else "is not given"
            raise ValueError(
                f"period_s {given}; allowed: period_s, after which the windows repeat, or after = 'none' alone, for no "
                "contact after the last window"
            )
        return self

    def build(self, run: RunSetup) -> "FileContacts":
        table = Table.read(self.path, "network.passes.path", self.contact_with)
        row, client = owned(table, run.clients, "any")
        spans = read_spans(
            table, row, client, run.clients, period_s=self.period_s, after=self.after or "repeat", origin=self.origin
        )
        if not spans.start_s.size:
            table.refuse("it must have windows; allowed: at least one")
        period_s = self.period_s or float(spans.end_s.max())
        counts = np.diff(spans.offset)
        place = np.arange(spans.start_s.size) - np.repeat(spans.offset[:-1], counts)
        client = np.repeat(np.arange(run.clients), counts)
        start_s = np.full((run.clients, int(counts.max())), period_s)
        length_s = np.zeros(start_s.shape)
        start_s[client, place], length_s[client, place] = spans.start_s, spans.end_s - spans.start_s
        return FileContacts(Windows(start_s, length_s, period_s, self.period_s is None), self.delay_s)


@dataclass(frozen=True)
class FileContacts:
    windows: Windows
    constant_s: float

    def delay_s(self, client: IntArray, time_s: FloatArray) -> FloatArray:
        return np.full(client.size, self.constant_s)


_LEAST_CONTACT_S: Final = 1e-6


class SatelliteNetwork(Component):
    """Clients that reach the server while a satellite passes.

    A message that does not fit into a pass goes on in the next one. A message takes at least a microsecond of contact,
    so that also one without bits waits for a pass. Its last bit arrives after the delay of the slant range at that
    instant. Each client has the rate to itself.

    Attributes
    ----------
    passes : when each client is in contact
    downlink_bps, uplink_bps : rates within a pass, one for all or a value for each client
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})

    passes: Annotated[Passes, Slot(PASSES)] = Constellation()
    downlink_bps: Annotated[ClientValues, PerClient(gt=0), BITS_PER_SECOND] = 1e7
    uplink_bps: Annotated[ClientValues, PerClient(gt=0), BITS_PER_SECOND] = 1e6

    def build(self, run: RunSetup) -> "SatelliteLinks":
        clients = run.clients
        contacts: Contacts = CONTACTS.checked(self.passes).build(run)
        down, up = (values_of(self, name, clients, run.streams, "network") for name in ("downlink_bps", "uplink_bps"))
        return SatelliteLinks(contacts, down, up)


@dataclass(frozen=True)
class SatelliteLinks(Links):
    contacts: Contacts
    downlink_bps: Values
    uplink_bps: Values

    def describe(self) -> LinkFacts:
        share = self.contacts.windows.total_s / self.contacts.windows.period_s
        return LinkFacts(rate_bps=np.stack([share * self.downlink_bps, share * self.uplink_bps]))

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._took_s(client, start_s, bits / at(self.downlink_bps, client))

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return self._took_s(client, start_s, bits / at(self.uplink_bps, client))

    def carried_bits(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the bits that passes have carried; waits and propagation carry none."""
        rate_bps = at(self.uplink_bps if up else self.downlink_bps, client)
        contact_s = self.contacts.windows.between_s(client, start_s, start_s + elapsed_s)
        return np.clip(contact_s * rate_bps, 0.0, bits)

    def on_air_s(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the contact up to the last bit; waits for passes and propagation are none."""
        due_s = np.maximum(bits / at(self.uplink_bps if up else self.downlink_bps, client), _LEAST_CONTACT_S)
        return np.minimum(self.contacts.windows.between_s(client, start_s, start_s + elapsed_s), due_s)

    def expected_on_air_s(self, bits: float, *, up: bool) -> FloatArray:
        due_s = np.maximum(bits / (self.uplink_bps if up else self.downlink_bps), _LEAST_CONTACT_S)
        return np.where(self.contacts.windows.total_s > 0, due_s, np.inf)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        """Return the mean over all instants of a period at which a transfer may start, propagation as at its middle."""
        return self._mean_s(bits / self.downlink_bps)

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return self._mean_s(bits / self.uplink_bps)

    def _took_s(self, client: IntArray, start_s: FloatArray, contact_s: Values) -> FloatArray:
        known_s = np.where(np.isfinite(start_s), start_s, 0.0)
        took_s = self.contacts.windows.until_s(client, known_s, np.maximum(contact_s, _LEAST_CONTACT_S))
        took_s = np.where(np.isfinite(start_s), took_s, np.inf)
        ends_s = np.where(np.isfinite(took_s), known_s + took_s, 0.0)
        return took_s + self.contacts.delay_s(client, ends_s)

    def _mean_s(self, contact_s: Values) -> FloatArray:
        windows = self.contacts.windows
        ids = np.arange(windows.total_s.size)
        middle_s = windows.start_s[:, 0] + windows.length_s[:, 0] / 2
        return windows.mean_until_s(np.maximum(contact_s, _LEAST_CONTACT_S)) + self.contacts.delay_s(ids, middle_s)
