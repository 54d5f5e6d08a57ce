"""A cell whose clients share the spectrum, on the clock; up- and downlink are separate.

What a share carries is its hertz times the client's ergodic spectral efficiency, the mean over fading: how much of a
transfer falls into which fading block is known only when all who come and go are, and one number per client is what
lets one clock serve all. It is the law of large numbers for transfers that are long against the coherence time;
short ones vary less here than with dedicated bandwidth, where every block is looked at.

Power is spread evenly over the whole bandwidth, and a client's share of it carries its share of the power: the SNR
is the same in every share. (For the uplink this is cautious: a phone that puts all its power into a small share
would reach a higher SNR there.)

The rules are:

- ``"equal"``: all who transfer have the same share at every instant (`EqualSharing`).
- ``"proportional-fair"``: the scheduler serves in every block whoever's gain is largest against its own mean, which
  gives everybody the same share of time (and so of bandwidth) on average, in better blocks (`ProportionalFair`). What
  better blocks are worth follows from the cell's rate law at each client's own mean SNR (`DiversityGain`).
- ``"first-come"``: one after another with the whole bandwidth (`FirstCome`).
- ``"minimum-makespan"``: split so that all finish at the same instant (`MinimumMakespan`).
- ``"multicast"``: one transmission at the rate of the weakest (`Multicast`); downlink only. The weakest is the client
  with the least ergodic efficiency.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from simpy import Environment

from fedsim.arrays import FloatArray, IntArray
from fedsim.network.contracts import SharedMedium, SpectrumBook, Transfer
from fedsim.network.medium.disciplines import EqualSharing, FirstCome, MinimumMakespan
from fedsim.network.medium.multicast import Multicast
from fedsim.network.medium.proportional_fair import ProportionalFair
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.radio.channel import Channel

Sharing = Literal["dedicated", "equal", "proportional-fair", "first-come", "minimum-makespan"]

Rule = Sharing | Literal["multicast"]


class CellMedium(SharedMedium):
    """The spectrum of a cell on the clock of one run; each serving site has a spectrum of its own in each direction.

    Parameters
    ----------
    env : Environment
    channels : of the downlink and of the uplink
    sharing : rules of the downlink and of the uplink
    serving : index of the site that serves each client, shape (K,)
    delay_s : propagation delay of each client in seconds, shape (K,)
    """

    def __init__(
        self,
        env: Environment,
        channels: tuple[Channel, Channel],
        sharing: tuple[Rule, Rule],
        serving: IntArray,
        delay_s: FloatArray,
    ) -> None:
        self._down, self._up = (
            Direction(env, channel, rule, serving, delay_s) for channel, rule in zip(channels, sharing, strict=True)
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
    """One direction of a cell: a spectrum for each serving site; parameters as in `CellMedium`.

    Attributes
    ----------
    media : spectrum of each site; empty where bandwidth is dedicated
    """

    def __init__(self, env: Environment, channel: Channel, rule: Rule, serving: IntArray, delay_s: FloatArray) -> None:
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
        """Start a client's transfer."""
        if not self._senders:
            raise ValueError("this direction has dedicated bandwidth; ask the links how long a transfer takes")
        return self._senders[self._site[client]].send(bits, self._efficiency[client], self._delay_s[client])


def _maker(env: Environment, channel: Channel, rule: Rule) -> Callable[[], SharedSpectrum | Multicast]:
    """Return what makes the medium of one site."""
    if rule == "multicast":
        return lambda: Multicast(env, channel.bandwidth_hz)
    kinds = {
        "equal": EqualSharing,
        "proportional-fair": ProportionalFair,
        "first-come": FirstCome,
        "minimum-makespan": MinimumMakespan,
    }

    def make() -> SharedSpectrum:
        discipline = kinds[rule]()
        discipline.prepare(channel)
        return SharedSpectrum(env, channel.bandwidth_hz, discipline)

    return make
