"""Background traffic: others send over the uplink that clients of a site share."""

from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from fedsim.clock import Waiting
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import UPLINK
from fedsim.network.transfers import SharedMedium
from fedsim.rounds.effects.contract import BesidePhases, Effect
from fedsim.rounds.effects.kinds import EffectSettings
from fedsim.rounds.run import Run
from fedsim.run_setup import RunSetup
from fedsim.units import Bits, NonNegative, Positive, Seconds


class BackgroundTraffic(EffectSettings):
    """Some senders at a site send message after message over its shared uplink for a time.

    Each sender has the channel of the client of the site with the lowest id, and is treated as one more client by the
    network: equal shares, a turn in the queue. Uplinks that clients do not share are refused.

    Attributes
    ----------
    from_s, until_s : the time in which they send
    site : index of the site (`fedsim.network.Links.serving`); 0 where a network has no sites
    senders : messages at a time
    message_bits : size of a message, at least that of a packet of 1,250 bytes: each one is an event
    """

    from_s: NonNegative[Seconds]
    until_s: Positive[Seconds]
    site: Annotated[int, Field(ge=0)] = 0
    senders: Annotated[int, Field(ge=1)] = 1
    message_bits: Annotated[Bits, Field(ge=1e4)] = 1e6

    @model_validator(mode="after")
    def _lasts(self) -> "BackgroundTraffic":
        if self.until_s <= self.from_s:
            raise ValueError(f"until_s = {self.until_s} is not allowed; it must be above from_s = {self.from_s}")
        return self

    def build(self, run: RunSetup) -> Effect:
        return _Senders(self)


class _Senders(BesidePhases):
    def __init__(self, settings: BackgroundTraffic) -> None:
        self._settings = settings

    def begin(self, run: Run) -> None:
        site, serving = self._settings.site, run.links.serving
        at_site = np.arange(run.clients) if serving is None else np.flatnonzero(serving == site)
        sites = 1 if serving is None else int(serving.max()) + 1
        if not run.shared[UPLINK]:
            raise ScenarioError(
                "rounds.effects: background-traffic needs uplinks that clients share; allowed: a network whose uplinks "
                "have a sharing other than 'dedicated'"
            )
        if site >= sites or not at_site.size:
            raise ScenarioError(
                f"rounds.effects: background-traffic at site {site} is not allowed: the network has {sites} site(s), "
                "and a client must be served by it"
            )
        for _ in range(self._settings.senders):
            run.env.process(self._send(run, run.media[0], int(at_site[0])))

    def _send(self, run: Run, medium: SharedMedium, client: int) -> Waiting:
        yield run.env.timeout(self._settings.from_s)
        end: Any = run.env.timeout(self._settings.until_s - self._settings.from_s)
        while not end.processed:
            message = medium.uplink(client, self._settings.message_bits)
            yield message.done | end
            message.cancel()
