"""What each upload leaks and how it is made private: budgets, mechanisms and the ledger."""

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
    """The ``[privacy]`` table of a scenario: what an upload may leak, and how that is kept.

    Attributes
    ----------
    budget : how a client's epsilon is spread over its uploads
    mechanism : how an update is clipped and noised
    """

    budget: Annotated[Budget, Slot(BUDGETS)]
    mechanism: Annotated[Mechanism, Slot(MECHANISMS)]
