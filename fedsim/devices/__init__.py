"""Compute times, availability, dropout and energy of the clients' devices: arithmetic over arrays, without a clock.

Examples
--------
>>> COMPUTE_TIMES.make({"kind": "rate", "samples_per_s": 50.0}).samples_per_s
50.0
>>> AVAILABILITIES.kind_of(Bernoulli(probability=0.5)), DROPOUTS.kind_of(Never()), ENERGIES.kind_of(NoEnergy())
('bernoulli', 'never', 'none')
>>> HETEROGENEITY_LAWS.option_names("log-normal")
['sigma']
"""

from typing import Annotated

from fedsim.devices.availability.eligibility import EligibleClients as EligibleClients, Freedom as Freedom
from fedsim.devices.availability.independent import (
    AVAILABILITIES as AVAILABILITIES,
    Always as Always,
    Bernoulli as Bernoulli,
)
from fedsim.devices.batteries import Batteries as Batteries, EnergyDemand as EnergyDemand, Prices as Prices
from fedsim.devices.compute import COMPUTE_TIMES as COMPUTE_TIMES, Rate as Rate, ZeroCompute as ZeroCompute
from fedsim.devices.contracts import (
    Availability as Availability,
    AvailabilityModel as AvailabilityModel,
    ComputeTime as ComputeTime,
    ComputeTimes as ComputeTimes,
    Dropout as Dropout,
)
from fedsim.devices.dropout import DROPOUTS as DROPOUTS, Hazard as Hazard, Never as Never
from fedsim.devices.energy import ENERGIES as ENERGIES, Energy as Energy, NoEnergy as NoEnergy
from fedsim.devices.heterogeneity import HETEROGENEITY_LAWS as HETEROGENEITY_LAWS
from fedsim.registry import Settings, Slot


class Devices(Settings):
    """The clients' devices.

    Attributes
    ----------
    compute : law of the duration of local work
        By default a median of 100 samples/s in training, the fast end of the 10 to 100 samples/s of Nishio
        and Yonetani, "Client selection for federated learning with heterogeneous resources in mobile edge"
        (FedCS), ICC 2019, whose network is larger than the ones trained here.
    availability : when clients can be reached; always by default
        Offline clients are no candidates, and a client that leaves during a participation drops out at that instant.
    dropout : when a client vanishes during a participation; never by default
    energy : energy of transfers and work, and the batteries; not modelled by default
        Clients below the least charge are no candidates, and one whose battery runs empty drops out at that instant.

    Examples
    --------
    >>> Devices().may_lose_clients
    False
    >>> Devices(dropout={"kind": "hazard", "rate_per_s": 0.01}).may_lose_clients
    True
    >>> Devices(compute={"kind": "rate", "samples_per_s": [80.0, 20.0]}).compute.spread_sigma
    0.0
    """

    compute: Annotated[ComputeTime, Slot(COMPUTE_TIMES)] = Rate(samples_per_s=100.0)
    availability: Annotated[AvailabilityModel, Slot(AVAILABILITIES)] = Always()
    dropout: Annotated[Dropout, Slot(DROPOUTS)] = Never()
    energy: Annotated[Energy, Slot(ENERGIES)] = NoEnergy()

    @property
    def may_lose_clients(self) -> bool:
        return self.dropout.possible or self.availability.may_leave or self.energy.may_run_empty
