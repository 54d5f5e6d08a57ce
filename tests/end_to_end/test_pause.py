"""PAUSE in a run: each cohort is the best set by equation (14), worked out again from what the history says."""

import itertools
import math

import pytest

from fedsim import Scenario, simulate
from fedsim.selectors import Pause
from fedsim.selectors.pause.enumeration import PauseEnumeration

M, TAU_MIN_S, ALPHA, BETA, GAMMA, ZETA, EPSILON, ETA = 3, 0.05, 3.0, 2.0, 2.0, 1.5, 5.0, 0.2
SCENARIO = Scenario(
    name="pause",
    seed=3,
    crowd={"clients": 9},
    learning={"kind": "none", "model_bits": 1e5, "samples_per_client": [20, 310, 90, 45, 150, 230, 75, 400, 120]},
    privacy={
        "budget": {"kind": "geometric", "epsilon": EPSILON, "eta": ETA},
        "mechanism": {"kind": "laplace-coordinate", "delta_f": 0.01},
    },
    network="pause-two-speed",
    devices={"compute": "zero"},
    rounds={"count": 25},
    selector="all",
)
DEADLINE = {"kind": "deadline", "deadline_s": 0.75}
WORLDS = {
    "everybody delivers": {},
    "clients come and go and some are late": {
        "devices.availability": {"kind": "bernoulli", "probability": 0.6},
        "rounds.policy": DEADLINE,
    },
    "late updates are merged": {"rounds.policy": DEADLINE, "rounds.late": {"kind": "stale"}},
    "the server asks for more": {"rounds.policy": {"kind": "k-fastest", "k": 3, "over_selection": 1.5}},
}


def energies(view, rows, ends_s):
    """Return (14) of every set of candidates, untried ones first; round after round is read from the table."""
    times, earned, spent = {}, {}, {}
    for row in rows:
        if row["round"] < view.round:
            client = row["client"]
            until_s = row["end_s"] if row["outcome"] == "delivered" else ends_s[row["round"]]
            times[client] = times.get(client, 0) + 1
            earned.setdefault(client, []).append(TAU_MIN_S / max(until_s - row["start_s"], TAU_MIN_S))
            spent[client] = spent.get(client, 0.0) + row["epsilon"]
    t, ucb, prize = max(view.round - 1, 1), {}, {}
    for client, samples in zip(view.client.tolist(), view.samples.tolist(), strict=True):
        count = times.get(client, 0)
        missing = M * samples / view.total_samples - count / t
        prize[client] = ALPHA * math.copysign(abs(missing) ** BETA, missing)
        prize[client] += GAMMA * (1 - spent.get(client, 0.0) / EPSILON)
        ucb[client] = math.inf
        if count:
            ucb[client] = ZETA * sum(earned[client]) / count + math.sqrt((M + 1) * math.log(t) / count)
    m = min(M if view.wanted is None else view.wanted, view.client.size)
    found = {}
    for members in itertools.combinations(ucb, m):
        lowest, prizes = min(ucb[k] for k in members), sum(prize[k] for k in members) / m
        found[members] = (1, prizes) if lowest == math.inf else (0, lowest + prizes)
    return found


@pytest.mark.parametrize("method", [Pause, PauseEnumeration])
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_every_cohort_of_a_run_is_the_best_set(method, world):
    asked = []

    class Listening(method):
        def select(self, view, rng):
            cohort = super().select(view, rng)
            asked.append((view, tuple(cohort.client.tolist())))
            return cohort

    selector = Listening(M, TAU_MIN_S, ALPHA, BETA, GAMMA, ZETA)
    history = simulate(SCENARIO.replace({**WORLDS[world], "selector": selector}))
    rows = history.participations.to_pylist()
    ends_s = dict(zip(history.column("rounds", "round"), history.column("rounds", "end_s"), strict=True))
    assert len(asked) == 25
    for view, chosen in asked:
        found = energies(view, rows, ends_s)
        assert found[chosen] == pytest.approx(max(found.values()), abs=1e-9)
    assert (len({row["outcome"] for row in rows}) > 1) == (world != "everybody delivers")
