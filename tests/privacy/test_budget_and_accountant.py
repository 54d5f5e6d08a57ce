"""The geometric budget's closed forms against sums, and the accountant that never passes its budget."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim.errors import ScenarioError
from fedsim.privacy import GeometricBudget, Privacy, PrivacyAccountant, UniformBudget, UnlimitedBudget, ZetaBudget

EPSILONS = st.floats(1e-6, 1e6)
ETAS = st.floats(1e-6, 50.0)
MECHANISM = {"kind": "laplace-l1", "clip": 1.0}


def test_the_paper_s_first_numbers():
    budget = GeometricBudget(epsilon=20.0)
    assert 1 - budget.leaked(1) / 20.0 == pytest.approx(math.exp(-0.04), rel=1e-14)
    assert budget.leaked(50) / 20.0 == pytest.approx(0.865, abs=5e-4)
    # The Laplace scales of the published MNIST run: 0.003 over the 1st, 50th and 100th term.
    assert (0.003 / budget.term([1, 50, 100])).tolist() == pytest.approx([3.8e-3, 2.7e-2, 0.20], rel=0.02)


@given(epsilon=EPSILONS, eta=st.floats(1e-3, 5.0), n=st.integers(1, 400))
def test_terms_are_the_paper_s_and_add_up_to_what_is_leaked(epsilon, eta, n):
    budget = GeometricBudget(epsilon=epsilon, eta=eta)
    terms = budget.term(np.arange(1, n + 1))
    paper = [epsilon * (math.exp(eta) - 1) * math.exp(-eta * i) for i in range(1, n + 1)]
    # The paper's form loses digits in e^eta - 1 for small eta, about 1e-16 / eta; subnormal terms have few digits.
    np.testing.assert_allclose(terms, paper, rtol=1e-12, atol=1e-300)
    exact = float(sum(Fraction(term) for term in terms.tolist()))
    assert float(budget.leaked(n)) == pytest.approx(exact, rel=1e-12)


@given(epsilon=EPSILONS, eta=ETAS, n=st.integers(0, 10**9))
def test_what_is_leaked_rises_towards_the_budget_and_never_passes_it(epsilon, eta, n):
    budget = GeometricBudget(epsilon=epsilon, eta=eta)
    assert 0.0 <= budget.leaked(n) <= budget.leaked(n + 1) <= budget.total == epsilon
    assert budget.term(n + 1) >= budget.term(n + 2) >= 0.0
    assert budget.leaked(0) == 0.0


@given(epsilon=EPSILONS, eta=ETAS)
def test_in_all_eternity_the_budget_is_spent(epsilon, eta):
    assert GeometricBudget(epsilon=epsilon, eta=eta).leaked(math.ceil(40 / eta)) == epsilon


@pytest.mark.parametrize(
    ("method", "value", "said"),
    [
        ("term", 0, "^i: 0 is not allowed; it must be at least 1"),
        ("term", [1, 0], r"^i: \[1, 0\] is not allowed; it must be at least 1"),
        ("leaked", -1, "^n: -1 is not allowed; it must be at least 0"),
        ("leaked", math.nan, "^n: nan is not allowed; it must be at least 0"),
    ],
)
def test_indices_out_of_range_are_refused(method, value, said):
    with pytest.raises(ValueError, match=said):
        getattr(GeometricBudget(epsilon=1.0), method)(value)


def test_zeta_budgets_by_hand():
    """zeta(2) = pi^2 / 6: the terms are 6 epsilon / (pi i)^2."""
    budget = ZetaBudget(epsilon=10.0, power=2.0)
    np.testing.assert_allclose(budget.term([1, 2, 10]), [60 / math.pi**2, 15 / math.pi**2, 0.6 / math.pi**2])
    np.testing.assert_allclose(budget.leaked([0, 1, 2]), [0, 60 / math.pi**2, 75 / math.pi**2], atol=1e-14)


@given(epsilon=EPSILONS, power=st.floats(1.001, 8.0), n=st.integers(1, 300))
def test_terms_of_a_zeta_budget_add_up_to_what_is_leaked_and_never_pass_the_budget(epsilon, power, n):
    budget = ZetaBudget(epsilon=epsilon, power=power)
    terms = budget.term(np.arange(1, n + 1))
    assert float(budget.leaked(n)) == pytest.approx(math.fsum(terms.tolist()), rel=1e-9, abs=1e-12 * epsilon)
    assert 0 <= budget.leaked(n) <= budget.leaked(2 * n) <= budget.leaked(10**9) <= budget.total == epsilon


def test_uniform_and_unlimited_budgets_by_hand():
    budget = UniformBudget(epsilon=6.0, releases=3)
    assert budget.term([1, 3, 4]).tolist() == [2.0, 2.0, 0.0]
    assert budget.leaked([0, 1, 3, 9]).tolist() == [0.0, 2.0, 6.0, 6.0]
    endless = UnlimitedBudget(epsilon=0.5)
    assert endless.total == math.inf
    assert endless.term([1, 10**9]).tolist() == [0.5, 0.5]
    assert endless.leaked([0, 10]).tolist() == [0.0, 5.0]
    for kind in (budget, endless, ZetaBudget(epsilon=1.0)):
        with pytest.raises(ValueError, match=r"^i: 0 is not allowed"):
            kind.term(0)
        with pytest.raises(ValueError, match=r"^n: -1 is not allowed"):
            kind.leaked(-1)


@pytest.mark.parametrize(
    ("budget", "least", "closes"),
    [
        (UniformBudget(epsilon=6.0, releases=3), None, 3),
        (UniformBudget(epsilon=6.0, releases=3), 3.0, 2),
        (UnlimitedBudget(epsilon=1.0), 100.0, None),
        (GeometricBudget(epsilon=1.0, eta=100.0), None, 8),  # e^(-100 i) is 0 in double precision from i = 8 on
        (GeometricBudget(epsilon=1.0, eta=1.0), 0.1, 3),  # e^-2 = 0.135, e^-3 = 0.050
        (ZetaBudget(epsilon=1.0, power=2.0), None, None),
    ],
)
def test_an_account_closes_when_too_little_or_no_term_is_left(budget, least, closes):
    accountant = PrivacyAccountant(budget, 2, least_epsilon=least)
    for number in range(1, 12):
        accountant.charge(1)
        open_ = closes is None or number < closes
        assert accountant.is_open(np.array([0, 1])).tolist() == [True, open_]
        assert accountant.closed == ([] if open_ else [1])


@pytest.mark.slow
@settings(max_examples=20)
@given(epsilon=EPSILONS, eta=ETAS)
def test_ten_thousand_releases_stay_within_the_budget(epsilon, eta):
    accountant = PrivacyAccountant(GeometricBudget(epsilon=epsilon, eta=eta), 1)
    charged = []
    for expected_index in range(1, 10_001):
        cost, index = accountant.charge(0)
        assert index == expected_index
        assert accountant.spent[0] <= epsilon
        charged.append(cost)
    assert math.fsum(charged) <= epsilon * (1 + 1e-12)
    assert accountant.spent[0] == pytest.approx(math.fsum(charged), rel=1e-9)
    assert accountant.releases.tolist() == [10_000]


@given(uploads=st.lists(st.integers(0, 4), max_size=60))
def test_every_client_has_an_account_of_its_own(uploads):
    budget = GeometricBudget(epsilon=10.0, eta=0.1)
    accountant = PrivacyAccountant(budget, 5)
    for upload in uploads:
        accountant.charge(upload)
    counts = np.bincount(np.array(uploads, dtype=np.int64), minlength=5)
    np.testing.assert_array_equal(accountant.releases, counts)
    np.testing.assert_allclose(accountant.spent, 10.0 * (1 - np.exp(-0.1 * counts)), rtol=1e-12, atol=1e-15)


@given(uploads=st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=80), share=st.floats(0, 0.99), eta=ETAS)
def test_updates_and_numbers_together_stay_within_the_budget(uploads, share, eta):
    """The charges of a client add up to what it has spent, whatever the order of its updates and numbers."""
    accountant = PrivacyAccountant(GeometricBudget(epsilon=10.0, eta=eta), 3, share)
    charged = np.zeros(3)
    for client, numbers in uploads:
        charged[client] += (accountant.charge_numbers if numbers else accountant.charge)(client)[0]
        assert accountant.spent[client] <= 10.0
        assert accountant.largest == accountant.spent.max()
    np.testing.assert_allclose(accountant.spent, charged, rtol=1e-9, atol=1e-12)
    for counts, kind in ((accountant.releases, False), (accountant.numbers, True)):
        mine = [client for client, numbers in uploads if numbers == kind]
        np.testing.assert_array_equal(counts, np.bincount(np.array(mine, dtype=np.int64), minlength=3))


def test_a_share_of_each_term_pays_for_numbers():
    """Terms 20 (1 - e^-0.04) e^(-0.04 (i - 1)): a quarter for the i-th numbers, three quarters for the i-th update."""
    accountant = PrivacyAccountant(GeometricBudget(epsilon=20.0), 1, 0.25)
    first = 20 * (1 - math.exp(-0.04))
    assert accountant.charge(0) == (pytest.approx(0.75 * first), 1)
    assert accountant.charge_numbers(0) == (pytest.approx(0.25 * first), 1)
    assert accountant.charge_numbers(0) == (pytest.approx(0.25 * first * math.exp(-0.04)), 2)
    assert accountant.spent[0] == pytest.approx(first * (1 + 0.25 * math.exp(-0.04)))
    assert (accountant.releases.dtype.kind, accountant.numbers.dtype.kind) == ("i", "i")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"clients": -1}, "clients: -1 is not allowed"),
        *(({"numbers_share": share}, "numbers_share: .* it must be in") for share in (-0.1, 1.0, math.nan)),
        *(({"declared": cost}, "declared: .* at least 0 and below the budget") for cost in (-1.0, 20.0, math.nan)),
    ],
)
def test_accounts_that_cannot_be_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        PrivacyAccountant(GeometricBudget(epsilon=20.0), **{"clients": 2, **wrong})


@pytest.mark.parametrize("client", [-1, 3])
def test_there_is_no_such_client(client):
    accountant = PrivacyAccountant(GeometricBudget(epsilon=1.0), 3)
    with pytest.raises(IndexError, match=f"client: {client} is not one of the 3"):
        accountant.charge(client)
    assert not accountant.releases.any()


def test_costs_are_in_double_precision_whatever_the_precision_of_the_indices():
    budget, index = GeometricBudget(epsilon=20.0), np.array([1, 50], dtype=np.float32)
    for method in (budget.term, budget.leaked):
        assert method(index).dtype == np.float64
        assert method(index).tolist() == method([1, 50]).tolist()


def test_accounts_of_no_client_and_of_none_that_opens():
    accountant = PrivacyAccountant(GeometricBudget(epsilon=1.0), 0)
    assert (accountant.releases.shape, accountant.spent.shape, accountant.largest) == ((0,), (0,), 0.0)
    accountant = PrivacyAccountant(UniformBudget(epsilon=1.0, releases=5), 2, least_epsilon=2.0)
    assert accountant.closed == [0, 1]
    assert not accountant.is_open(np.arange(2)).any()


def test_the_largest_sum_is_that_of_the_client_with_most_uploads():
    """Terms 20 (1 - e^-0.04) and so on: after 1 and 2 uploads, the sums are 20 (1 - e^-0.04) and 20 (1 - e^-0.08)."""
    accountant = PrivacyAccountant(GeometricBudget(epsilon=20.0), 2)
    largest = [accountant.largest]
    for client in (0, 1, 1, 0):
        accountant.charge(client)
        largest.append(accountant.largest)
    assert largest == pytest.approx([20 * (1 - math.exp(-0.04 * uploads)) for uploads in (0, 1, 1, 2, 2)])
    assert accountant.releases.dtype == np.int64


def test_the_columns_of_the_accountant_are_read_only():
    accountant = PrivacyAccountant(GeometricBudget(epsilon=1.0), 3)
    for column in (accountant.spent, accountant.releases, accountant.numbers):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 7


class Spendthrift:
    """A budget of a user whose terms do not add up to what it promises."""

    total = 2.5

    def term(self, i):
        return np.ones_like(i, dtype=float)

    def leaked(self, n):
        return np.asarray(n, dtype=float)


def test_a_budget_that_breaks_its_promise_is_stopped():
    accountant = PrivacyAccountant(Spendthrift(), 1)
    assert [accountant.charge(0), accountant.charge(0)] == [(1.0, 1), (1.0, 2)]
    with pytest.raises(ScenarioError, match="more than its total"):
        accountant.charge(0)
    assert accountant.spent.tolist() == [2.0]
    assert accountant.releases.tolist() == [2]


def test_the_table_is_read_and_written():
    table = {
        "budget": {"kind": "geometric", "epsilon": 20.0, "eta": 0.1},
        "mechanism": {
            "kind": "laplace-coordinate",
            "delta_f": 0.003,
            "exempt_buffers": False,
            "noise_statistics": False,
        },
        "side_information": {"kind": "laplace", "share": 0.2, "clip": 3.0},
        "label_histograms": {"kind": "laplace-counts", "epsilon": 0.1},
        "least_epsilon": 2.0,
        "where": "client",
        "composition": None,
        "amplification": "none",
    }
    assert Privacy.model_validate(table).model_dump() == table


@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        ({"kind": "geometric", "epsilon": 0.0}, MECHANISM),
        ({"kind": "geometric", "epsilon": 1.0, "eta": -0.1}, MECHANISM),
        ({"kind": "geometric", "epsilon": math.inf}, MECHANISM),
        ({"kind": "geometric"}, MECHANISM),
        ({"kind": "geometrical", "epsilon": 1.0}, MECHANISM),
        ({"kind": "geometric", "epsilon": 1.0}, {"kind": "laplace-l1"}),
        ({"kind": "geometric", "epsilon": 1.0}, {"kind": "laplace-l1", "clip": 0.0}),
        ({"kind": "geometric", "epsilon": 1.0}, {"kind": "laplace-coordinate", "delta_f": math.nan}),
        ({"kind": "geometric", "epsilon": 1.0}, {"kind": "laplace-l1", "clip": 1.0, "exempt_buffers": 1}),
    ],
)
def test_wrong_tables_are_refused(budget, mechanism):
    with pytest.raises(ValidationError):
        Privacy.model_validate({"budget": budget, "mechanism": mechanism})
