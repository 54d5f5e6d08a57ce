"""EAFL: Oort's utility together with what batteries hold after a participation."""

from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, RoundView
from fedsim.selectors.oort.oort import Oort
from fedsim.selectors.options import Share
from fedsim.selectors.sampling import grown
from fedsim.units import Seconds


@dataclass(eq=False, repr=False, init=False)
class Eafl(Oort):
    """Exploit clients of high ``f utility + (1 - f) power``, explore as Oort does.

    The utility is Oort's (`fedsim.selectors.oort.oort.Oort`) over the greatest of the candidates that were tried. The
    power of a client is the share of its battery that a participation leaves: charge less the mean joules of a
    participation, over the capacity, at least 0.

    Parameters
    ----------
    cohort : int >= 1
        Number of clients per round; all candidates if there are no more than that.
    utility_share : float in [0, 1]
        f: 1 is Oort, 0 looks at batteries alone.
    **others
        As of `Oort`.

    Notes
    -----
    The reward is the paper's as its published descriptions have it; its text was not at hand. That both parts are
    brought to [0, 1], and the default of f, are fedsim's. A client declares its charge, its capacity and the joules of
    a participation. Without batteries every power is 1, and the method is Oort with a weaker preference for utility.
    """

    paper = (
        "Arouj and Abdelmoniem, Towards Energy-Aware Federated Learning on Battery-Powered Clients, Workshop on Data "
        "Privacy and Federated Learning Technologies for Mobile Edge Network (FedEdge) 2022"
    )
    communication = "a number up per update, and three numbers of its battery up per candidate"

    utility_share: Share = 0.25

    def __init__(
        self,
        cohort: int,
        utility_share: float = 0.25,
        alpha: float = 2.0,
        exploration: float = 0.9,
        exploration_decay: float = 0.98,
        exploration_least: float = 0.2,
        window: int = 20,
        pacer_step_s: Seconds | None = None,
    ) -> None:
        self.utility_share = utility_share
        self._power: FloatArray = np.ones(0)
        super().__init__(cohort, alpha, exploration, exploration_decay, exploration_least, window, pacer_step_s)

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        self._power = grown(self._power, view.clients, 1.0)
        self._power[view.client] = power_left(view)
        return super().select(view, rng)

    def utility(self, client: IntArray, round_: int) -> FloatArray:
        """Return the reward of tried clients; shape of ``client``."""
        worth = super().utility(client, round_)
        most = float(worth.max(initial=0.0))
        scaled = worth / most if most > 0 else worth
        return np.asarray(self.utility_share * scaled + (1.0 - self.utility_share) * self._power[client])


def power_left(view: RoundView) -> FloatArray:
    """Return the share of its battery that a participation leaves each candidate, in [0, 1], shape (n,)."""
    if view.charge_j is None or view.capacity_j is None or view.participation_j is None:
        return np.ones(view.client.size)
    left = (view.charge_j - view.participation_j) / view.capacity_j
    return np.asarray(np.clip(left, 0.0, 1.0))
