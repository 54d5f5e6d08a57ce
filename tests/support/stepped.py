"""A testbed that is driven by the scenario's own selector, and what tables are made of."""

import pyarrow as pa

from fedsim import Testbed


def driven(scenario, **options):
    testbed = Testbed(scenario, **options)
    while not testbed.over:
        if scenario.rounds.policy.traits.concurrency is None:
            cohort = testbed.select()
            if not testbed.over:  # the run may end during a question of the selector
                testbed.round(cohort)
        else:
            send_and_wait(testbed)
    return testbed.finish()


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
