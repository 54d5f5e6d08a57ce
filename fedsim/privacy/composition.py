"""What many releases with normal noise leak together: less than the sum of their epsilons.

Summation is what a run charges by default, since it holds for every mechanism. For the Gaussian mechanism the
accountants of the library dp-accounting (``pip install 'fedsim-des[dp]'``) give a smaller epsilon for the same delta.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Protocol

from pydantic import Field

from fedsim.answers import Contract, Number, PartOf
from fedsim.errors import RunError, ScenarioError
from fedsim.privacy.gaussian import noise_multiplier
from fedsim.registry import Component, Registry

_WHOLE_ORDERS: Final = [*range(2, 65), 72, 80, 96, 112, 128, 192, 256, 512]


class Ledger(Protocol):
    """What successive releases leak together."""

    def add(self, epsilon: float) -> float:
        """Return the epsilon of all releases so far and one more.

        Parameters
        ----------
        epsilon : of the further release by itself, by which its noise is scaled, > 0
        """


class Composition(Protocol):
    """How the releases of one client add up, and how far they may go.

    Attributes
    ----------
    delta : probability mass that the epsilon of all releases together does not bound
    most_epsilon : the most that all releases of a client may leak; None for the budget's total

    Examples
    --------
    >>> class Sum:
    ...     total = 0.0
    ...     def add(self, epsilon):
    ...         self.total += epsilon
    ...         return self.total
    >>> class Summation:
    ...     delta, most_epsilon = 0.0, None
    ...     def ledger(self, release_delta, rate):
    ...         return Sum()
    >>> ledger = COMPOSITION.checked(Summation()).ledger(0.0, None)
    >>> ledger.add(1.0), ledger.add(2.0)
    (1.0, 3.0)
    """

    @property
    def delta(self) -> float:
        """See above."""

    @property
    def most_epsilon(self) -> float | None:
        """See above."""

    def ledger(self, release_delta: float, rate: float | None) -> Ledger:
        """Return a ledger without releases.

        Parameters
        ----------
        release_delta : delta of each release by itself
        rate : probability with which a client takes part in a release, drawn for each by itself; None where it does
        """


LEDGER: Final = Contract("ledger of a composition", Ledger, {"add": Number(least=0)})
COMPOSITION: Final = Contract(
    "composition",
    Composition,
    {
        "delta": Number(least=0, most=1),
        "most_epsilon": Number(least=0, above=True, none=True),
        "ledger": PartOf(object, LEDGER),
    },
)


class _ByLibrary(Component, ABC):
    """An accountant of dp-accounting."""

    least_multiplier: ClassVar[float]
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    most_epsilon: Annotated[float, Field(gt=0)] | None = None

    @abstractmethod
    def _accountant(self, rate: float | None) -> Any:
        """Return the library's accountant, without releases."""

    def ledger(self, release_delta: float, rate: float | None) -> Ledger:
        return GaussianLedger(self._accountant(rate), self.delta, release_delta, rate, self.least_multiplier)


class Renyi(_ByLibrary):
    """Composition by Renyi divergences (Mironov, CSF 2017): quick, and above the exact value by some per cent.

    Attributes
    ----------
    delta : probability mass that the epsilon of all releases together does not bound
    most_epsilon : the most that all releases of a client may leak; a client that can pay for no further release is no
        candidate any more. None for the total of the budget

    Examples
    --------
    >>> ledger = Renyi(delta=1e-5).ledger(release_delta=1e-5, rate=None)
    >>> composed = [ledger.add(0.5) for _ in range(10)]
    >>> round(composed[-1], 2)  # less than the sum of ten times 0.5
    1.93
    """

    least_multiplier: ClassVar[float] = 1e-3

    def _accountant(self, rate: float | None) -> Any:
        rdp = _library().rdp
        # For a sample the library's series of orders that are no whole numbers do not always converge.
        return rdp.RdpAccountant() if rate is None else rdp.RdpAccountant(_WHOLE_ORDERS)


class PrivacyLoss(_ByLibrary):
    """Composition by distributions of the privacy loss: nearly exact, and slower.

    Attributes
    ----------
    delta, most_epsilon : as in `Renyi`

    Examples
    --------
    >>> ledger = PrivacyLoss(delta=1e-5).ledger(release_delta=1e-5, rate=None)
    >>> round(ledger.add(0.5), 3), round(ledger.add(0.5), 3)  # one release, and less than twice that for two
    (0.5, 0.73)
    """

    least_multiplier: ClassVar[float] = 0.2

    def _accountant(self, rate: float | None) -> Any:
        return _library().pld.PLDAccountant()


@dataclass
class GaussianLedger:
    """Releases with normal noise, composed by an accountant of dp-accounting."""

    accountant: Any
    delta: float
    release_delta: float
    rate: float | None
    least_multiplier: float

    def add(self, epsilon: float) -> float:
        library, multiplier = _library(), noise_multiplier(epsilon, self.release_delta)
        if multiplier < self.least_multiplier:
            raise ScenarioError(
                f"privacy.composition: a release of {epsilon:.6g} epsilon has noise of {multiplier:.3g} times its "
                f"sensitivity, too little to compose; allowed: terms of the budget with at least "
                f"{self.least_multiplier:g} times, or leave the composition out"
            )
        event = library.GaussianDpEvent(multiplier)
        self.accountant.compose(event if self.rate is None else library.PoissonSampledDpEvent(self.rate, event))
        return float(self.accountant.get_epsilon(self.delta))


def _library() -> Any:
    """Return dp-accounting with its accountants loaded."""
    try:
        import dp_accounting
        from dp_accounting import pld, rdp  # noqa: F401
    except ImportError:
        raise RunError("composition of privacy needs dp-accounting: pip install 'fedsim-des[dp]'") from None
    return dp_accounting


COMPOSITIONS: Final = Registry(
    "composition",
    "fedsim.compositions",
    ("ledger",),
    {
        "rdp": "fedsim.privacy.composition:Renyi",
        "pld": "fedsim.privacy.composition:PrivacyLoss",
    },
    attributes=("delta", "most_epsilon"),
)
