"""Servers of both kinds as one plain loop from instant to instant, with nothing in it but lists of what was sent.

Clients have times of their own, and devices, links and the server fail in intervals that are known beforehand. Whatever
comes to an end at an instant does so before the server looks, and the server crashes last.
"""

import itertools
import math
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.rounds.effects.faults.settings import ServerRestart
from tests.support.stories import rows
from tests.support.worlds import CountingLearner, available_in, serve

INF = math.inf
NEAR_S = 1e-9
FAR_S = 990.0


@dataclass
class World:
    """Times of the clients, and what fails when; intervals are those in which a thing works."""

    phases_s: list[tuple[float, ...]]
    leaves_s: list[float]
    devices: list[list[tuple[float, float]]]
    links: list[list[tuple[float, float]]]
    crashes_s: list[float]
    down_s: float

    def is_up(self, client: int, now_s: float) -> bool:
        return all(
            any(begin <= now_s < end for begin, end in works) for works in (self.devices[client], self.links[client])
        )

    def steps_s(self, client: int, start_s: float) -> list[float]:
        """Return when a participation starts, has heard, is ready, begins to send and is done if nothing stops it."""
        down_s, work_s, up_s = self.phases_s[client]
        ready_s = start_s + down_s + work_s
        sends_s = next(max(ready_s, begin) for begin, end in self.links[client] if end > ready_s)
        return [start_s, start_s + down_s, ready_s, sends_s, sends_s + up_s]

    def fate(self, client: int, start_s: float) -> tuple[float, bool]:
        """Return when a participation ends if nobody cuts it off, and whether it delivers."""
        _, heard_s, _, sends_s, done_s = self.steps_s(client, start_s)
        lost_s = [start_s + self.leaves_s[client]]
        lost_s += [end for _, end in self.devices[client] if start_s <= end]
        lost_s += [end for _, end in self.links[client] if start_s <= end < heard_s or sends_s <= end]
        return (min(lost_s), False) if min(lost_s) < done_s else (done_s, True)

    def phases(self, one: "Sent") -> tuple[Any, ...]:
        """Return where a participation was cut, and its seconds of downlink, work, waiting for the link and uplink."""
        steps_s = self.steps_s(one.client, one.start_s)
        named = zip(("downlink", "compute", "uplink", "uplink"), steps_s[1:], strict=True)
        times_s = [after - before for before, after in itertools.pairwise(min(each, one.end_s) for each in steps_s)]
        return next((name for name, over_s in named if one.end_s < over_s), None), *times_s


def _works(draw: random.Random, most: int) -> list[tuple[float, float]]:
    """Return intervals in which a thing works, the last of them far beyond the run."""
    edges = sorted(draw.sample(range(1, 160), 2 * draw.randint(0, most)))
    return list(
        zip([0.0, *(edge / 4 for edge in edges[1::2])], [*(edge / 4 for edge in edges[::2]), FAR_S], strict=True)
    )


def random_world(draw: random.Random, *, waits_for_all: bool) -> World:
    """Return a world of quarters of a second, in which many things come at one instant."""
    clients, faults = range(draw.randint(1, 4)), 0 if waits_for_all else draw.choice([0, 0, 3])
    crashes = [each / 4 for each in sorted(draw.sample(range(4, 120, 12), draw.choice([0, 0, 1, 3])))]
    return World(
        # Client 0 is never given up as too slow, and never leaves.
        phases_s=[tuple(draw.randint(1, 12 if client else 8) / 4 for _ in range(3)) for client in clients],
        leaves_s=[
            draw.randint(1, 30) / 4 if client and not waits_for_all and draw.random() < 0.2 else INF
            for client in clients
        ],
        devices=[_works(draw, faults) for _ in clients],
        links=[_works(draw, faults) for _ in clients],
        crashes_s=crashes,
        down_s=draw.randint(1, 10) / 4,
    )


@dataclass
class Sent:
    client: int
    round: int
    version: int
    start_s: float
    end_s: float
    delivers: bool
    is_late: bool = False
    fate: str = ""
    staleness: int | None = None
    served: int | None = None
    weight: float = 0.0


def at_least(share: float, count: int) -> int:
    return max(1, math.ceil(round(share * count, 9)))


@dataclass
class PlainServer:
    """Rounds of a policy: ``kind`` is that of a scenario, ``asynchronous`` if it has a concurrency."""

    world: World
    count: int
    policy: dict[str, Any]
    late: str = "cancel"
    minimum: int = 1
    rounds: list[tuple[Any, ...]] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    merged: list[tuple[list[int], list[float]]] = field(default_factory=list)
    trained: list[tuple[int, int, int]] = field(default_factory=list)
    views: list[tuple[float, list[int]]] = field(default_factory=list)
    reports: list[list[tuple[int, bool, float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asynchronous = "concurrency" in self.policy
        self.limit_s = min(self.policy.get(name, INF) for name in ("deadline_s", "max_wait_s"))
        self.now_s, self.version, self.back_s = 0.0, 0, 0.0
        self.start_s: float | None = None
        self.cohort: list[Sent] | None = None
        self.running: list[Sent] = []
        self.waiting: list[Sent] = []
        self.untold: list[Sent] = []
        self.past: list[tuple[float, list[float], float]] = []
        self.given_up: list[Sent] = []

    def run(self) -> None:
        while len(self.rounds) < self.count:
            self.arrive()
            self.give_up()
            while len(self.rounds) < self.count and (self.close() or self.open()):
                pass
            if len(self.rounds) < self.count:
                self.send()
                self.crash()
                self.now_s = min(instant for instant in self.ahead() if instant > self.now_s + NEAR_S)
        for one in self.running:
            self.cut(one)
        for one in self.sent:
            one.fate = one.fate or "wasted-unmerged"

    def has_come(self, instant_s: float) -> bool:
        return instant_s <= self.now_s + NEAR_S

    def ahead(self) -> list[float]:
        found = [*self.world.crashes_s, self.back_s, self.due_s(), *(one.end_s for one in self.running)]
        found += [
            edge for rows in (self.world.devices, self.world.links) for row in rows for one in row for edge in one
        ]
        if self.cohort is not None:
            found += [self.sent_s + self.limit_s, self.sent_s + self.policy.get("min_wait_s", 0.0)]
        return [*found, *(one.start_s + self.policy.get("give_up_s", INF) for one in self.running)]

    # Clients.

    def arrive(self) -> None:
        for one in [one for one in self.running if self.has_come(one.end_s)]:
            if one.delivers:
                self.running.remove(one)
                self.waiting.append(one)
                self.untold.append(one)
            else:
                one.fate = "wasted-dropped"
                if not self.asynchronous:
                    self.running.remove(one)

    def give_up(self) -> None:
        for one in [one for one in self.running if self.has_come(one.start_s + self.policy.get("give_up_s", INF))]:
            self.running.remove(one)
            self.given_up.append(one)
            self.cut(one)

    def cut(self, one: Sent) -> None:
        if not one.fate:
            one.end_s, one.is_late, one.delivers, one.fate = self.now_s, True, False, "wasted-late"

    def send(self) -> None:
        if self.start_s is None:
            return
        busy = [one.client for one in self.running]
        clients = range(len(self.world.phases_s))
        free = [client for client in clients if client not in busy and self.world.is_up(client, self.now_s)]
        if self.asynchronous:
            free = free[: self.policy["concurrency"] - len(busy)]
        elif self.cohort is not None or not (free or self.overlaps()):
            return
        self.sent_s = self.now_s
        self.limit_s = self.next_limit_s()
        if free:
            self.views.append((self.now_s, free))
        number = len(self.rounds) + 1
        new = [Sent(client, number, self.version, self.now_s, *self.world.fate(client, self.now_s)) for client in free]
        self.cohort = [*(self.cohort or []), *new]
        self.sent += new
        self.running += new

    # Rounds.

    def open(self) -> bool:
        """Begin a round as soon as the server is up, and a client is, at work or not; or some are in flight."""
        clients = range(len(self.world.phases_s))
        there = any(self.world.is_up(client, self.now_s) for client in clients)
        if self.start_s is not None or not self.has_come(self.back_s) or not (there or self.overlaps()):
            return False
        self.start_s, self.cohort = self.now_s, None
        return self.asynchronous

    def overlaps(self) -> bool:
        """Return whether a round may begin with clients in flight alone."""
        return self.asynchronous and bool(self.running)

    def close(self) -> bool:
        if self.start_s is None or not (self.merges_buffer() if self.asynchronous else self.merges_cohort()):
            return False
        number = len(self.rounds) + 1
        stale = sum(one.fate == "stale-used" and one.served == number for one in self.sent)
        self.rounds.append((self.start_s, self.now_s, self.version, self.ended_by(), stale))
        told = self.cohort or []
        if self.asynchronous:
            told, self.untold, self.given_up = [*sorted(self.untold, key=self.sent.index), *self.given_up], [], []
        self.reports.append([self.report(one) for one in told])
        self.start_s = None
        return True

    def merges_buffer(self) -> bool:
        if not self.has_come(self.due_s()):
            return False
        self.forget_old()
        size = self.policy.get("buffer", max(1, len(self.waiting)))
        if len(self.waiting) < size:
            return False
        chosen = sorted(self.waiting, key=lambda one: one.end_s)[:size]
        self.waiting = [one for one in self.waiting if one not in chosen]
        chosen.sort(key=self.sent.index)
        shares = [self.policy.get("mixing", 1.0) / size] * size if "buffer" in self.policy else self.shares(chosen)
        self.merge(chosen, [share * self.aged(one) for share, one in zip(shares, chosen, strict=True)])
        return True

    def due_s(self) -> float:
        """Return when the round may end: after the longest delivery of past rounds over the bound of Pisces."""
        longest_s = max((took_s for row in self.reports for _, came, took_s in row if came), default=0.0)
        return (self.start_s or 0.0) + longest_s / self.policy.get("bound", INF)

    def merges_cohort(self) -> bool:
        if self.cohort is None or not self.is_over(self.cohort):
            return False
        for one in [one for one in self.running if one in self.cohort]:
            one.is_late = True
            if self.late == "cancel":
                self.running.remove(one)
                self.cut(one)
        for one in [one for one in self.waiting if one.is_late and self.late == "drop"]:
            self.waiting.remove(one)
            one.fate = "wasted-late"
        durations_s = [one.end_s - one.start_s if one.delivers and not one.is_late else INF for one in self.cohort]
        self.past.append((self.now_s - self.sent_s, durations_s, self.limit_s))
        self.forget_old()
        chosen, self.waiting = sorted(self.waiting, key=self.sent.index), []
        if len(chosen) >= self.minimum:
            weights = [share * self.aged(one) for share, one in zip(self.shares(chosen), chosen, strict=True)]
            self.merge(chosen, [weight / sum(weights) for weight in weights])
        for one in chosen:
            one.fate = one.fate or "wasted-unmerged"
        return True

    def forget_old(self) -> None:
        for one in [one for one in self.waiting if self.version - one.version > self.policy.get("max_staleness", INF)]:
            self.waiting.remove(one)
            one.fate = "wasted-late"

    def next_limit_s(self) -> float:
        """Return how long the next round may last: of policies that begin with ``initial_s``, by the rounds so far."""
        policy = self.policy
        if "initial_s" not in policy or not self.past:
            return float(policy.get("initial_s", self.limit_s))
        length_s, durations_s, limit_s = self.past[-1]
        if policy["kind"] == "moving-average":
            enough = sum(each < INF for each in durations_s) >= at_least(policy["share"], len(durations_s))
            return float((0.75 * length_s + 0.25 * limit_s) * (1.0 if enough else policy["growth"]))
        seen_s = sorted(each for _, row, _ in self.past[-policy["window"] :] for each in row)
        wanted_s = seen_s[at_least(policy["quantile"], len(seen_s)) - 1] * policy["margin"]
        if wanted_s == INF:
            slowest_s = max((each for _, row, _ in self.past for each in row if each < INF), default=INF)
            wanted_s = min(limit_s * policy["growth"], policy["reach"] * slowest_s)
        return float(max(policy["shortest_s"], min(wanted_s, policy["longest_s"])))

    def is_over(self, cohort: list[Sent]) -> bool:
        waited_s, delivered = self.now_s - self.sent_s + NEAR_S, sum(one in self.waiting for one in cohort)
        if delivered == len(cohort) or waited_s >= self.limit_s:
            return True
        if self.policy["kind"] == "k-fastest":
            return delivered >= min(self.policy["k"], len(cohort))
        least = at_least(self.policy.get("share", 2.0), len(cohort))
        return bool(delivered >= least and waited_s >= self.policy["min_wait_s"])

    def ended_by(self) -> str:
        whole = bool(self.cohort) and all(one.delivers and not one.is_late for one in self.cohort or [])
        whole = whole and max(one.end_s for one in self.cohort or []) >= self.now_s - NEAR_S
        return "deadline" if not whole and self.has_come(self.sent_s + self.limit_s) else "enough"

    def report(self, one: Sent) -> tuple[int, bool, float]:
        """Return what the server tells of a client: whether it has delivered, and how long that took so far."""
        waited_s = min(self.now_s - one.start_s, self.policy.get("give_up_s", INF))
        delivered = one.delivers and not one.is_late
        return one.client, delivered, one.end_s - one.start_s if delivered else waited_s

    def counted(self, number: int) -> tuple[int, int, int, int]:
        """Return how many a round has sent: all, those that delivered in time, late ones, and those lost by then."""
        sent = [one for one in self.sent if one.round == number]
        late = sum(one.is_late for one in sent)
        delivered = sum(one.delivers and not one.is_late for one in sent)
        return len(sent), delivered, late, len(sent) - delivered - late

    def shares(self, chosen: list[Sent]) -> list[float]:
        """Return the parts of clients in the samples of all of them: client k has 10 (k + 1)."""
        return [(one.client + 1) / sum(each.client + 1 for each in chosen) for one in chosen]

    def aged(self, one: Sent) -> float:
        return float((1 + self.version - one.version) ** -0.5)

    def merge(self, chosen: list[Sent], weights: list[float]) -> None:
        for one, weight in zip(chosen, weights, strict=True):
            one.weight = weight
            before = self.sent[: self.sent.index(one)]
            repeat = sum(each.delivers and (each.client, each.version) == (one.client, one.version) for each in before)
            self.trained.append((one.version, one.client, repeat))
            one.served = len(self.rounds) + 1
            one.staleness = self.version - one.version
            one.fate = "stale-used" if one.is_late or one.staleness else "used"
        self.merged.append(([one.client for one in chosen], weights))
        self.version += 1

    def crash(self) -> None:
        if not any(abs(instant - self.now_s) < NEAR_S for instant in self.world.crashes_s):
            return
        for one in self.running:
            self.cut(one)
        for one in self.waiting:
            one.fate = "wasted-unmerged"
        self.running, self.waiting, self.untold, self.given_up = [], [], [], []
        if self.start_s is not None:
            self.rounds.append((self.start_s, self.now_s, self.version, "restart", 0))
        self.start_s, self.cohort, self.back_s = None, None, self.now_s + self.world.down_s


def served(plain: PlainServer, policy: Any, **options: Any) -> tuple[Any, Any, Any]:
    """Return history, selector and learner of a server that agrees with a plain one in the same world."""
    plain.run()
    failing = plain.world
    restart = ServerRestart(at_s=failing.crashes_s, down_s=failing.down_s) if failing.crashes_s else None
    history, selector, learner, _ = serve(
        policy,
        *zip(*failing.phases_s, strict=True),
        leaves_s=failing.leaves_s,
        devices_up=available_in(*failing.devices),
        links_up=available_in(*failing.links),
        server_restart=restart,
        minimum_updates=plain.minimum,
        count=plain.count,
        **{"learner": CountingLearner(10 * np.arange(1, len(failing.phases_s) + 1)), **options},
    )
    rounds = history.edge_rounds if "edges" in options else history.rounds
    assert rows(rounds, "start_s", "end_s", "model_version", "ended_by", "stale_used") == plain.rounds
    columns = (
        *("start_s", "client", "round", "start_version", "end_s", "fate", "staleness"),
        *("served_round", "cut_in", "downlink_s", "compute_s", "queue_s", "uplink_s"),
    )
    expected = [
        (
            *(one.start_s, one.client, one.round, one.version, one.end_s, one.fate, one.staleness, one.served),
            *failing.phases(one),
        )
        for one in plain.sent
    ]
    found = sorted(rows(history.participations, *columns), key=lambda row: row[:3])
    assert found == sorted(expected, key=lambda row: row[:3])
    for way, k in (("downlink", 0), ("uplink", 2)):
        whole_s = np.array(failing.phases_s)[history.column("participations", "client"), k]
        sent = history.column("participations", f"{way}_s") / whole_s
        np.testing.assert_allclose(history.column("participations", f"{way}_bits"), sent, atol=1e-12)
    return history, selector, learner
