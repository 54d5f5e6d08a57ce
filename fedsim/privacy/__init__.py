"""Local differential privacy of uploads: budgets, mechanisms and the accountant."""

from typing import Annotated

from fedsim.privacy.accountant import PrivacyAccountant
from fedsim.privacy.budget import BUDGETS, Budget, GeometricBudget
from fedsim.privacy.mechanisms import MECHANISMS, CoordinateClampLaplace, L1ClippedLaplace, Mechanism
from fedsim.registry import Settings, Slot

__all__ = [
    "BUDGETS",
    "MECHANISMS",
    "Budget",
    "CoordinateClampLaplace",
    "GeometricBudget",
    "L1ClippedLaplace",
    "Mechanism",
    "Privacy",
    "PrivacyAccountant",
]


class Privacy(Settings):
    """The ``[privacy]`` table of a scenario: the epsilon of each upload, and the mechanism that keeps it.

    Attributes
    ----------
    budget : division of a client's epsilon among its uploads
    mechanism : clipping and noise of an update
    """

    budget: Annotated[Budget, Slot(BUDGETS)]
    mechanism: Annotated[Mechanism, Slot(MECHANISMS)]
