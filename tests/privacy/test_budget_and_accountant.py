"""Budgets against their formulas and sums, and the accountant against a plain loop; it never passes its budget."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy.special import zeta

from fedsim.errors import ScenarioError
from fedsim.privacy import GeometricBudget, Privacy, PrivacyAccountant, UniformBudget, UnlimitedBudget, ZetaBudget

MECHANISM = {"kind": "laplace-l1", "clip": 1.0}
EPSILONS = st.floats(1e-6, 1e6)
BUDGETS = st.one_of(
    st.builds(GeometricBudget, epsilon=EPSILONS, eta=st.floats(1e-3, 5.0)),
    st.builds(ZetaBudget, epsilon=EPSILONS, power=st.floats(1.01, 8.0)),
    st.builds(UniformBudget, epsilon=EPSILONS, releases=st.integers(1, 9)),
    st.builds(UnlimitedBudget, epsilon=EPSILONS),
)


def term(budget, i):
    """Return the cost of a release by its formula."""
    match budget:
        case GeometricBudget(eta=eta):
            return budget.epsilon * (math.exp(eta) - 1) * math.exp(-eta * i)
        case ZetaBudget(power=power):
            return budget.epsilon * i**-power / zeta(power)
        case UniformBudget(releases=releases):
            return budget.epsilon / releases if i <= releases else 0.0
        case _:
            return budget.epsilon


def test_the_paper_s_first_numbers():
    budget = GeometricBudget(epsilon=20.0)
    assert 1 - budget.leaked(1) / 20.0 == pytest.approx(math.exp(-0.04), rel=1e-14)
    assert budget.leaked(50) / 20.0 == pytest.approx(0.865, abs=5e-4)
    # The Laplace scales of the published MNIST run: 0.003 over the 1st, 50th and 100th term.
    assert (0.003 / budget.term([1, 50, 100])).tolist() == pytest.approx([3.8e-3, 2.7e-2, 0.20], rel=0.02)


@given(budget=BUDGETS, n=st.integers(1, 300))
def test_terms_are_those_of_the_formulas_and_add_up_to_what_is_leaked(budget, n):
    terms = [term(budget, i) for i in range(1, n + 1)]
    np.testing.assert_allclose(budget.term(np.arange(1, n + 1)), terms, rtol=1e-9, atol=1e-300)
    assert float(budget.leaked(n)) == pytest.approx(math.fsum(terms), rel=1e-9, abs=1e-12 * budget.epsilon)


@given(budget=BUDGETS, n=st.integers(0, 10**9))
def test_what_is_leaked_rises_towards_the_budget_and_never_passes_it(budget, n):
    assert 0.0 == budget.leaked(0) <= budget.leaked(n) <= budget.leaked(n + 1) <= budget.total
    assert budget.term(n + 1) >= budget.term(n + 2) >= 0.0
    if isinstance(budget, GeometricBudget):
        assert budget.leaked(math.ceil(40 / budget.eta)) == budget.total == budget.epsilon


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
    for budget in (GeometricBudget(epsilon=1.0), UniformBudget(epsilon=1.0, releases=2), UnlimitedBudget(epsilon=1.0)):
        with pytest.raises(ValueError, match=said):
            getattr(budget, method)(value)


@pytest.mark.parametrize(
    ("budget", "least", "closes"),
    [
        (UniformBudget(epsilon=6.0, releases=3), None, 3),
        (UniformBudget(epsilon=6.0, releases=3), 3.0, 2),
        (UniformBudget(epsilon=6.0, releases=3), 2.0, 3),
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


UPLOADS = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=60)


@given(budget=BUDGETS, uploads=UPLOADS, share=st.sampled_from([0.0, 0.1, 0.99]), declared=st.sampled_from([0.0, 0.25]))
def test_accounts_are_those_of_a_plain_loop_whatever_the_order_of_updates_and_numbers(budget, uploads, share, declared):
    """Of what is left beside the declared part, a share of each term pays for numbers, and the rest for updates."""
    first = 0.0 if budget.total == math.inf else declared * budget.total
    accountant = PrivacyAccountant(budget, 3, share, declared=first)
    spent, counts = np.full(3, first), np.zeros((2, 3), dtype=np.int64)
    for client, numbers in uploads:
        counts[int(numbers), client] += 1
        number = int(counts[int(numbers), client])
        part = (1 - first / budget.total) * (share if numbers else 1 - share)
        cost = part * term(budget, number)
        spent[client] += cost
        found = (accountant.charge_numbers if numbers else accountant.charge)(client)
        assert found == (pytest.approx(cost, rel=1e-9, abs=1e-300), number)
        assert accountant.spent.max() <= budget.total
        assert accountant.largest == accountant.spent.max()
    np.testing.assert_allclose(accountant.spent, spent, rtol=1e-9, atol=1e-12 * budget.epsilon)
    np.testing.assert_array_equal([accountant.releases, accountant.numbers], counts)


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
        ({"kind": "geometric", "epsilon": math.inf}, MECHANISM),
        ({"kind": "geometrical", "epsilon": 1.0}, MECHANISM),
        ({"kind": "geometric", "epsilon": 1.0}, {"kind": "laplace-l1"}),
        ({"kind": "geometric", "epsilon": 1.0}, {"kind": "laplace-coordinate", "delta_f": math.nan}),
    ],
)
def test_wrong_tables_are_refused(budget, mechanism):
    with pytest.raises(ValidationError):
        Privacy.model_validate({"budget": budget, "mechanism": mechanism})
