"""Laws of energy: the price of bits and operations, and the battery that supplies it.

Streams: ``battery-charge`` by client.
"""

from typing import Annotated, ClassVar, Final, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.answers import Contract, InstanceOf, OptionalOf
from fedsim.capabilities import FLOPS, MODEL_BITS, SAMPLES, Capable
from fedsim.devices.batteries import Batteries, Prices
from fedsim.errors import ScenarioError
from fedsim.per_client import ClientValues, PerClient, Values, values_of
from fedsim.registry import Component, Registry
from fedsim.streams import Streams

ENERGIES: Final = Registry(
    "energy law",
    "fedsim.energies",
    ("build",),
    {
        "none": "fedsim.devices.energy:NoEnergy",
        "battery": "fedsim.devices.energy:Battery",
    },
    attributes=("may_run_empty", "requires"),
)

Share = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[ClientValues, PerClient(ge=0)]


class Energy(Capable, Protocol):
    """A scenario's law of energy: settings that build the batteries of one run.

    Attributes
    ----------
    may_run_empty : whether a battery may run empty during a participation
    requires : ``"model-bits"`` if a bit costs energy; ``"samples"`` and ``"flops"`` if an operation does
    """

    may_run_empty: ClassVar[bool]

    def build(self, clients: int, streams: Streams, flops_per_sample: float | None = None) -> Batteries | None:
        """Return the batteries of one run, or None where energy is not modelled.

        Parameters
        ----------
        clients : K
        streams : random streams of the run
        flops_per_sample : floating-point operations to train on one sample; None where no learner counts them
        """
        ...


ENERGY: Final = Contract("energy law", Energy, {"build": OptionalOf(InstanceOf(Batteries))})


class NoEnergy(Component):
    """Energy is not modelled: no participation costs energy and no battery runs empty."""

    may_run_empty: ClassVar[bool] = False
    requires: ClassVar[frozenset[str]] = frozenset()

    def build(self, clients: int, streams: Streams, flops_per_sample: float | None = None) -> None:
        """Return None."""
        return


class Battery(Component):
    """Every device has a battery that transfers and work discharge, and that recharges between participations.

    A participation costs ``bits * J/bit`` for the messages received and sent and, for its work, either the operations
    times `compute_j_per_flop` or the seconds times `compute_w`; exactly one of the two is given. The power of work is
    constant over its time, and so is that of a transfer over a dedicated link. Waiting in a queue costs nothing. When
    the battery is empty the client drops out at that instant. A transfer over shared links is opened for the bits that
    the battery can pay, and the client drops out when the last of them has arrived. So the rule
    ``"minimum-makespan"``, which splits by size, counts only these bits, and of a multicast the client receives only
    the beginning. Between two participations the charge changes by ``charge_w - idle_w`` watts and stays within 0 and
    the capacity.

    The defaults of the radio are the slopes of the LTE power model of Huang, Qian, Gerber, Mao, Sen and Spatscheck,
    "A close examination of performance and power characteristics of 4G LTE networks", MobiSys 2012: 51.97 mW for
    every Mbit/s down and 438.39 mW for every Mbit/s up. Their base power of 1.29 W while the radio is on is not in
    them; at a rate r it adds ``1.29 / r`` J/bit. The capacity and the price of work differ between devices and have no
    default: a phone's 3,000 mAh at 3.85 V are 41.6 kJ.

    Powers, prices, the capacity and the least charge may have a value for each client (`fedsim.per_client`).

    Attributes
    ----------
    capacity_j : energy of a full battery
    initial_from, initial_to : charge at time 0 as a share of the capacity, drawn uniformly for each client
    receive_j_per_bit, transmit_j_per_bit : energy of a bit of the downlink and of the uplink
    compute_j_per_flop : energy of an operation; the learner counts the operations, see `fedsim.learning.models.flops`
    compute_w : power of work
    idle_w : power of a client that takes no part in a round
    charge_w : power of the charger of a client that takes no part in a round
    least_charge : share of the capacity below which a client is no candidate
        By default 0.15, the level at which Android calls a battery low (AOSP, ``config_lowBatteryWarningLevel``), and
        at which its job scheduler holds back work that asks for a battery that is not low.
    """

    may_run_empty: ClassVar[bool] = True

    capacity_j: Annotated[ClientValues, PerClient(gt=0)]
    initial_from: Share = 1.0
    initial_to: Share = 1.0
    receive_j_per_bit: NonNegative = 5.197e-8
    transmit_j_per_bit: NonNegative = 4.3839e-7
    compute_j_per_flop: NonNegative | None = None
    compute_w: NonNegative | None = None
    idle_w: NonNegative = 0.0
    charge_w: NonNegative = 0.0
    least_charge: Annotated[ClientValues, PerClient(gt=0, le=1)] = 0.15

    @property
    def requires(self) -> frozenset[str]:
        """The size of messages if a bit costs energy; samples and operations if an operation does."""
        bits = set() if self.receive_j_per_bit == 0 and self.transmit_j_per_bit == 0 else {MODEL_BITS}
        return frozenset(bits if self.compute_j_per_flop is None else bits | {SAMPLES, FLOPS})

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.compute_j_per_flop is None) == (self.compute_w is None):
            given = "neither" if self.compute_w is None else "both"
            raise ValueError(f"{given} of compute_j_per_flop and compute_w is given; allowed: exactly one of the two")
        if self.initial_from > self.initial_to:
            raise ValueError(
                f"initial_from = {self.initial_from} is not allowed; it must be at most initial_to = {self.initial_to}"
            )
        return self

    def build(self, clients: int, streams: Streams, flops_per_sample: float | None = None) -> Batteries:
        """Return the batteries of one run.

        Raises
        ------
        ScenarioError
            If the cost of work follows from its operations and the learner does not count them.
        """
        if self.compute_j_per_flop is not None and flops_per_sample is None:
            raise ScenarioError(
                "devices.energy: compute_j_per_flop needs a learner that counts the operations per sample"
            )

        def of(name: str) -> Values:
            return values_of(self, name, clients, streams, "devices.energy")

        prices = Prices(
            receive_j_per_bit=of("receive_j_per_bit"),
            transmit_j_per_bit=of("transmit_j_per_bit"),
            sample_j=0.0 if self.compute_j_per_flop is None else of("compute_j_per_flop") * (flops_per_sample or 0.0),
            compute_w=0.0 if self.compute_w is None else of("compute_w"),
        )
        u = streams.uniform("battery-charge", np.arange(clients))
        initial, capacity_j = self.initial_from + (self.initial_to - self.initial_from) * u, of("capacity_j")
        return Batteries(
            prices,
            capacity_j=capacity_j,
            idle_gain_w=of("charge_w") - of("idle_w"),
            least_j=of("least_charge") * capacity_j,
            charge_j=capacity_j * initial,
        )
