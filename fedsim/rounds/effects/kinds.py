"""Effects of a scenario: settings, each of which builds the effect of one run."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from fedsim.answers import Contract, PartOf
from fedsim.registry import Component, Registry
from fedsim.rounds.effects.contract import EFFECT, Effect
from fedsim.run_setup import RunSetup

EFFECTS: Final = Registry(
    "effect",
    "fedsim.effects",
    ("build",),
    {
        "background-traffic": "fedsim.rounds.effects.background_traffic:BackgroundTraffic",
        "duty-cycle": "fedsim.rounds.effects.duty_cycle:DutyCycle",
    },
    attributes=("may_end",),
)


class EffectSettings(Component):
    """Settings of an effect, as they stand in ``rounds.effects``.

    Attributes
    ----------
    may_end : whether the effect may end participations; a policy that cannot lose clients is then refused

    Examples
    --------
    >>> from fedsim.rounds import Effect, EffectSettings
    >>> class Silent(EffectSettings):
    ...     def build(self, run):
    ...         return Effect()
    >>> Silent().may_end, EFFECTS.make({"kind": "duty-cycle", "share": 0.01}).share
    (False, 0.01)
    """

    may_end: ClassVar[bool] = False

    def build(self, run: RunSetup) -> Effect:
        """Return the effect of one run, which may store what it needs for the run's clients.

        Parameters
        ----------
        run : what a part may read of its run
        """
        raise NotImplementedError

    def effects(self, run: Any) -> Sequence[Effect]:
        """Return the effect alone.

        Parameters
        ----------
        run : that it is for
        """
        return [EFFECT_SETTINGS.checked(self).build(run)]


EFFECT_SETTINGS: Final = Contract("effect settings", EffectSettings, {"build": PartOf(Effect, EFFECT)})
