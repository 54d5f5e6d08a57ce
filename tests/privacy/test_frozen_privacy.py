"""Budgets, mechanisms, randomised numbers and accounts answer a fixed series of questions as they did yesterday."""

import numpy as np

from fedsim.privacy import CoordinateClampLaplace, GeometricBudget, L1ClippedLaplace, PrivacyAccountant
from fedsim.privacy.side_information import LaplaceNumbers, released_numbers
from tests.support.frozen_answers import check_frozen

UPDATE = np.array([0.5, -2.0, 0.0, 3.5, np.nan, np.inf, -np.inf, 1e-3], dtype=np.float32)
BUFFERS = np.array([False, True, False, False, True, False, False, False])
EPSILONS = (0.0, 0.3, 5.0, 1e-320)


def said(act):
    """Return what is returned, or the words of the refusal."""
    try:
        return act()
    except (ValueError, IndexError) as error:
        return str(error)


def test_mechanisms_as_before():
    for case, made in {
        "clip": L1ClippedLaplace(clip=2.0),
        "clip, exempt": L1ClippedLaplace(clip=20.0, exempt_buffers=True),
        "clamp": CoordinateClampLaplace(delta_f=0.5),
        "clamp, none exempt": CoordinateClampLaplace(delta_f=0.5, exempt_buffers=False),
    }.items():
        released = [made.release(UPDATE, cost, BUFFERS, np.random.default_rng(3)) for cost in EPSILONS]
        energies = [made.noise_energy(cost, BUFFERS) for cost in EPSILONS]
        refused = [
            said(lambda made=made: made.release(UPDATE, -0.1, BUFFERS, np.random.default_rng(3))),
            said(lambda made=made: made.release(UPDATE, np.nan, BUFFERS, np.random.default_rng(3))),
            said(lambda made=made: made.release(UPDATE, 1.0, BUFFERS[1:], np.random.default_rng(3))),
            said(lambda made=made: made.release(np.ones((2, 2)), 1.0, np.ones((2, 2)), np.random.default_rng(3))),
        ]
        check_frozen("privacy", case, [released, energies, refused])


def test_numbers_as_before():
    side = LaplaceNumbers(share=0.2, clip=3.0)
    columns = {
        "loss": np.array([0.5, 9.0, np.nan, np.inf, 1.0, 2.0]),
        "accuracy_gain": np.array([0.1, -3.0, np.nan, np.inf, 0.5, 0.0], dtype=np.float32),
    }
    rngs = [np.random.default_rng(number) for number in range(6)]
    sent = released_numbers(side, columns, [5.0, 50.0, 500.0, 500.0, 0.0, 1e-320], rngs)
    refused = [said(lambda cost=cost: side.release("loss", 1.0, cost, rngs[0])) for cost in (-1.0, np.nan)]
    check_frozen("privacy", "numbers", [sent, refused])


def test_accounts_as_before():
    budget = GeometricBudget(epsilon=3.0, eta=0.7)
    found = [budget.total, budget.term([1, 2, 9]), budget.leaked([0, 1, 2, 9])]
    found += [said(lambda: budget.term(0)), said(lambda: budget.leaked([1, -1]))]
    for share in (0.0, 0.25):
        account = PrivacyAccountant(budget, 3, share)
        for client in (0, 2, 2, 0, 2):
            found.append(
                [account.charge(client), account.charge_numbers(client), account.largest, account.spent.copy()]
            )
        found += [account.releases, account.numbers, account.spent.flags.writeable, account.releases.flags.writeable]
        found += [said(lambda account=account, client=client: account.charge(client)) for client in (-1, 3)]
    found += [said(lambda: PrivacyAccountant(budget, -1)), said(lambda: PrivacyAccountant(budget, 2, 1.0))]
    found += [said(lambda: PrivacyAccountant(budget, 2, -0.1)), PrivacyAccountant(budget, 0).spent.size]
    check_frozen("privacy", "accounts", found)
