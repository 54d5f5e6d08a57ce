"""A testbed that is driven by the scenario's own selector, and what tables are made of."""

import numpy as np
import pyarrow as pa

from fedsim import Testbed

TOLD = "start_version start_s end_s downlink_s compute_s queue_s uplink_s downlink_bits uplink_bits energy_j epsilon"


def driven(scenario, **options):
    testbed, told = Testbed(scenario, **options), []
    while not testbed.over:
        if scenario.rounds.policy.traits.concurrency is None:
            cohort = testbed.select()
            if not testbed.over:  # the run may end during a question of the selector
                told.append(testbed.round(cohort))
        else:
            send_and_wait(testbed)
    history = testbed.finish()
    check_told(told, history)
    return history


def check_told(told, history):
    """What rounds have told of themselves, and of the clients that were done by their ends, is what tables have."""
    rows = {(row["round"], row["client"]): row for row in history.participations.to_pylist()}
    rounds = {row["round"]: row for row in history.rounds.to_pylist()}
    for one in told:
        row = rounds[one.number]
        assert (row["start_s"], row["end_s"], row["ended_by"]) == (one.round_start_s, one.round_end_s, one.ended_by)
        assert (row["model_version"], row["candidates"]) == (one.version, one.candidates)
    for part in (part for one in told for part in (one, one.late)):
        for i in np.flatnonzero(np.isfinite(part.end_s)):
            row = rows[part.round[i], part.client[i]]
            assert row["outcome"] == part.outcome[i]
            assert part.delivered[i] == (row["outcome"] == "delivered")
            if part.used[i]:
                assert row["fate"] in ("used", "stale-used")
                assert (row["weight"], row["staleness"]) == (part.weight[i], part.staleness[i])
            else:
                assert part.weight[i] == 0
            assert [row[name] or 0 for name in TOLD.split()] == [getattr(part, name)[i] for name in TOLD.split()]


def send_and_wait(testbed):
    """Let the selector fill the vacant places of an asynchronous server, and wait for the next arrival."""
    while testbed.vacant:
        cohort = testbed.select()
        if not cohort.client.size:
            break
        testbed.send(cohort)
    while testbed.next_arrival(or_candidate=True) is not None and testbed.waiting:
        pass


def table_bytes(history):
    found = {}
    for name, table in history.tables().items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        found[name] = sink.getvalue().to_pybytes()
    return found
