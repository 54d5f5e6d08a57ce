"""Private releases in the tables: each with its noise, and the noise and the signal in what rounds aggregate."""

import math
from collections.abc import Mapping
from copy import copy

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.errors import ScenarioError
from fedsim.history.outcomes import NO_VALUE
from fedsim.learning import Learner
from fedsim.privacy import ReleaseFacts
from fedsim.privacy.central import ServerNoise, largest_weight
from fedsim.rounds.effects.contract import BesidePhases, Effect
from fedsim.rounds.effects.server_port import Aggregated, Tables
from fedsim.rounds.plan import Plan


class Releases(BesidePhases):
    """Records releases and the noise that the server adds; with a learner also noise over signal, and clipping.

    Noise of the server is for weights that a selector does not prescribe; ``prescribing`` names one that may.
    """

    def __init__(self, facts: ReleaseFacts, learner: Learner | None = None, prescribing: str = "") -> None:
        self._facts, self.learner, self._prescribing = facts, learner, prescribing
        self._above: list[Releases] = []
        self._energies, self._noise = np.zeros(4), list[ServerNoise]()

    def at_edge(self, member: IntArray) -> Effect:
        mine = copy(self)
        mine._above, mine._energies, mine._noise = [self], np.zeros(4), []
        return mine

    def plan(self, plan: Plan) -> None:
        """Refuse weights that a selector has prescribed under noise of the server."""
        noised = self._facts.server is not None and self._prescribing
        if noised and plan.cohort is not None and plan.cohort.weights is not None:
            raise ScenarioError(
                f"selector: {self._prescribing} is not allowed; it prescribes weights, and the noise of a server "
                "(privacy.where = 'server') is for equal ones; allowed: a selector that prescribes none, or "
                "privacy.where = 'client'"
            )

    def recorded(self, tables: Tables, plan: Plan, members: IntArray) -> None:
        places = [i for i in members.tolist() if i in plan.releases]
        if not places:
            return
        releases = [plan.releases[i] for i in places]
        epsilon = np.array([release.epsilon for release in releases])
        number = np.array([release.index for release in releases])
        tables.recorder.add_columns(
            "releases",
            round=plan.number,
            edge=tables.edge,
            client=plan.client[places],
            number=number,
            epsilon=epsilon,
            spent=np.array([plan.spent[i] for i in places]),
            **self._facts.columns(epsilon, number),
        )

    def aggregated(self, aggregated: Aggregated) -> None:
        if self._facts.server is not None:
            epsilon = [plan.releases[i].epsilon for plan, members in aggregated.members for i in members.tolist()]
            self._noise = [self._facts.server.noise_of(epsilon, aggregated.client, aggregated.weight)]
        if self.learner is not None:
            self._energies = self._energies + self._measured(self.learner, aggregated)

    def of_round(self, tables: Tables, number: int) -> Mapping[str, float | None]:
        """Return noise over signal and the share of clipped updates, and record the noise that the server has added."""
        for added in self._noise:
            tables.recorder.add_columns(
                "releases",
                round=number,
                edge=tables.edge,
                client=np.array([NO_VALUE]),
                epsilon=added.epsilon,
                clipping_norm=added.clipping_norm,
                sensitivity=added.sensitivity,
                noise_scale=added.scale,
            )
        noise, signal, clipped, used = self._energies.tolist()
        for above in self._above:
            above._energies = above._energies + self._energies
        self._energies, self._noise = np.zeros(4), []
        return {"noise_to_signal": _ratio(noise, signal), "clipped_share": _ratio(clipped, used)}

    def _measured(self, learner: Learner, aggregated: Aggregated) -> FloatArray:
        """Return the expected energies of noise and signal, how many updates are clipped, and how many there are.

        Energies are sums over the updates used. Where the server adds the noise, they are those of its aggregate: the
        noise of one update of the least epsilon, times the largest sum of weights of one client, and the sum of the
        clipped updates, each times its weight.
        """
        places = np.flatnonzero(aggregated.weight > 0)
        used, needs = [aggregated.updates[i] for i in places.tolist()], ("noise_energy", "signal_energy", "clipped")
        if not self._noise:
            found = learner.measure(used, needs)
            return np.array([*(float(found[name].sum()) for name in needs), len(used)])
        found = learner.measure(used, (*needs, "update"))
        client, weight = aggregated.client[places], aggregated.weight[places]
        clipped_sum = np.zeros(found["update"].shape[1])
        for share, update in zip(weight.tolist(), found["update"], strict=True):
            clipped_sum += share * update.astype(np.float64)
        noise = largest_weight(client, weight) ** 2 * float(found["noise_energy"].max(initial=0.0))
        signal, clipped = float(np.square(clipped_sum).sum()), float(found["clipped"].sum())
        return np.array([noise, signal, clipped, len(used)])


def _ratio(noise: float, signal: float) -> float | None:
    """Return noise over signal; None where that is no finite number."""
    ratio = noise / signal if signal > 0 else math.nan
    return ratio if math.isfinite(ratio) else None
