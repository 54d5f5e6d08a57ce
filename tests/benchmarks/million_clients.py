"""A million registered clients, a thousand a round, PAUSE's exact search, a thousand rounds, timing only.

    python tests/benchmarks/million_clients.py [--network cell] [--availability flash] [--rounds 1000] [--no-rows]

prints every tenth of the run seconds a round and the memory of the process; at the end seconds, the largest memory,
client-rounds per second and the rows' share of the memory. With
``--no-rows`` participations are not recorded, so that growth of memory is that of everything else. Not a test: it
asserts nothing.

In the first K / m rounds no client has been tried, and PAUSE selects among the untried clients by their bonuses. A
larger cohort (``--cohort 20000 --rounds 100``) comes to the rounds after them, in which it searches by the UCB.
"""

import argparse
import os
import resource
import time
from pathlib import Path

from crowds import AVAILABILITY, cell, timing_only

from fedsim import Scenario
from fedsim.history import Recorder
from fedsim.rounds import Progress, StoppingCriteria
from fedsim.scenario.building import build_context, build_server

NETWORKS = {"two-speed": {"kind": "pause-two-speed"}, "cell": cell("dedicated", "dedicated")}


class NoRows(Recorder):
    def add_columns(self, table, /, **columns) -> None:
        if table != "participations":
            super().add_columns(table, **columns)


def scenario(given: argparse.Namespace) -> Scenario:
    """Return the scenario that was asked for; with clients that may leave its rounds have a deadline."""
    policy = given.policy
    if given.availability not in ("always", "bernoulli") and policy == "wait-for-all":
        policy = {"kind": "deadline", "deadline_s": 30.0}
    return timing_only(
        given.clients,
        NETWORKS[given.network],
        {"count": given.rounds, "policy": policy},
        {"kind": given.selector, "cohort": given.cohort},
        privacy={"mechanism": {"kind": "laplace-l1", "clip": 1.0}, "budget": {"kind": "geometric", "epsilon": 20.0}},
        devices={"availability": AVAILABILITY[given.availability]},
    )


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a run with a million clients.")
    parser.add_argument("--network", choices=NETWORKS, default="two-speed")
    parser.add_argument("--availability", choices=AVAILABILITY, default="always")
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--cohort", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--selector", default="pause")
    parser.add_argument("--policy", default="wait-for-all")
    parser.add_argument("--no-rows", action="store_true", help="do not record participations")
    given = parser.parse_args()
    began_s = last_s = time.process_time()
    tenth = max(1, given.rounds // 10)

    def report(progress: Progress) -> None:
        nonlocal last_s
        if progress.round % tenth == 0:
            now_s = time.process_time()
            print(
                f"round {progress.round:>6}: {1e3 * (now_s - last_s) / tenth:7.1f} ms a round, {resident_mb():7.0f} MB",
                flush=True,
            )
            last_s = now_s

    recorder = (NoRows if given.no_rows else Recorder)("million")
    server = build_server(
        build_context(scenario(given)), StoppingCriteria(count=given.rounds), recorder, on_round=report
    )
    built_s = time.process_time() - began_s
    server.run()
    took_s = time.process_time() - began_s
    history = recorder.history()
    rows_mb = history.participations.nbytes / 1e6
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    done = int(history.column("rounds", "selected").sum())
    print(f"{took_s:.1f} s, of which {built_s:.1f} s to build; largest memory {peak_mb:.0f} MB, rows {rows_mb:.0f} MB")
    print(f"{done / took_s:,.0f} client-rounds per second")


if __name__ == "__main__":
    main()
