"""Differential privacy of uploads: budgets, mechanisms, randomisers of other numbers, and the accountant."""

from typing import Annotated, Literal

from pydantic import Field

from fedsim.privacy.accountant import PrivacyAccountant as PrivacyAccountant, SampledAccountant as SampledAccountant
from fedsim.privacy.budget import (
    BUDGETS as BUDGETS,
    Budget as Budget,
    GeometricBudget as GeometricBudget,
    UniformBudget as UniformBudget,
    UnlimitedBudget as UnlimitedBudget,
    ZetaBudget as ZetaBudget,
)
from fedsim.privacy.central import NoiseAtServer as NoiseAtServer
from fedsim.privacy.composition import (
    COMPOSITION,
    COMPOSITIONS as COMPOSITIONS,
    Composition as Composition,
    PrivacyLoss as PrivacyLoss,
    Renyi as Renyi,
)
from fedsim.privacy.gaussian import L2ClippedGaussian as L2ClippedGaussian
from fedsim.privacy.label_histograms import (
    LABEL_HISTOGRAMS as LABEL_HISTOGRAMS,
    ExactHistograms as ExactHistograms,
    LabelHistograms as LabelHistograms,
    LaplaceCounts as LaplaceCounts,
    LaplaceShares as LaplaceShares,
)
from fedsim.privacy.mechanisms import (
    MECHANISM,
    MECHANISMS as MECHANISMS,
    CalibratedNoise as CalibratedNoise,
    CoordinateClampLaplace as CoordinateClampLaplace,
    L1ClippedLaplace as L1ClippedLaplace,
    Mechanism as Mechanism,
    NoisesStatistics as NoisesStatistics,
    StatedNoise as StatedNoise,
    TellsClipping as TellsClipping,
)
from fedsim.privacy.releases import ReleaseFacts as ReleaseFacts
from fedsim.privacy.side_information import (
    SIDE_INFORMATIONS as SIDE_INFORMATIONS,
    ExactNumbers as ExactNumbers,
    LaplaceNumbers as LaplaceNumbers,
    SideInformation as SideInformation,
)
from fedsim.registry import Settings, Slot


class Privacy(Settings):
    """The ``[privacy]`` table of a scenario: the epsilon of each release, and the mechanism that keeps it.

    Attributes
    ----------
    budget : division of a client's epsilon among its uploads
    mechanism : clipping and noise of an update
    side_information : noise of the numbers that a selector asks for beside updates
    label_histograms : noise of the shares of labels that clients declare to a selector that uses them
    least_epsilon : a client with less epsilon left than this is no candidate; None for no limit
    where : who adds noise: each client to its update (local privacy), or the server to each aggregate of clipped
        updates (central privacy), whose model alone is then protected
    composition : what the updates of a client leak together; None for the sum of their epsilons
    amplification : ``"poisson"`` where the composition counts that the server draws each client by itself, in secret,
        as the selector ``poisson`` does; central privacy only
    """

    budget: Annotated[Budget, Slot(BUDGETS)]
    mechanism: Annotated[Mechanism, Slot(MECHANISMS)]
    side_information: Annotated[SideInformation, Slot(SIDE_INFORMATIONS)] = LaplaceNumbers()
    label_histograms: Annotated[LabelHistograms, Slot(LABEL_HISTOGRAMS)] = LaplaceShares()
    least_epsilon: Annotated[float | None, Field(gt=0)] = None
    where: Literal["client", "server"] = "client"
    composition: Annotated[Composition, Slot(COMPOSITIONS)] | None = None
    amplification: Literal["none", "poisson"] = "none"

    @property
    def total(self) -> float:
        """The most epsilon that a client may spend: that of the composition, or of the budget."""
        most = None if self.composition is None else self.composition.most_epsilon
        return float(self.budget.total if most is None else most)

    def applied(self) -> Mechanism:
        """Return what makes of a client's update what it sends: with noise, or clipped alone under central privacy."""
        return MECHANISM.checked(self.mechanism) if self.where == "client" else NoiseAtServer(mechanism=self.mechanism)

    def facts(self) -> ReleaseFacts:
        server = NoiseAtServer(mechanism=self.mechanism) if self.where == "server" else None
        return ReleaseFacts(self.mechanism, self.composition, server)

    def accountant(
        self,
        clients: int,
        numbers_share: float = 0.0,
        declared: float = 0.0,
        rate: float | None = None,
        reserved: float = 0.0,
    ) -> PrivacyAccountant:
        if self.composition is None:
            return PrivacyAccountant(
                self.budget, clients, numbers_share, declared, self.least_epsilon, reserved=reserved
            )
        composition = COMPOSITION.checked(self.composition)
        delta = MECHANISM.checked(self.mechanism).delta if isinstance(self.mechanism, CalibratedNoise) else 0.0
        ledger, most, least = composition.ledger(delta, rate), composition.most_epsilon, self.least_epsilon
        if rate is not None:
            return SampledAccountant(self.budget, clients, ledger=ledger, least_epsilon=least, most_epsilon=most)
        return PrivacyAccountant(self.budget, clients, numbers_share, declared, least, ledger, most, reserved)
