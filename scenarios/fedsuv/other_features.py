"""FedSUV with other features of its clients than the expected times of a participation.

python scenarios/fedsuv/tables.py --task cifar10_mobilenet --aggregation yogi --scale 0.25 --methods fedsuv
    --set 'selector={kind = "other_features:EachAnArm", cohort = 20, rho = 0.4, samples_per_round = 10}'
"""

from dataclasses import replace

import numpy as np

from fedsim.selectors import Cohort, FedSuv, RoundView


class EachAnArm(FedSuv):
    """No features: each client is an arm of its own, and an observation tells nothing of others."""

    columns: tuple[int, ...] = ()

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        """Return the cohort that FedSUV chooses where clients declare these columns alone."""
        return super().select(replace(view, features=view.features[:, self.columns]), rng)


class WithoutBandwidth(EachAnArm):
    """Expected seconds of work, and samples: like the paper's features, which have no bandwidth."""

    columns = (1, 3)
