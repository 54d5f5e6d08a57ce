"""The spectrum of a cell on the clock, shared by its clients; downlink and uplink are separate.

**Fading.** ``"drawn"``, the default: the bits of a share are the integral of its rate over the fading blocks of its own
client, the draws that a dedicated bandwidth has (`fedsim.network.medium.drawn`). ``"mean"``: a share carries its hertz
times the client's mean spectral efficiency over fading. That is the law of large numbers for transfers that are long
against the coherence time, and a change costs O(log n); all uploads of a client under the same conditions take the same
time. The rules of Wi-Fi, ``"rate-fair"`` and ``"dcf"``, and those of the user count work in Hz s, so that means always
count.

**Power.** A base station spreads its power evenly over the whole band: the SNR is the same in every share. A phone has
what its link's `power_control` says (`fedsim.network.radio.shares.power_control`), by default all its power in its own
share, where noise and interference are as much less as the share is smaller. That holds for the rules that divide the
band, ``"equal"`` and ``"minimum-makespan"``. Under the other rules a client that is served has the whole band, and a
rule of the user's own counts work at the SNR of the whole band.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from pydantic_core import core_schema
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray, numbers_of
from fedsim.foreign import Stateful
from fedsim.network.medium.delayed import Delay, DelayedReception
from fedsim.network.medium.disciplines import DISCIPLINE, Discipline, MakespanWithPower
from fedsim.network.medium.drawn import DrawnSpectrum
from fedsim.network.medium.drawn_jobs import DrawnTransfer
from fedsim.network.medium.drawn_rules import (
    BandRule,
    BestGainTime,
    EqualBand,
    FairTime,
    FirstComeTime,
    MakespanBand,
    TimeRule,
)
from fedsim.network.medium.gain_sharing import EqualWithPower, ProportionalFair
from fedsim.network.medium.multicast import Multicast
from fedsim.network.medium.spectrum import SharedSpectrum, SpectrumTransfer
from fedsim.network.radio.channel import Channel
from fedsim.network.transfers import SharedMedium, SpectrumBook, Transfer, Wait
from fedsim.registry import Registry, Slot, refusal

SHARINGS: Final = Registry(
    "sharing rule",
    "fedsim.sharings",
    ("prepare", "join", "leave", "advance", "served", "occupied", "next_end", "in_service", "rate_hz"),
    {
        "equal": "fedsim.network.medium.disciplines:EqualSharing",
        "proportional-fair": "fedsim.network.medium.gain_sharing:ProportionalFair",
        "max-relative-snr": "fedsim.network.medium.gain_sharing:MaxRelativeSnr",
        "first-come": "fedsim.network.medium.disciplines:FirstCome",
        "minimum-makespan": "fedsim.network.medium.disciplines:MinimumMakespan",
        "rate-fair": "fedsim.network.medium.wifi:RateFair",
        "dcf": "fedsim.network.medium.wifi:Dcf",
    },
    attributes=("asked_at_each_join",),
    stateful="fedsim.foreign:Stateful",
)

Sharing = str | Stateful
"""The name of a rule, or how to build a discipline that has options or was handed over as an object."""


FadingInShares = Literal["drawn", "mean"]
"""Whether the bits of a share are integrated over the client's fading blocks, or counted at its mean efficiency."""


@dataclass(frozen=True)
class SharingSlot(Slot):
    """Annotation of a field that holds a sharing rule."""

    words: tuple[str, ...] = ("dedicated",)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.make, serialization=core_schema.plain_serializer_function_ser_schema(self._describe)
        )

    def make(self, value: Any) -> Sharing:
        if isinstance(value, Mapping) and set(value) == {"kind"}:
            value = value["kind"]
        names = [*self.words, *self.registry.builtin]
        if isinstance(value, str):
            if value in names:
                return value
            if ":" not in value and value not in self.registry.kinds():
                raise refusal(
                    "unknown_kind", "input should be {names} or 'module:Class'", names=", ".join(map(repr, names))
                )
        rule: Stateful = self.registry.make(value)
        plain = not rule.content and all(option is None for option in rule.options.values())
        return rule.kind if plain else rule

    def _describe(self, value: Sharing) -> Any:
        return value if isinstance(value, str) else self.registry.describe(value)


class CellMedium(SharedMedium):
    def __init__(
        self,
        env: Environment,
        channels: tuple[Channel, Channel],
        sharing: tuple[Sharing, Sharing],
        serving: IntArray,
        delay_s: tuple[FloatArray, FloatArray],
        fading: tuple[FadingInShares, FadingInShares],
        before_s: tuple[float, float],
    ) -> None:
        self._down, self._up = (
            Direction(env, channel, rule, serving, way_s, read, wait_s)
            for channel, rule, way_s, read, wait_s in zip(channels, sharing, delay_s, fading, before_s, strict=True)
        )

    def downlink(self, client: int, bits: float) -> Transfer:
        return self._down.send(client, bits)

    def uplink(self, client: int, bits: float) -> Transfer:
        return self._up.send(client, bits)

    def start_after(self, wait: Wait, way: int, client: int, bits: float) -> Transfer:
        return (self._up if way else self._down).send_after(wait, client, bits)

    def count_air(self) -> None:
        for medium in (*self._down.media.values(), *self._up.media.values()):
            medium.count_air()

    def books(self) -> dict[str, SpectrumBook]:
        directions = {"downlink": self._down, "uplink": self._up}
        return {
            f"{name} of site {site}": medium.book()
            for name, direction in directions.items()
            for site, medium in direction.media.items()
        }


Make = Callable[[int, float, float], SpectrumTransfer | DrawnTransfer | DelayedReception]
"""Makes the transfer of a client, which has not started: its id, the bits, and the propagation delay."""


class Direction:
    """One direction of a cell, with a spectrum for each serving site."""

    def __init__(
        self,
        env: Environment,
        channel: Channel,
        rule: Sharing,
        serving: IntArray,
        delay_s: FloatArray,
        fading: FadingInShares,
        before_s: float,
    ) -> None:
        self._env = env
        self._before = Delay(env, before_s) if before_s else None
        self._make: Mapping[int, Make] = {}
        self.media: Mapping[int, SharedSpectrum | DrawnSpectrum] = {}
        sites = np.unique(serving).tolist() if rule != "dedicated" else []
        if sites:
            self._efficiency = numbers_of(channel.ergodic_rate_bps / channel.bandwidth_hz)
            self._delay_s, self._site = numbers_of(delay_s), numbers_of(serving)
        if rule in ("multicast", "multicast-rateless"):
            faded = channel if rule == "multicast" else None
            casts = {site: Multicast(env, channel.bandwidth_hz, faded) for site in sites}
            self.media = {site: cast.medium for site, cast in casts.items()}
            self._make = {site: self._cast(cast) for site, cast in casts.items()}
        elif fading == "drawn" and (drawn := _drawn_rule(rule)) is not None:
            media = {site: DrawnSpectrum(env, channel, drawn(channel)) for site in sites}
            self.media, self._make = media, {site: medium.make for site, medium in media.items()}
        elif sites:
            shared = {site: SharedSpectrum(env, channel.bandwidth_hz, _discipline(channel, rule)) for site in sites}
            self.media, self._make = shared, {site: self._by_efficiency(medium) for site, medium in shared.items()}

    def send(self, client: int, bits: float) -> Transfer:
        if not self._make:
            raise ValueError("this direction has dedicated bandwidth; ask the links how long a transfer takes")
        transfer = self._make[self._site[client]](client, bits, self._delay_s[client])
        if self._before is None:
            transfer.begin()
        else:
            self._before.hold(transfer.begin)
        return transfer

    def send_after(self, wait: Wait, client: int, bits: float) -> Transfer:
        transfer = self._make[self._site[client]](client, bits, self._delay_s[client])
        wait.hold(transfer.begin if self._before is None else partial(self._before.hold, transfer.begin))
        return transfer

    def _by_efficiency(self, sender: SharedSpectrum) -> Make:
        efficiency = self._efficiency
        return lambda client, bits, delay_s: sender.make(bits, efficiency[client], delay_s)

    def _cast(self, sender: Multicast) -> Make:
        env, efficiency = self._env, self._efficiency
        return lambda client, bits, delay_s: DelayedReception(
            env, partial(sender.send, bits, efficiency[client], delay_s, client)
        )


def _drawn_rule(rule: Sharing) -> Callable[[Channel], BandRule | TimeRule] | None:
    """Return what makes a rule over drawn fading; None for a user's own, and for those of Wi-Fi."""
    kind = rule if isinstance(rule, str) else rule.kind
    if kind == "proportional-fair":
        fair: ProportionalFair = SHARINGS.make(rule).build()
        return lambda channel: FairTime(channel, fair.window_s)
    return _DRAWN.get(kind)


def _discipline(channel: Channel, rule: Sharing) -> Discipline:
    if isinstance(rule, str) and rule in _POWERED and channel.share_gain is not None:
        found: Discipline = _POWERED[rule]()
    else:
        found = DISCIPLINE.checked(SHARINGS.make(rule).build())
    found.prepare(channel)
    return found


_DRAWN: Final[Mapping[str, Callable[[Channel], BandRule | TimeRule]]] = {
    "equal": EqualBand,
    "first-come": FirstComeTime,
    "minimum-makespan": MakespanBand,
    "max-relative-snr": BestGainTime,
}
_POWERED: Final[Mapping[str, Callable[[], Discipline]]] = {
    "equal": EqualWithPower,
    "minimum-makespan": MakespanWithPower,
}
"""Rules that divide the band, where a share has more power for a hertz."""
