"""LoRa: sensors that send packets of a few bytes at the slowest rate that they need, for a hundredth of the time.

Streams: those of the path loss and of the shadowing.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Annotated, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import MODEL_BITS
from fedsim.clock import Environment
from fedsim.network.cell.cell import Cell
from fedsim.network.contracts import Directions, LinkFacts, Links
from fedsim.network.medium.collisions.aloha import AlohaMedium, Stations
from fedsim.network.radio.channel import mean_snr
from fedsim.network.radio.contracts import PathLoss
from fedsim.network.radio.link_budget import NoiseFigureDb
from fedsim.network.radio.path_loss import PATH_LOSSES, LogDistance
from fedsim.network.radio.shadowing import SHADOWINGS, IndependentShadowing, Shadowing
from fedsim.network.transfers import SharedMedium
from fedsim.per_client import ClientValues, PerClient, values_of
from fedsim.registry import Component, Slot
from fedsim.run_setup import RunSetup
from fedsim.units import DECIBELS, SPEED_OF_LIGHT_M_PER_S, Decibels, Hertz, Positive, linear_to_db

FACTORS: Final = np.arange(7, 13)
"""Spreading factors, from the fastest."""
LEAST_SNR_DB: Final = np.array([-7.5, -10.0, -12.5, -15.0, -17.5, -20.0])
"""SNR that each needs: data sheet of the SX1276, table 13."""
MOST_BYTES: Final = np.array([222, 222, 115, 51, 51, 51])
"""Application payload of a packet in Europe: LoRaWAN Regional Parameters RP002, EU863-870, with repeaters."""
_MAC_BYTES: Final = 13
_LONG_SYMBOL_S: Final = 0.016


def airtime_s(
    payload_bytes: FloatArray | IntArray, factor: IntArray, bandwidth_hz: float, coding_rate: int, preamble: int
) -> FloatArray:
    """Return the time on air of packets with an explicit header and a checksum, of the shape of both arrays.

    Semtech, "LoRa modem designer's guide", AN1200.13, section 4: ``preamble + 4.25`` symbols, and
    ``8 + max(ceil((8 PL - 4 SF + 28 + 16) / (4 (SF - 2 DE))) (CR + 4), 0)``, where DE is 1 for symbols above 16 ms.
    """
    symbol_s = 2.0**factor / bandwidth_hz
    slow = np.where(symbol_s > _LONG_SYMBOL_S, 2, 0)
    blocks = np.ceil((8 * np.asarray(payload_bytes) - 4 * factor + 44) / (4 * (factor - slow)))
    return np.asarray((preamble + 4.25 + 8 + np.maximum(blocks, 0) * (coding_rate + 4)) * symbol_s)


class LoRa(Component):
    """A LoRaWAN gateway in the 868 MHz band.

    Each direction of a client has the fastest spreading factor whose SNR it exceeds by a margin, or the slowest that it
    can be received with. A message is cut into packets, the next of which is sent when the duty cycle allows it. What a
    client waits after the last packet is not counted, since another message follows after longer than that.

    Uplinks of the same spreading factor collide as in pure ALOHA (Bor, Roedig, Voigt and Alonso, "Do LoRa low-power
    wide-area networks scale?", ACM MSWiM 2016). Of two packets that overlap on a channel both are lost, unless one is
    received 6 dB above the other. A lost one is sent again when the duty cycle allows it. With d for the duty cycle, c
    channels and h clients that can destroy a client's packets, ``(1 - 2 d / c)^h`` of them get through, and a message
    takes as many times longer on average. Time counts with this mean. Spreading factors are orthogonal, and downlinks
    have a channel of their own each. What is simpler than in that study: a packet that overlaps only with the first
    symbols of another's preamble is lost too.

    Path loss and shadowing: Petajajarvi et al., "On the coverage of LPWANs", ITST 2015 (868 MHz, Oulu, on land).
    Powers and duty cycles: 14 dBm with 1 % for sensors, and 27 dBm with 10 % for the gateway (ERC Recommendation
    70-03, annex 1, bands h1.4 and h1.6).

    Attributes
    ----------
    path_loss, shadowing, shadowing_sigma_db : as in a cell
    uplink_power_dbm, downlink_power_dbm : antenna gains included; one for all, or a value for each client
    noise_figure_db : of both receivers
    bandwidth_hz : of a channel
    coding_rate : 1 for 4/5 to 4 for 4/8
    preamble : symbols of the preamble
    margin_db : above the least SNR, where a faster factor is chosen
    uplink_duty_cycle, downlink_duty_cycle : greatest share of time in which packets are sent
    collisions : ``"aloha"``, or ``"none"`` for uplinks that do one another no harm
    channels : among which each packet of an uplink chooses; three are common to all networks of the band
    capture_db : by how much the stronger of two packets must exceed the other to be received
    """

    requires: ClassVar[frozenset[str]] = frozenset({MODEL_BITS})

    path_loss: Annotated[PathLoss, Slot(PATH_LOSSES)] = LogDistance(
        exponent=2.32, reference_loss_db=128.95, reference_distance_m=1000.0
    )
    shadowing: Annotated[Shadowing, Slot(SHADOWINGS)] = IndependentShadowing()
    shadowing_sigma_db: Annotated[Decibels, Field(ge=0, le=50)] = 7.8
    uplink_power_dbm: Annotated[ClientValues, PerClient(ge=-100, le=100), DECIBELS] = 14.0
    downlink_power_dbm: Annotated[ClientValues, PerClient(ge=-100, le=100), DECIBELS] = 27.0
    noise_figure_db: NoiseFigureDb = 6.0
    bandwidth_hz: Positive[Hertz] = 125e3
    coding_rate: Annotated[int, Field(ge=1, le=4)] = 1
    preamble: Annotated[int, Field(ge=6, le=65535)] = 8
    margin_db: Annotated[Decibels, Field(ge=0, le=50)] = 10.0
    uplink_duty_cycle: Annotated[float, Field(ge=1e-4, le=1)] = 0.01
    downlink_duty_cycle: Annotated[float, Field(ge=1e-4, le=1)] = 0.1
    collisions: Literal["aloha", "none"] = "aloha"
    channels: Annotated[int, Field(ge=1, le=1000)] = 3
    capture_db: Annotated[Decibels, Field(ge=0, le=100)] = 6.0

    @property
    def known_deviation(self) -> str:
        return (
            "downlinks have no common budget of the gateway (73 times too fast for 60 clients), and packets of a "
            "cohort that begins together collide as spread ones do (20 times too fast for one packet)"
        )

    @model_validator(mode="after")
    def _leaves_gaps(self) -> Self:
        if self.collisions == "aloha" and self.overlap >= 1.0:
            raise ValueError(
                f"uplink_duty_cycle = {self.uplink_duty_cycle} is not allowed with 1 channel, on which two clients of "
                "one spreading factor would destroy all packets of each other; allowed: below 0.5, more channels, or "
                "collisions = 'none'"
            )
        return self

    @property
    def overlap(self) -> float:
        """Probability that packets of two clients of one spreading factor overlap on a channel."""
        return min(2.0 * self.uplink_duty_cycle, 1.0) / self.channels

    def build(self, run: RunSetup) -> "LoRaLinks":
        radio = Cell(path_loss=self.path_loss, shadowing=self.shadowing, shadowing_sigma_db=self.shadowing_sigma_db)
        distance_m, loss_db = radio.losses(run.positions_m, np.zeros((1, 2)), run.streams)
        snr = [
            mean_snr(
                values_of(self, name, run.clients, run.streams, "network"),
                loss_db[:, 0],
                self.bandwidth_hz,
                self.noise_figure_db,
            )
            for name in ("downlink_power_dbm", "uplink_power_dbm")
        ]
        down, up = (self.factors(of) for of in snr)
        facts = LinkFacts(positions_m=run.positions_m, distance_m=distance_m[:, 0], snr=np.stack(snr))
        return LoRaLinks(self, down, up, facts, Directions(up=self.collisions == "aloha"))

    def factors(self, snr: FloatArray) -> IntArray:
        with np.errstate(divide="ignore"):
            above_db = linear_to_db(snr)[:, None] - LEAST_SNR_DB
        fast = np.where((above_db >= self.margin_db).any(axis=1), (above_db >= self.margin_db).argmax(axis=1), -1)
        return np.where(fast >= 0, FACTORS[fast], np.where(above_db[:, -1] >= 0, FACTORS[-1], 0)).astype(np.int64)

    def message_s(self, bits: float, factor: IntArray, duty_cycle: float) -> FloatArray:
        """Return the seconds from the first to the last bit; `inf` for a factor of 0."""
        before_s, last_s = self._packets_s(bits, factor, duty_cycle)
        return before_s + last_s

    def periods_s(self, bits: float, factor: IntArray, duty_cycle: float) -> tuple[FloatArray, FloatArray]:
        """Return the periods of a message's packets, and the part of the last one after it; as in `message_s`."""
        before_s, last_s = self._packets_s(bits, factor, duty_cycle)
        return before_s + last_s / duty_cycle, last_s / duty_cycle - last_s

    def full_packet_s(self, factor: IntArray) -> FloatArray:
        known = np.maximum(factor, FACTORS[0])
        size = MOST_BYTES[known - FACTORS[0]] + _MAC_BYTES
        return airtime_s(size, known, self.bandwidth_hz, self.coding_rate, self.preamble)

    def _packets_s(self, bits: float, factor: IntArray, duty_cycle: float) -> tuple[FloatArray, FloatArray]:
        """Return the periods of all packets but the last, `inf` for a factor of 0, and the time on air of the last."""
        known = np.maximum(factor, FACTORS[0])
        whole = MOST_BYTES[known - FACTORS[0]]
        size = math.ceil(bits / 8)
        packets = np.maximum(1, -(-size // whole))
        last = size - (packets - 1) * whole
        last_s = airtime_s(last + _MAC_BYTES, known, self.bandwidth_hz, self.coding_rate, self.preamble)
        return np.where(factor > 0, (packets - 1) * (self.full_packet_s(factor) / duty_cycle), np.inf), last_s


@dataclass(frozen=True)
class LoRaLinks(Links):
    network: LoRa
    down: IntArray
    up: IntArray
    facts: LinkFacts
    shared: Directions

    @cached_property
    def delay_s(self) -> FloatArray:
        return np.asarray(self.facts.distance_m) / SPEED_OF_LIGHT_M_PER_S

    def downlink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        sent_s = self.network.message_s(bits, self.down[client], self.network.downlink_duty_cycle)
        return sent_s + self.delay_s[client]

    def uplink_s(self, client: IntArray, draw: int, start_s: FloatArray, bits: float) -> FloatArray:
        sent_s = self.network.message_s(bits, self.up[client], self.network.uplink_duty_cycle)
        return sent_s + self.delay_s[client]

    def on_air_s(
        self, client: IntArray, draw: int, start_s: FloatArray, elapsed_s: FloatArray, bits: float, *, up: bool
    ) -> FloatArray:
        """Return the time of packets, which are spread evenly over that of the message."""
        whole_s = self.expected_on_air_s(bits, up=up)[client]
        takes_s = (self.uplink_s if up else self.downlink_s)(client, draw, start_s, bits) - self.delay_s[client]
        part = np.divide(elapsed_s, takes_s, out=np.ones(client.size), where=takes_s > elapsed_s)
        return np.asarray(np.minimum(whole_s * part, elapsed_s))

    def expected_on_air_s(self, bits: float, *, up: bool) -> FloatArray:
        duty = self.network.uplink_duty_cycle if up else self.network.downlink_duty_cycle
        whole_s, _ = self.network.periods_s(bits, self.up if up else self.down, duty)
        return np.asarray(duty * whole_s)

    def expected_downlink_s(self, bits: float) -> FloatArray:
        return self.network.message_s(bits, self.down, self.network.downlink_duty_cycle) + self.delay_s

    def expected_uplink_s(self, bits: float) -> FloatArray:
        return self.network.message_s(bits, self.up, self.network.uplink_duty_cycle) + self.delay_s

    def describe(self) -> LinkFacts:
        """Return facts whose rates are those of full packets under the duty cycle."""
        network, rates = self.network, []
        for factor, duty in ((self.down, network.downlink_duty_cycle), (self.up, network.uplink_duty_cycle)):
            bits = 8.0 * MOST_BYTES[np.maximum(factor, FACTORS[0]) - FACTORS[0]]
            full_s = network.full_packet_s(factor)
            rates.append(np.where(factor > 0, bits / full_s * duty, 0.0))
        return replace(self.facts, rate_bps=np.stack(rates))

    def open(self, env: Environment) -> SharedMedium:
        network, snr = self.network, np.asarray(self.facts.snr)
        with np.errstate(divide="ignore"):
            level_db = linear_to_db(snr[1])
        down, up = (
            Stations(factor, level_db, self.delay_s, duty, lru_cache(4)(partial(_periods_s, network, factor, duty)))
            for factor, duty in ((self.down, network.downlink_duty_cycle), (self.up, network.uplink_duty_cycle))
        )
        return AlohaMedium(env, down, up, network.overlap, network.capture_db)


def _periods_s(network: LoRa, factor: IntArray, duty_cycle: float, bits: float) -> tuple[FloatArray, FloatArray]:
    return network.periods_s(bits, factor, duty_cycle)
