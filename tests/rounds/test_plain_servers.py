"""Servers against a plain loop, in random worlds of quarters of a second in which many things come at one instant."""

import random

import numpy as np
import pytest

from fedsim.rounds import Deadline, Edges, WaitForAll
from fedsim.rounds.policies.adaptive import MovingAverage, QuantileDeadline
from fedsim.rounds.policies.asynchronous import FedAsync, FedBuff
from fedsim.rounds.policies.count_based import KFastest, Quorum
from fedsim.rounds.policies.late import Cancel, Drop, Stale
from fedsim.rounds.policies.pisces import Pisces
from tests.support.plain_servers import PlainServer, random_world, served
from tests.support.stories import rows
from tests.support.worlds import Everybody, FirstWanted

LATE = {"cancel": Cancel, "drop": Drop, "stale": Stale}


def synchronous(draw):
    kind = draw.choice(["wait-for-all", "deadline", "k-fastest", "quorum", "moving-average", "adaptive-deadline"])
    longest_s = draw.randint(4, 30) / 4
    shortest_s, share = draw.randint(0, int(4 * longest_s)) / 4, draw.choice([0.1, 0.5, 0.75, 1.0])
    k, growth = draw.randint(1, 3), draw.choice([1.0, 1.5, 2.0])
    quorum = {"share": share, "min_wait_s": shortest_s, "max_wait_s": longest_s}
    averaging = {"initial_s": longest_s, "growth": growth}
    quantile = {
        "quantile": draw.choice([0.25, 0.5, 0.8, 1.0]),
        "window": draw.randint(1, 3),
        "margin": draw.choice([1.0, 1.5]),
        "reach": draw.choice([1.5, 3.0]),
        "initial_s": longest_s,
        "shortest_s": shortest_s,
        "longest_s": longest_s + draw.randint(0, 30) / 4,
        "growth": growth,
    }
    policy, options = {
        "moving-average": (
            MovingAverage(**averaging, target_share=share),
            {**averaging, "share": share, "min_wait_s": 0.0},
        ),
        "adaptive-deadline": (QuantileDeadline(**quantile), quantile),
        "wait-for-all": (WaitForAll(), {}),
        "deadline": (Deadline(deadline_s=longest_s), {"deadline_s": longest_s}),
        "k-fastest": (KFastest(k=k, over_selection=9.0, max_wait_s=longest_s), {"k": k, "max_wait_s": longest_s}),
        "quorum": (Quorum(**quorum), quorum),
    }[kind]
    late, minimum = draw.choice(list(LATE)), draw.randint(1, 2)
    of_late = {"max_staleness": draw.randint(0, 3)} if late == "stale" and draw.random() < 0.5 else {}
    plain = PlainServer(
        random_world(draw, waits_for_all=not options), 6, {"kind": kind, **options, **of_late}, late, minimum
    )
    return plain, policy, {"late": LATE[late](**of_late), "selector": Everybody()}


def asynchronous(draw):
    concurrency, buffer = draw.randint(1, 4), draw.randint(1, 3)
    options = {"concurrency": concurrency, "give_up_s": draw.randint(24, 50) / 4}
    if draw.random() < 0.4:
        options["max_staleness"] = draw.randint(0, 2)
    policy, kind = {
        "fedasync": (FedAsync(**options), {"buffer": 1, "mixing": 0.6}),
        "fedbuff": (FedBuff(buffer=buffer, **options), {"buffer": buffer}),
        "pisces": (Pisces(bound=2**buffer, **options), {"bound": 2**buffer}),
    }[draw.choice(["fedasync", "fedbuff", "fedbuff", "pisces"])]
    return PlainServer(random_world(draw, waits_for_all=False), 7, {**options, **kind}), policy, {}


@pytest.mark.parametrize("kind", [synchronous, asynchronous])
@pytest.mark.parametrize(
    "seed", [*range(30), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(30, 100)), *range(100, 112)]
)
def test_a_server_does_what_a_plain_loop_does(kind, seed):
    """From seed 100 on it is the only edge server below a cloud."""
    plain, policy, options = kind(random.Random(seed))  # noqa: S311
    options = {"selector": FirstWanted(), **options}
    if seed >= 100 and len(plain.world.phases_s) >= plain.minimum:
        merging = {"kind": "asynchronous", "mixing": 1.0} if seed % 2 else "synchronous"
        alone = Edges(grouping={"kind": "order", "count": 1}, merging=merging, backhaul="none")
        options |= {"edges": alone, "selectors": [options["selector"]]}
    history, selector, learner = served(plain, policy, **options)
    assert [clients for clients, _ in learner.aggregated] == [clients for clients, _ in plain.merged]
    for (_, weights), (_, plainly) in zip(learner.aggregated, plain.merged, strict=True):
        np.testing.assert_allclose(weights, plainly)
    # Of a version that a synchronous server goes on with, a client sends the same update again.
    alike = slice(2 if kind is synchronous else 3)
    assert sorted(each[alike] for each in learner.repeats) == sorted(each[alike] for each in plain.trained)
    told = [
        list(zip(*(column.tolist() for column in (one.client, one.delivered, one.duration_s)), strict=True))
        for one in selector.reports
    ]
    assert told == plain.reports
    ends_s = [end_s for _, end_s, _, ended_by, _ in plain.rounds if ended_by != "restart"]
    assert [one.time_s for one in selector.reports] == ends_s
    if kind is synchronous:
        counts = rows(history.rounds, "selected", "delivered", "late", "dropped")
        assert counts == [plain.counted(number) for number in range(1, plain.count + 1)]
        assert [(view.time_s, view.client.tolist()) for view in selector.views] == plain.views
