"""What privacy adds to a server's tables: what uploads were charged, releases, and the noise in a round's model."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.history.outcomes import NO_VALUE
from fedsim.history.recorder import Recorder
from fedsim.learning import Update
from fedsim.privacy.central import ServerNoise, largest_weight
from fedsim.rounds.aggregation.rules import Arrivals
from fedsim.rounds.clients.cohort import CohortRun, Members
from fedsim.rounds.server.context import ServerContext

Energies = tuple[float, float, float, int]
"""Of noise and of signal in updates, how many of these were clipped, and how many there are."""
_NOTHING: Final[Energies] = 0.0, 0.0, 0.0, 0
FREE: Final = {"epsilon": 0.0}
"""Columns of participations whose uploads are charged by nothing."""
_NONE: Final = {"largest_leakage": 0.0, "mean_leakage": None, "noise_to_signal": None, "clipped_share": None}


class Charges:
    """The columns and rows of one server."""

    def __init__(self, recorder: Recorder, context: ServerContext, edge: int, member: IntArray | None) -> None:
        self._recorder, self._context, self._edge, self._member = recorder, context, edge, member
        self._accountant, self._facts = context.accountant, context.protection.releases
        self.energies = _NOTHING
        self._noise: ServerNoise | None = None
        self.watches = context.protection.noise_to_signal or (
            self._facts is not None and self._facts.server is not None
        )

    def begin(self) -> None:
        """Begin a round."""
        self.energies, self._noise = _NOTHING, None

    def add(self, run: CohortRun, rows: IntArray) -> None:
        """Record the releases of members at positions of a cohort."""
        places = [i for i in rows.tolist() if i in run.plan.releases]
        if self._facts is None or not places:
            return
        releases = [run.plan.releases[i] for i in places]
        epsilon = np.array([release.epsilon for release in releases])
        number = np.array([release.index for release in releases])
        self._recorder.add_columns(
            "releases",
            round=run.number,
            edge=self._edge,
            client=run.cohort.client[places],
            number=number,
            epsilon=epsilon,
            spent=np.array([run.plan.spent[i] for i in places]),
            **self._facts.columns(epsilon, number),
        )

    def aggregated(self, ready: Members, arrivals: Arrivals, weight: FloatArray, used: IntArray) -> None:
        """Take note of an aggregation, of the weights in it, and of the positions of the updates that were used."""
        context, facts = self._context, self._facts
        if facts is not None and facts.server is not None:
            epsilon = [run.plan.releases[i].epsilon for run, members in ready for i in members.tolist()]
            self._noise = facts.server.noise_of(epsilon, arrivals.client, weight)
        if context.protection.noise_to_signal:
            updates = [arrivals.updates[i] for i in used.tolist()]
            self.add_energies(self._energies(updates, arrivals.client[used], weight[used]))

    def add_energies(self, energies: Energies) -> None:
        """Add the energies of the noise and of the signal in updates that the present round has used."""
        noise, signal, clipped, used = self.energies
        self.energies = noise + energies[0], signal + energies[1], clipped + energies[2], used + energies[3]

    def of_round(self, number: int) -> dict[str, Any]:
        """Return the columns of a round that is over, and record the noise that the server has added."""
        noise, accountant, member = self._noise, self._accountant, self._member
        if noise is not None:
            self._recorder.add_columns(
                "releases",
                round=number,
                edge=self._edge,
                client=np.array([NO_VALUE]),
                epsilon=noise.epsilon,
                clipping_norm=noise.clipping_norm,
                sensitivity=noise.sensitivity,
                noise_scale=noise.scale,
            )
        if accountant is None:
            return _NONE
        spent = accountant.spent if member is None else accountant.spent[member]
        return {
            "largest_leakage": accountant.largest if member is None else float(spent.max()),
            "mean_leakage": float(spent.mean()),
            "noise_to_signal": _ratio(*self.energies[:2]),
            "clipped_share": _ratio(*self.energies[2:]),
        }

    def _energies(self, used: Sequence[Update], client: IntArray, weight: FloatArray) -> Energies:
        """Return the expected energies of noise and signal, how many updates are clipped, and how many there are.

        Energies are sums over the updates. Where the server adds the noise, they are those of its aggregate: the noise
        of one update of the least epsilon, times the largest sum of weights of one client, and the sum of the clipped
        updates, each times its weight.
        """
        needs = "noise_energy", "signal_energy", "clipped"
        if self._noise is None:
            found = self._context.learner.measure(used, needs)
            noise, signal, clipped = (float(found[name].sum()) for name in needs)
            return noise, signal, clipped, len(used)
        found = self._context.learner.measure(used, (*needs, "update"))
        clipped_sum = np.zeros(found["update"].shape[1])
        for share, update in zip(weight.tolist(), found["update"], strict=True):
            clipped_sum += share * update.astype(np.float64)
        noise = largest_weight(client, weight) ** 2 * float(found["noise_energy"].max(initial=0.0))
        return noise, float(np.square(clipped_sum).sum()), float(found["clipped"].sum()), len(used)


def _ratio(noise: float, signal: float) -> float | None:
    """Return noise over signal; None where that is no finite number."""
    ratio = noise / signal if signal > 0 else math.nan
    return ratio if math.isfinite(ratio) else None
