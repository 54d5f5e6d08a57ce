"""FedScale's network: a constant rate for each client, equal in both directions, without latency and contention.

Streams: ``fedscale-bandwidth`` by client; ``trace-capacity`` by client, for entries of a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray, IntArray, normal_quantile
from fedsim.capabilities import MODEL_BITS
from fedsim.inputs.paths import InputPath
from fedsim.network.contracts import LinkFacts, Links
from fedsim.network.transport.transport import TRANSPORT, TRANSPORTS, NoTransport, Transport
from fedsim.per_client import ClientValues, PerClient, one_number, values_of
from fedsim.registry import Component, Slot
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.traces import Mapped, capacity_of
from fedsim.units import KILOBITS_PER_SECOND, KilobitsPerSecond, Positive

_BITS_PER_KBIT: Final = 1024.0


class FedScaleNetwork(Component):
    """The time of a transfer is its bits over the client's rate, downlink and uplink alike, in every round the same.

    Lai et al., "FedScale: Benchmarking model and system performance of federated learning at scale", ICML 2022,
    and its code (cloud/internal/client_metadata.py): ``(upload + download) / communication``. The code measures sizes
    in kbit of 1,024 bits, so the rates of its table are taken to be in those too.

    FedScale's own table of devices is not shipped. Without `path`, rates are log-normal with the median measured on it
    (6.1 Mbit/s). Their sigma puts 26 % of the devices below 3 Mbit/s, as there. They are cut to a range, and
    independent of compute times, whose correlation with them is 0.003 in the table.

    Attributes
    ----------
    median_kbps, sigma : median of the rates and standard deviation of their logarithm
        Where `median_kbps` gives each client its own rate, sigma is 0 by default.
    lowest_kbps, highest_kbps : limits to which rates are cut
    path : FedScale's ``client_device_capacity`` or a table with the columns ``computation``
        (ms per sample) and ``communication`` (kbit/s)
    mapping : how clients get entries of the file; the devices of the same kind give them the same ones
    transport : what TCP adds to each message; ``none``, the default, for nothing, as in FedScale
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})

    median_kbps: Annotated[ClientValues, PerClient(gt=0), KILOBITS_PER_SECOND] = 6100.0
    sigma: Annotated[float, Field(ge=0, le=10)] = 1.10
    lowest_kbps: Positive[KilobitsPerSecond] = 100.0
    highest_kbps: Positive[KilobitsPerSecond] = 200_000.0
    path: InputPath | None = None
    mapping: Mapped = None
    transport: Annotated[Transport, Slot(TRANSPORTS)] = NoTransport()

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        each_has_its_own = not one_number(options.get("median_kbps", 0.0))
        return {"sigma": 0.0, **options} if each_has_its_own else options

    @model_validator(mode="after")
    def _range_rises(self) -> Self:
        if self.lowest_kbps > self.highest_kbps:
            raise ValueError(
                f"lowest_kbps = {self.lowest_kbps} is not allowed; "
                f"it must be at most highest_kbps = {self.highest_kbps}"
            )
        return self

    def build(self, run: RunSetup) -> Links:
        links = RateLinks(_BITS_PER_KBIT * self._kbps(run.clients, run.streams))
        return TRANSPORT.checked(self.transport).over(links, run.streams)

    def _kbps(self, clients: int, streams: Streams) -> FloatArray:
        if self.path is not None:
            return capacity_of(self.path, "network.path", "communication", self.mapping, clients, streams)
        z = normal_quantile(streams.uniform("fedscale-bandwidth", np.arange(clients)))
        median_kbps = values_of(self, "median_kbps", clients, streams, "network")
        return np.clip(median_kbps * np.exp(self.sigma * z), self.lowest_kbps, self.highest_kbps)


@dataclass(frozen=True)
class RateLinks(Links):
    """Links of a constant rate."""

    rate_bps: FloatArray

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        return np.asarray(bits / self.rate_bps[client])

    uplink_s = downlink_s

    def describe(self) -> LinkFacts:
        return LinkFacts(rate_bps=np.stack([self.rate_bps, self.rate_bps]))

    def expected_downlink_s(self, bits: float) -> FloatArray:
        return bits / self.rate_bps

    expected_uplink_s = expected_downlink_s
