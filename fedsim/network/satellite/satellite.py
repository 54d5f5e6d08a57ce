"""A network of satellites: a constant rate within windows of contact, and none between them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import MODEL_BITS
from fedsim.network.contracts import LinkFacts, Links
from fedsim.network.satellite.passes import CONTACTS, PASSES, Constellation, Contacts, Passes
from fedsim.per_client import ClientValues, PerClient, Values, at, values_of
from fedsim.registry import Component, Slot
from fedsim.run_setup import RunSetup
from fedsim.units import BITS_PER_SECOND

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
