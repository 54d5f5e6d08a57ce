"""FedCS: as many clients as can deliver before the deadline, by their answers to a resource request."""

import heapq
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors.contracts import Cohort, Probe, PublishedSelector, RoundView
from fedsim.selectors.options import Above0, AtLeast0, PositiveShare, check_options
from fedsim.selectors.sampling import lowest
from fedsim.units import Bits, Seconds


@dataclass(eq=False, repr=False)
class FedCs(PublishedSelector):
    """Fill the round greedily with clients of a random share of the crowd, by their stated resources (Algorithm 3).

    Clients work in parallel and upload one after the other. With Theta the time at which the last upload so far ends,
    a client with work t_UD and upload t_UL adds ``t_UL + max(0, t_UD - Theta)`` to it. The client that adds least is
    taken repeatedly, as long as Theta and the overhead stay below the deadline.

    Parameters
    ----------
    deadline_s : float > 0
        T_round, 180 s in the paper. It is the deadline of the plan; the round's deadline is set by the round policy.
    share : float in (0, 1]
        Part of the crowd that is asked, C (0.1 in the paper); rounded up, drawn uniformly among the candidates.
    uploads : ``"serial"`` or ``"parallel"``
        One after the other as in the paper; or in parallel, where all clients with t_UD + t_UL in time are taken.
    overhead_s : float >= 0
        T_cs + T_d + T_agg: selection, distribution of the model (by multicast, independent of the set) and
        aggregation. Selection and aggregation take no other time in a simulation.
    down_bits, up_bits : floats >= 0
        Size of a resource request and of its answer; a choice of fedsim.
    wait_s : float > 0 or None
        Longest wait for answers; None for all of them.

    Notes
    -----
    The paper's T_d depends on the slowest link of the set; clients do not state their downlink here. If no client can
    be ready in time, the one of least t_UD + t_UL is taken, as a cohort must not be empty. Without any answer, all
    clients that were asked and are still candidates are taken, as in FedLim, the paper's baseline. A server that
    wants fewer clients gets those scheduled first.
    """

    paper = (
        "Nishio and Yonetani, Client Selection for Federated Learning with Heterogeneous Resources in Mobile Edge, "
        "ICC 2019, Algorithm 3"
    )
    communication = "a request down and two numbers up for a share of the crowd"

    deadline_s: Above0[Seconds]
    share: PositiveShare = 0.1
    uploads: Literal["serial", "parallel"] = "serial"
    overhead_s: AtLeast0[Seconds] = 0.0
    down_bits: AtLeast0[Bits] = 256.0
    up_bits: AtLeast0[Bits] = 256.0
    wait_s: Above0[Seconds] | None = None

    def __post_init__(self) -> None:
        check_options(self)
        self._asked: IntArray = np.zeros(0, dtype=np.int64)

    def probe(self, view: RoundView, rng: np.random.Generator) -> Probe | None:
        self._asked = self._drawn(view, rng)
        if not self._asked.size:
            return None
        return Probe(
            client=self._asked, asks="resources", down_bits=self.down_bits, up_bits=self.up_bits, wait_s=self.wait_s
        )

    def select(self, view: RoundView, rng: np.random.Generator) -> Cohort:
        most = view.client.size if view.wanted is None else view.wanted
        answers = view.answers
        if answers is None or not answers.client.size:
            asked = view.client[:0] if answers is None else np.intersect1d(self._asked, view.client)
            drawn = rng.permutation(asked) if asked.size else self._drawn(view, rng)
            return Cohort(np.sort(drawn[:most]))
        known = np.isfinite(answers.compute_s + answers.uplink_s)
        client, work_s, upload_s = answers.client[known], answers.compute_s[known], answers.uplink_s[known]
        budget_s = self.deadline_s - self.overhead_s
        if self.uploads == "serial":
            order = serial_schedule(work_s, upload_s, budget_s, most)
        else:
            order = parallel_schedule(work_s, upload_s, budget_s)[:most]
        if not order.size:
            order = lowest(answers.compute_s + answers.uplink_s, min(1, most), rng)
            client = answers.client
        return Cohort(np.sort(client[order]))

    def _drawn(self, view: RoundView, rng: np.random.Generator) -> IntArray:
        asked = min(max(1, math.ceil(round(self.share * view.clients, 9))), view.client.size)
        return rng.choice(view.client, asked, replace=False)


def serial_schedule(work_s: FloatArray, upload_s: FloatArray, budget_s: float, most: int) -> IntArray:
    """Return the clients of Algorithm 3 in the order in which they are taken; O(n log n).

    A client that is not ready at Theta adds ``work + upload - Theta``, a ready one adds its upload. So the least sum
    among the former and the least upload among the latter are sufficient. If the client that adds least does not fit,
    no client fits.
    """
    able = np.flatnonzero(work_s + upload_s < budget_s)
    work, upload = work_s[able], upload_s[able]
    finish = work + upload
    by_work, by_finish = np.argsort(work, kind="stable"), np.argsort(finish, kind="stable").tolist()
    sorted_work = work[by_work]
    taken: list[int] = []
    placed = np.zeros(able.size, dtype=bool)
    ready: list[tuple[float, int]] = []
    theta_s, waiting, arrived = 0.0, 0, 0
    while len(taken) < min(most, able.size):
        stop = int(np.searchsorted(sorted_work, theta_s, side="right"))
        fresh = by_work[arrived:stop]
        fresh, arrived = fresh[~placed[fresh]], max(arrived, stop)
        if fresh.size:
            _push(ready, list(zip(upload[fresh].tolist(), fresh.tolist(), strict=True)))
        while waiting < able.size and (placed[by_finish[waiting]] or work[by_finish[waiting]] <= theta_s):
            waiting += 1
        unready = waiting < able.size
        if unready and (not ready or finish[by_finish[waiting]] - theta_s < ready[0][0]):
            place, ends_s = by_finish[waiting], float(finish[by_finish[waiting]])
        else:
            place, ends_s = ready[0][1], theta_s + ready[0][0]
            heapq.heappop(ready)
        if ends_s >= budget_s:
            break
        theta_s = ends_s
        placed[place] = True
        taken.append(place)
    return able[np.array(taken, dtype=np.int64)]


def _push(heap: list[tuple[float, int]], items: list[tuple[float, int]]) -> None:
    if 8 * len(items) > len(heap):
        heap += items
        heapq.heapify(heap)
    else:
        for item in items:
            heapq.heappush(heap, item)


def parallel_schedule(work_s: FloatArray, upload_s: FloatArray, budget_s: float) -> IntArray:
    """Return the positions of clients with work and upload within the budget, by ascending sum; shape (k,)."""
    done_s = work_s + upload_s
    order = np.argsort(done_s, kind="stable")
    return np.asarray(order[: int(np.searchsorted(done_s[order], budget_s, side="left"))])
