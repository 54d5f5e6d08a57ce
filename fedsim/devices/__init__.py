"""How long does work take, and who is there to do it: pure arithmetic over all clients, without a clock."""

from typing import Annotated

from fedsim.devices.base import ComputeTime, ComputeTimes, Dropout
from fedsim.devices.compute import COMPUTE_TIMES, Rate, ZeroCompute
from fedsim.devices.dropout import DROPOUTS, Hazard, Never
from fedsim.parts import Settings, Slot

__all__ = [
    "COMPUTE_TIMES",
    "DROPOUTS",
    "ComputeTime",
    "ComputeTimes",
    "Devices",
    "Dropout",
    "Hazard",
    "Never",
    "Rate",
    "ZeroCompute",
]


class Devices(Settings):
    """The clients' devices.

    Attributes
    ----------
    compute : law of the time that local work takes
        By default a median of 100 samples/s in training, the fast end of the 10 to 100 samples/s of Nishio
        and Yonetani, "Client selection for federated learning with heterogeneous resources in mobile edge"
        (FedCS), ICC 2019, whose network is larger than the ones trained here.
    dropout : when a client vanishes in the middle of a participation; never by default
    """

    compute: Annotated[ComputeTime, Slot(COMPUTE_TIMES)] = Rate(samples_per_s=100.0)
    dropout: Annotated[Dropout, Slot(DROPOUTS)] = Never()
