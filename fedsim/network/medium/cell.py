"""The spectrum of a cell on the clock, shared by its clients; downlink and uplink are separate.

A share carries its hertz times the client's ergodic spectral efficiency, the mean over fading: which part of a
transfer falls into which fading block is known only when all transfers are, and one number per client lets one clock
serve all. It is the law of large numbers for transfers that are long against the coherence time; short ones vary less
here than with dedicated bandwidth, where every block is looked at.

Power is spread evenly over the whole bandwidth, and a client's share of it carries its share of the power: the SNR
is the same in every share. (For the uplink this is cautious: a phone that puts all its power into a small share
would reach a higher SNR there.)

The page `fedsim/network/README.md` lists the rules by which a direction is shared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from pydantic_core import core_schema
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.contracts import SharedMedium, SpectrumBook, Transfer
from fedsim.network.medium.disciplines import DISCIPLINE, Discipline
from fedsim.network.medium.multicast import Multicast
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.radio.channel import Channel
from fedsim.registry import Recipe, Registry, Slot, refusal

SHARINGS: Final = Registry(
    "sharing rule",
    "fedsim.sharings",
    ("prepare", "join", "leave", "advance", "served", "next_end", "in_service", "rate_hz"),
    {
        "equal": "fedsim.network.medium.disciplines:EqualSharing",
        "proportional-fair": "fedsim.network.medium.proportional_fair:ProportionalFair",
        "first-come": "fedsim.network.medium.disciplines:FirstCome",
        "minimum-makespan": "fedsim.network.medium.disciplines:MinimumMakespan",
        "rate-fair": "fedsim.network.medium.wifi:RateFair",
        "dcf": "fedsim.network.medium.wifi:Dcf",
    },
    attributes=("asked_at_each_join",),
)

Sharing = str | Recipe
"""The name of a rule, or how to build a discipline that has options or was handed over as an object."""


@dataclass(frozen=True)
class SharingSlot(Slot):
    """Annotation of a field that holds a sharing rule.

    Attributes
    ----------
    catalogue, recipe : as in `Slot`
    words : names of the rules that are no disciplines
    """

    words: tuple[str, ...] = ("dedicated",)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        """Validate with `make`, and write a name as it is."""
        return core_schema.no_info_plain_validator_function(
            self.make, serialization=core_schema.plain_serializer_function_ser_schema(self._describe)
        )

    def make(self, value: Any) -> Sharing:
        """Return the rule that a scenario's value describes."""
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
        recipe = self.registry.make_recipe(value)
        plain = recipe.prototype is None and all(option is None for option in recipe.options.values())
        return recipe.kind if plain else recipe

    def _describe(self, value: Sharing) -> Any:
        return value if isinstance(value, str) else self.registry.describe(value)


class CellMedium(SharedMedium):
    """The spectrum of a cell on the clock of one run; each serving site has a spectrum of its own in each direction.

    Parameters
    ----------
    env : Environment
    channels : of the downlink and of the uplink
    sharing : rules of the downlink and of the uplink
    serving : index of the site that serves each client, shape (K,)
    delay_s : seconds between the last bit's transmission and its arrival, of each client's downlink and uplink, each
        of shape (K,)
    """

    def __init__(
        self,
        env: Environment,
        channels: tuple[Channel, Channel],
        sharing: tuple[Sharing, Sharing],
        serving: IntArray,
        delay_s: tuple[FloatArray, FloatArray],
    ) -> None:
        self._down, self._up = (
            Direction(env, channel, rule, serving, way_s)
            for channel, rule, way_s in zip(channels, sharing, delay_s, strict=True)
        )

    def downlink(self, client: int, bits: float) -> Transfer:
        """Start a transfer from the server to a client."""
        return self._down.send(client, bits)

    def uplink(self, client: int, bits: float) -> Transfer:
        """Start a transfer from a client to the server."""
        return self._up.send(client, bits)

    def books(self) -> dict[str, SpectrumBook]:
        """Return the work done in each shared direction of each site."""
        directions = {"downlink": self._down, "uplink": self._up}
        return {
            f"{name} of site {site}": medium.book()
            for name, direction in directions.items()
            for site, medium in direction.media.items()
        }


class Direction:
    """One direction of a cell: a spectrum for each serving site; parameters and shapes as in `CellMedium`, of one way.

    Attributes
    ----------
    media : spectrum of each site; empty where bandwidth is dedicated
    """

    def __init__(
        self, env: Environment, channel: Channel, rule: Sharing, serving: IntArray, delay_s: FloatArray
    ) -> None:
        self._senders: dict[int, SharedSpectrum | Multicast] = {}
        if rule != "dedicated":
            make = _maker(env, channel, rule)
            self._senders = {site: make() for site in np.unique(serving).tolist()}
            self._efficiency: list[float] = (channel.ergodic_rate_bps / channel.bandwidth_hz).tolist()
            self._delay_s: list[float] = delay_s.tolist()
            self._site: list[int] = serving.tolist()
        self.media = {
            site: sender.medium if isinstance(sender, Multicast) else sender for site, sender in self._senders.items()
        }

    def send(self, client: int, bits: float) -> Transfer:
        """Start a client's transfer.

        Parameters
        ----------
        client : id
        bits : size of the message, >= 0
        """
        if not self._senders:
            raise ValueError("this direction has dedicated bandwidth; ask the links how long a transfer takes")
        sender, efficiency, delay_s = self._senders[self._site[client]], self._efficiency[client], self._delay_s[client]
        if isinstance(sender, Multicast):
            return sender.send(bits, efficiency, delay_s, client)
        return sender.send(bits, efficiency, delay_s)


def _maker(env: Environment, channel: Channel, rule: Sharing) -> Callable[[], SharedSpectrum | Multicast]:
    """Return a function that makes the sender of one site."""
    if rule == "multicast":
        return lambda: Multicast(env, channel.bandwidth_hz, channel)
    if rule == "multicast-rateless":
        return lambda: Multicast(env, channel.bandwidth_hz)
    recipe = SHARINGS.make_recipe(rule)

    def make() -> SharedSpectrum:
        discipline: Discipline = DISCIPLINE.checked(recipe.build())
        discipline.prepare(channel)
        return SharedSpectrum(env, channel.bandwidth_hz, discipline)

    return make
