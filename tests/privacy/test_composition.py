"""What releases leak together: in a run's tables and at its end, against the closed form and the integral."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from fedsim import simulate
from fedsim.errors import PartError, ScenarioError
from fedsim.privacy import GeometricBudget, PrivacyAccountant, PrivacyLoss, Renyi, SampledAccountant, UnlimitedBudget
from fedsim.privacy.gaussian import noise_multiplier
from fedsim.registry import Component
from tests.support.short_runs import timed

pytest.importorskip("dp_accounting", reason="the extra 'dp' is not installed")

DELTA = 1e-5
TIMING = timed(
    clients=3,
    bits=1e5,
    samples=10,
    rounds={"count": 100, "weights": "uniform"},
    privacy={
        "budget": {"kind": "unlimited", "epsilon": 1.0},
        "mechanism": {"kind": "gaussian", "clip": 1.0, "delta": 1e-6},
        "composition": {"kind": "rdp", "delta": DELTA, "most_epsilon": 3.0},
    },
)


def exact(multiplier, delta=DELTA):
    """Return the epsilon of one release, by its closed form (Balle and Wang, 2018, Theorem 8)."""

    def excess(epsilon):
        half, shift = 0.5 / multiplier, epsilon * multiplier
        return stats.norm.cdf(half - shift) - math.exp(epsilon) * stats.norm.cdf(-half - shift) - delta

    return optimize.brentq(excess, 0.0, 100.0)


def together(multipliers, delta=DELTA):
    """Return the epsilon of releases: normal noise of s_i is one of s with ``1 / s^2`` the sum of all ``1 / s_i^2``."""
    return exact(1.0 / math.sqrt(sum(s**-2 for s in multipliers)), delta)


@pytest.mark.parametrize("kind", ["rdp", pytest.param("pld", marks=pytest.mark.slow)])
def test_a_run_states_what_leaks_together_and_ends_before_the_limit(kind):
    history = simulate(TIMING.replace({"privacy.composition.kind": kind}))
    rounds, multiplier = history.rounds.num_rows, noise_multiplier(1.0, 1e-6)
    told = history.column("rounds", "largest_leakage")
    most = {"rdp": 1.1, "pld": 1.01}[kind]
    for number, epsilon in enumerate(told.tolist(), start=1):
        least = together([multiplier] * number)
        assert least * (1 - 1e-6) <= epsilon <= most * least
    assert told[-1] <= 3.0 < most * together([multiplier] * (rounds + 1))
    assert rounds > 3, "the sum of three releases is 3 already"
    assert history.notes[0] == (
        f"the run ended after round {rounds} of 100, at {history.column('rounds', 'end_s')[-1]:.6g} s: no client can "
        "pay for a further update: all may leak 3 epsilon together, and no more"
    )
    releases = history.releases.to_pylist()
    assert len(releases) == 3 * rounds
    for row in releases:
        assert row["spent"] == told[row["number"] - 1]
        assert (row["epsilon"], row["delta"], row["clipping_norm"], row["sensitivity"]) == (1.0, DELTA, 1.0, 2.0)
        assert row["noise_scale"] == 2.0 * multiplier
    # Each costs what it would cost alone.
    assert set(history.column("participations", "epsilon").tolist()) == {1.0}


def test_numbers_beside_updates_are_added_to_what_is_composed():
    """A tenth of each term pays for the losses that Oort asks for: pure epsilon, which adds up."""
    history = simulate(TIMING.replace({"selector": {"kind": "oort", "cohort": 2}}))
    multiplier = noise_multiplier(0.9, 1e-6)
    for row in history.releases.to_pylist():
        least = together([multiplier] * row["number"]) + 0.1 * row["number"]
        assert least * (1 - 1e-6) <= row["spent"] <= 1.1 * least
    assert 2.0 < history.column("releases", "spent").max() <= 3.0


@pytest.mark.parametrize(
    ("composition", "most"), [(Renyi(delta=DELTA, most_epsilon=2.0), 1.12), (PrivacyLoss(delta=DELTA), 1.01)]
)
def test_terms_of_any_budget_are_composed(composition, most):
    budget = GeometricBudget(epsilon=4.0, eta=0.3)
    account = PrivacyAccountant(budget, 2, ledger=composition.ledger(1e-6, None), most_epsilon=composition.most_epsilon)
    multipliers = []
    while account.is_open(np.array([1])).all() and len(multipliers) < 6:
        cost, number = account.charge(1)
        assert cost == pytest.approx(float(budget.term(number)))
        multipliers.append(noise_multiplier(cost, 1e-6))
        least = together(multipliers)
        assert least * (1 - 1e-6) <= account.spent[1] <= most * least
    assert account.spent[0] == 0.0
    assert account.spent[1] <= account.total
    assert len(multipliers) > 1


def mixed(rate, multiplier, epsilon):
    """Integrate by how much a release with a client drawn at a rate passes ``e^epsilon`` of one without, both ways."""

    def without(x):
        return stats.norm.pdf(x, 0.0, multiplier)

    def drawn(x):
        return (1 - rate) * without(x) + rate * stats.norm.pdf(x, 1.0, multiplier)

    def passed(one, other):
        grid = np.linspace(-12 * multiplier, 1 + 12 * multiplier, 20_001)
        return integrate.trapezoid(np.maximum(one(grid) - math.exp(epsilon) * other(grid), 0.0), grid)

    return max(passed(drawn, without), passed(without, drawn))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_amplification_is_that_of_the_mixture_of_releases_with_and_without_a_client(rate):
    multiplier = noise_multiplier(2.0, 1e-6)
    least = optimize.brentq(lambda epsilon: mixed(rate, multiplier, epsilon) - DELTA, 0.0, 10.0, xtol=1e-6)
    found = PrivacyLoss(delta=DELTA).ledger(1e-6, rate).add(2.0)
    assert least * (1 - 1e-3) <= found <= 1.02 * least
    assert found < exact(multiplier)
    assert found <= Renyi(delta=DELTA).ledger(1e-6, rate).add(2.0)


def test_where_clients_are_sampled_all_pay_for_each_cohort():
    accounts = SampledAccountant(
        UnlimitedBudget(epsilon=1.0), 4, ledger=Renyi(delta=DELTA).ledger(1e-6, 0.2), most_epsilon=0.6
    )
    spent = []
    while not accounts.closed:
        accounts.cohort_sent()
        assert accounts.charge(2) == (1.0, len(spent) + 1)
        spent.append(accounts.spent.tolist())
    assert all(len(set(row)) == 1 for row in spent)
    one = [row[0] for row in spent]
    assert one == sorted(one)
    assert one[-1] <= 0.6
    assert accounts.closed == [0, 1, 2, 3]
    assert accounts.releases.tolist() == [0, 0, len(spent), 0]
    whole = Renyi(delta=DELTA).ledger(1e-6, None)
    assert one[-1] < [whole.add(1.0) for _ in one][-1]
    with pytest.raises(IndexError, match="4 is not one of the 4"):
        accounts.charge(4)


class Told:
    def __init__(self, says):
        self.says = says

    def add(self, epsilon):
        return self.says


class Constant(Component):
    """A composition of a user whose ledger is a class; below 0 it says what no composition can say."""

    delta: float = 1e-5
    most_epsilon: float | None = 3.0
    says: float = 2.0

    def ledger(self, release_delta, rate):
        return Told(self.says)


class Backwards(Constant):
    """One whose ledger has no name."""

    def ledger(self, release_delta, rate):
        return SimpleNamespace(add=lambda _: -1.0)


def test_a_composition_of_a_user_is_checked():
    laplace = {"privacy.mechanism": {"kind": "laplace-l1", "clip": 1.0}, "rounds.count": 2}
    history = simulate(TIMING.replace({**laplace, "privacy.composition": Constant()}))
    assert history.column("rounds", "largest_leakage").tolist() == [2.0, 2.0]
    with pytest.raises(PartError, match=r"ledger of a composition .*Told\.add returned -1\.0"):
        simulate(TIMING.replace({**laplace, "privacy.composition": Constant(says=-1.0)}))
    with pytest.raises(PartError, match=r"composition .*Backwards\.ledger returned"):
        simulate(TIMING.replace({**laplace, "privacy.composition": Backwards()}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy.mechanism": {"kind": "laplace-l1", "clip": 1.0}}, "'rdp' is not allowed; it composes normal noise"),
        ({"privacy.amplification": "poisson"}, "'poisson' is not allowed; it needs where = 'server' and a composition"),
    ],
)
def test_what_does_not_compose_is_refused_in_words(changes, message):
    with pytest.raises(ScenarioError, match=message):
        TIMING.replace(changes)


@pytest.mark.parametrize("changes", [{"privacy.composition.most_epsilon": 0.5}, {"privacy.least_epsilon": 3.5}])
def test_a_budget_that_pays_for_no_update_is_refused(changes):
    with pytest.raises(ScenarioError, match=r"privacy: no round can start; no client .* allowed: a budget that pays"):
        simulate(TIMING.replace(changes))


def test_releases_with_next_to_no_noise_are_refused_before_work_starts():
    with pytest.raises(ScenarioError, match=r"a release of 1e\+09 epsilon has noise of .* too little to compose"):
        simulate(TIMING.replace({"privacy.budget.epsilon": 1e9}))
