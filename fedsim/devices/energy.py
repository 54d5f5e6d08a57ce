"""Laws of energy: the price of bits and operations, and the battery that supplies it.

Streams: ``battery-charge`` by client.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.answers import Contract, InstanceOf, OptionalOf
from fedsim.capabilities import FLOPS, MODEL_BITS, SAMPLES, Capable
from fedsim.devices.batteries import Batteries, Prices
from fedsim.errors import ScenarioError
from fedsim.per_client import ClientValues, PerClient, Values, values_of
from fedsim.registry import Component, Registry
from fedsim.run_setup import RunSetup
from fedsim.units import DECIBELS, JOULES, JOULES_PER_BIT, JOULES_PER_FLOP, WATTS

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
Power = Annotated[ClientValues, PerClient(ge=0), WATTS]
EnergyOfBits = Annotated[ClientValues, PerClient(ge=0), JOULES_PER_BIT]


class Energy(Capable, Protocol):
    """A scenario's law of energy: settings that build the batteries of one run.

    Attributes
    ----------
    may_run_empty : whether a battery may run empty during a participation
    requires : ``"model-bits"`` if a bit costs energy; ``"samples"`` and ``"flops"`` if an operation does

    Examples
    --------
    >>> from fedsim.devices import NoEnergy
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> law: Energy = NoEnergy()
    >>> law.may_run_empty, law.build(RunSetup(10, Streams(0))) is None
    (False, True)
    """

    may_run_empty: ClassVar[bool]

    def build(self, run: RunSetup) -> Batteries | None:
        """Return the batteries of one run, or None where energy is not modelled.

        Parameters
        ----------
        run : what a part may read of its run
        """
        ...


ENERGY: Final = Contract("energy law", Energy, {"build": OptionalOf(InstanceOf(Batteries))})


class NoEnergy(Component):
    """Energy is not modelled: no participation costs energy and no battery runs empty.

    Examples
    --------
    >>> from fedsim.devices import Devices
    >>> from fedsim.run_setup import RunSetup
    >>> from fedsim.streams import Streams
    >>> Devices().energy.build(RunSetup(10, Streams(0))) is None
    True
    """

    may_run_empty: ClassVar[bool] = False
    requires: ClassVar[frozenset[str]] = frozenset()

    def build(self, run: RunSetup) -> None:
        return


class Battery(Component):
    """Every device has a battery that transfers and work discharge, and that recharges between participations.

    A participation costs, for the messages received and sent, ``bits * J/bit``, the seconds on the air times the power
    of the radio, and the seconds of the message times `base_w`. Its work costs either the operations times
    `compute_j_per_flop` or the seconds times `compute_w`; exactly one of the two is given. Seconds on the air are those
    in which the client's own bits are carried, and those of a connection's set-up. Access, propagation, silences of a
    duty cycle, waits for a satellite, holes of a trace and the shares of others are not on the air; a share of a band
    counts as that share of the time. Waiting in a queue costs nothing. When the battery is empty the client drops out
    at that instant. A transfer over shared links is opened for the bits that the battery can pay, and the client drops
    out when the last of them has arrived, or when seconds have cost the rest, known to a thousandth. So the rule
    ``"minimum-makespan"``, which splits by size, counts only these bits, and of a multicast the client receives only
    the beginning. Between two participations the charge changes by ``charge_w - idle_w`` watts and stays within 0 and
    the capacity.

    The defaults of the radio are the slopes of the LTE power model of Huang, Qian, Gerber, Mao, Sen and Spatscheck, "A
    close examination of performance and power characteristics of 4G LTE networks", MobiSys 2012: 51.97 mW for every
    Mbit/s down and 438.39 mW for every Mbit/s up. Their base power while the radio is on is `base_w` = 1.29. With these
    prices a client far from its base station pays what one beside it pays. Where distance matters, state a power:
    `receive_w` and `transmit_w`, or for a sender the radiated `transmit_power_dbm`, whose power is ``P /
    amplifier_efficiency + circuit_w`` (Auer et al., "How much energy is needed to run a wireless network?", IEEE
    Wireless Communications 18(5), 2011, without load dependence). A direction with a power has no price of a bit by
    default. Where a selector allocates powers (`fedsim.selectors.Allocation`) and seconds of sending cost energy, a
    client draws ``P / amplifier_efficiency + circuit_w`` with the power P that it was given, in place of `transmit_w`
    too; a price of bits stays as it is. The capacity and the price of work differ between devices and have no default:
    a phone's 3,000 mAh at 3.85 V are 41.6 kJ.

    Powers, prices, efficiencies, the capacity and the least charge may have a value for each client
    (`fedsim.per_client`).

    Attributes
    ----------
    capacity_j : energy of a full battery
    initial_from, initial_to : charge at time 0 as a share of the capacity, drawn uniformly for each client
    receive_j_per_bit, transmit_j_per_bit : energy of a bit of the downlink and of the uplink; the defaults hold where
        the direction has no power
    receive_w, transmit_w : power of the radio while it receives, and while it sends
    base_w : power of the radio for as long as a message lasts, also while nothing is on the air
    transmit_power_dbm : radiated power while it sends, in place of `transmit_w`
    amplifier_efficiency : radiated power over the power that the amplifier draws
    circuit_w : power of a sender beside its amplifier
    compute_j_per_flop : energy of an operation; the learner counts the operations, see `fedsim.learning.models.flops`
    compute_w : power of work
    idle_w : power of a client that takes no part in a round
    charge_w : power of the charger of a client that takes no part in a round
    least_charge : share of the capacity below which a client is no candidate
        By default 0.15, the level at which Android calls a battery low (AOSP, ``config_lowBatteryWarningLevel``), and
        at which its job scheduler holds back work that asks for a battery that is not low.
    """

    may_run_empty: ClassVar[bool] = True

    capacity_j: Annotated[ClientValues, PerClient(gt=0), JOULES]
    initial_from: Share = 1.0
    initial_to: Share = 1.0
    receive_j_per_bit: EnergyOfBits = 5.197e-8
    transmit_j_per_bit: EnergyOfBits = 4.3839e-7
    receive_w: Power = 0.0
    transmit_w: Power = 0.0
    base_w: Power = 0.0
    transmit_power_dbm: Annotated[ClientValues, PerClient(ge=-100, le=100), DECIBELS] | None = None
    amplifier_efficiency: Annotated[ClientValues, PerClient(gt=0, le=1)] = 0.35
    circuit_w: Power = 0.0
    compute_j_per_flop: Annotated[ClientValues, PerClient(ge=0), JOULES_PER_FLOP] | None = None
    compute_w: Power | None = None
    idle_w: Power = 0.0
    charge_w: Power = 0.0
    least_charge: Annotated[ClientValues, PerClient(gt=0, le=1)] = 0.15

    @classmethod
    def _completed(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Let the default price of a bit hold only where its direction has no power."""
        has_w = {name: options.get(name) not in (None, 0) for name in ("receive_w", "transmit_w")}
        sends = has_w["transmit_w"] or options.get("transmit_power_dbm") is not None
        free = dict.fromkeys(["receive_j_per_bit"] * has_w["receive_w"] + ["transmit_j_per_bit"] * sends, 0.0)
        return {**free, **options}

    @property
    def requires(self) -> frozenset[str]:
        bits = set() if self.receive_j_per_bit == 0 and self.transmit_j_per_bit == 0 else {MODEL_BITS}
        return frozenset(bits if self.compute_j_per_flop is None else bits | {SAMPLES, FLOPS})

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.compute_j_per_flop is None) == (self.compute_w is None):
            given = "neither" if self.compute_w is None else "both"
            raise ValueError(f"{given} of compute_j_per_flop and compute_w is given; allowed: exactly one of the two")
        if self.transmit_power_dbm is not None and self.transmit_w != 0.0:
            raise ValueError("both of transmit_w and transmit_power_dbm are given; allowed: one of the two")
        if self.initial_from > self.initial_to:
            raise ValueError(
                f"initial_from = {self.initial_from} is not allowed; it must be at most initial_to = {self.initial_to}"
            )
        return self

    def build(self, run: RunSetup) -> Batteries:
        def of(name: str) -> Values:
            return values_of(self, name, run.clients, run.streams, "devices.energy")

        sample_j: Values = 0.0
        if self.compute_j_per_flop is not None:
            if run.flops_per_sample is None:
                raise ScenarioError(
                    "devices.energy: compute_j_per_flop needs a learner that counts the operations per sample"
                )
            sample_j = of("compute_j_per_flop") * run.flops_per_sample
        prices = Prices(
            receive_w=of("receive_w"),
            transmit_w=of("transmit_w"),
            base_w=of("base_w"),
            receive_j_per_bit=of("receive_j_per_bit"),
            transmit_j_per_bit=of("transmit_j_per_bit"),
            sample_j=sample_j,
            compute_w=0.0 if self.compute_w is None else of("compute_w"),
            amplifier_efficiency=of("amplifier_efficiency"),
            circuit_w=of("circuit_w"),
        )
        if self.transmit_power_dbm is not None:
            prices = replace(prices, transmit_w=prices.sending_w(of("transmit_power_dbm")))
        u = run.streams.uniform("battery-charge", np.arange(run.clients))
        initial, capacity_j = self.initial_from + (self.initial_to - self.initial_from) * u, of("capacity_j")
        return Batteries(
            prices,
            capacity_j=capacity_j,
            idle_gain_w=of("charge_w") - of("idle_w"),
            least_j=of("least_charge") * capacity_j,
            charge_j=capacity_j * initial,
        )
