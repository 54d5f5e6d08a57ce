"""Laws of the tables of a run: true ones pass, and for each law there is a false one that it refuses."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from fedsim.history import Recorder
from fedsim.history.outcomes import Fate, JudgedModel, JudgedSamples, Outcome, Phase, RoundEnd, SecureStep
from fedsim.history.schema import TABLES
from fedsim.simulation import Simulation
from tests.support.short_runs import TIMING
from tests.support.table_audit import ROW_RULES, Promised, check_tables

LEFT, SENT = Outcome.DROPPED, Outcome.DELIVERED
BUDGET = 1.0

# Client 4 delivers in 6 s. Client 1 is cut in its work, 2 in its upload. Then client 4 is late, and used in round 3.
PARTICIPATION = {
    "round": [1, 1, 1, 2],
    "edge": None,
    "client": [4, 1, 2, 4],
    "draws": 1,
    "weight": [1.0, 0.0, 0.0, 0.5],
    "work": 1.0,
    "start_s": [0.0, 0.0, 0.0, 8.0],
    "downlink_s": [1.0, 1.0, 1.0, 1.0],
    "compute_s": [2.0, 0.5, 2.0, 2.0],
    "uplink_s": [3.0, 0.0, 4.0, 5.0],
    "queue_s": [0.0, 0.0, 1.0, 0.0],
    "end_s": [6.0, 1.5, 8.0, 16.0],
    "downlink_bits": 8.0,
    "uplink_bits": [9.0, 0.0, 4.0, 9.0],
    "outcome": [SENT, LEFT, Outcome.LATE, Outcome.LATE],
    "cut_in": [None, Phase.COMPUTE, Phase.UPLINK, None],
    "fate": [Fate.USED, Fate.WASTED_DROPPED, Fate.WASTED_LATE, Fate.STALE_USED],
    "start_version": [0, 0, 0, 1],
    "served_round": [1, None, None, 3],
    "staleness": [0, None, None, 1],
    "epsilon": [0.25, 0.0, 0.25, 0.25],
    "energy_j": [3.0, 1.0, 2.0, 3.0],
}
PROBE = {name: PARTICIPATION[name] for name in TABLES["probes"].arrow.names} | {"epsilon": 0.0}
STEP = {name: PARTICIPATION.get(name) for name in TABLES["secure_steps"].arrow.names} | {"step": SecureStep.UNMASK}
RELEASE = {
    "round": [1, 1, 2, 2], "edge": None, "client": [4, 2, 4, None], "number": [1, 1, 2, None], "epsilon": 0.25,
    "clipping_norm": 1.0, "sensitivity": 2.0, "noise_scale": 8.0, "spent": [0.25, 0.25, 0.5, None], "delta": 0.0,
}  # fmt: skip
ROUND = {
    "round": [1, 2, 3],
    "start_s": [0.0, 8.0, 12.0],
    "end_s": [8.0, 12.0, 20.0],
    "duration_s": [8.0, 4.0, 8.0],
    "candidates": 5,
    "selected": [3, 1, 0],
    "delivered": [1, 0, 0],
    "late": [1, 1, 0],
    "dropped": [1, 0, 0],
    "stale_used": [0, 0, 1],
    "model_version": [1, 1, 2],
    "largest_leakage": [0.25, 0.5, 0.5],
    "mean_leakage": [0.05, 0.1, 0.15],
    "noise_to_signal": [2.0, None, 0.5],
    "clipped_share": [0.5, None, 0.0],
    "ended_by": RoundEnd.ENOUGH,
}
TRUE = {
    "participations": PARTICIPATION,
    "probes": PROBE,
    "secure_steps": STEP,
    "releases": RELEASE,
    "rounds": ROUND,
    "edge_rounds": {"edge": 0, **ROUND},
    "evaluations": {
        "round": [1, 2], "time_s": [8.0, 12.0], "model_version": [1, 1], "accuracy": 0.5, "loss": 1.0,
        "metrics": None,
        "model": JudgedModel.SERVER,
        "judged_on": JudgedSamples.TEST_SET,
    },
    "edge_participations": {
        "round": [1, 2], "edge": 0, "edge_rounds": 1, "start_s": [0.0, 8.0], "downlink_s": 1.0, "uplink_s": 1.0,
        "end_s": [8.0, 12.0], "downlink_bits": 8.0, "uplink_bits": 8.0, "start_version": 0, "staleness": 0,
        "weight": 1.0,
    },
    "accounts": {
        "client": [0, 1], "idle_s": [0.0, 6.0], "downlink_s": 4.0, "compute_s": [10.0, 4.0], "queue_s": 0.0,
        "uplink_s": 5.0, "cut_off_s": 1.0,
    },
}  # fmt: skip


def table(name, **cells):
    """Return a true table with some cells changed, given as column = {row: value}."""
    rows = []
    for row in range(max(len(given) for given in TRUE[name].values() if isinstance(given, list))):
        values = {column: given[row] if isinstance(given, list) else given for column, given in TRUE[name].items()}
        rows.append(values | {column: changed[row] for column, changed in cells.items() if row in changed})
    assert cells.keys() <= TRUE[name].keys() == set(TABLES[name].arrow.names)
    return TABLES[name].from_rows(rows)


def accounts():
    """Return the accounts of clients 0 to 4: client 2 has spent 0.25, client 4 has spent 0.5."""
    budget = SimpleNamespace(total=BUDGET)
    return SimpleNamespace(
        budget=budget, total=BUDGET, adds_up=True, declared=0.0, spent=np.array([0.0, 0.0, 0.25, 0.0, 0.5])
    )


def audited(changes, accountant=None, one_server=True):
    """Check all tables, with the changes to their cells by table."""
    tables = {name: table(name, **changes.get(name, {})) for name in TRUE}
    check_tables(tables, Promised((8.0, 9.0), accountant or accounts(), one_server=one_server))


def test_true_tables_pass():
    audited({})


def test_every_run_of_the_tests_passes_here(monkeypatch):
    """The second row of round 5 ends a second after its phases: `tests/conftest.py` lets the run fail."""
    add = Recorder.add_columns

    def add_wrong(self, table, /, **columns):
        if columns["round"] == 5:
            columns["end_s"] = columns["end_s"] + np.array([0.0, 1.0, 0.0])
        add(self, table, **columns)

    monkeypatch.setattr(Recorder, "add_columns", add_wrong)
    wrong = (
        r"participations, row 13 \(round = 5, .*\): has seconds of phases that do not add up to its length \(downlink_s"
    )
    with pytest.raises(AssertionError, match=wrong):
        Simulation(TIMING).run()


ON_THE_AIR = {
    "begins before time 0": {"start_s": {0: -1.0}, "queue_s": {0: 1.0}},
    "ends before it begins": {
        # Sums of such numbers say nothing, as they differ by less than their rounding.
        "start_s": {3: 1e12 + 1e2}, "end_s": {3: 1e12}, **{c: {3: 0.0} for c in ("downlink_s", "compute_s", "uplink_s")}
    },
    "has seconds of phases that do not add up to its length": {"compute_s": {3: 2.1}},
    "has a phase of less than 0 s": {"queue_s": {3: -1.0}, "compute_s": {3: 3.0}},
    "has carried less than 0 bits": {"downlink_bits": {1: -1.0}},
    "has sent bits before its upload": {"uplink_bits": {1: 1.0}},
    "has drawn less than 0 J": {"energy_j": {0: -0.5}},
    "begins before the client's one before it has ended": {"start_s": {3: 5.0}, "queue_s": {3: 3.0}},
    "stands twice, so that its update would count twice": {"start_s": {3: 0.0}, "queue_s": {3: 8.0}},
}  # fmt: skip
PLANTS = [
    *(("participations", broken, cells) for broken, cells in ON_THE_AIR.items()),
    *((name, "has drawn less than 0 J", {"energy_j": {0: -0.5}}) for name in ("probes", "secure_steps")),
    ("edge_rounds", "counts less than no client", {"candidates": {1: -1}}),
    ("releases", "takes its client beyond the privacy budget of 1.0", {"spent": {2: 1.1}}),
    ("participations", "was delivered although it was cut", {"outcome": {2: SENT}}),
    ("participations", "was dropped although it was not cut", {"outcome": {3: LEFT}}),
    ("participations", "has an outcome that its fate contradicts", {"fate": {1: Fate.WASTED_LATE}}),
    ("participations", "was used and did not arrive", {"cut_in": {3: Phase.UPLINK}}),
    ("participations", "was late and used as if in time", {"fate": {3: Fate.USED}, "staleness": {3: 0}}),
    ("participations", "was stale and used as if fresh", {"staleness": {0: 1}}),
    ("participations", "has a served round that its fate contradicts", {"served_round": {0: None}}),
    ("participations", "has a staleness that its fate contradicts", {"staleness": {3: None}}),
    ("participations", "was used before the round in which it began", {"served_round": {3: 1}}),
    ("participations", "weighs in the model although it was not used", {"weight": {2: 0.1}}),
    ("participations", "has a weight that is no number", {"weight": {0: np.nan}}),
    ("participations", "has spent less than no privacy", {"epsilon": {0: 0.5, 3: 0.25, 2: -0.25}}),
    ("participations", "was charged privacy before its upload", {"epsilon": {1: 0.1}}),
    ("participations", "has carried more than the 8.0 bits of the message", {"downlink_bits": {2: 8.5}}),
    ("participations", "has carried more than the 9.0 bits of the message", {"uplink_bits": {2: 9.5}}),
    ("participations", "arrived without all 8.0 bits", {"downlink_bits": {3: 7.0}}),
    ("participations", "arrived without all 9.0 bits", {"uplink_bits": {3: 7.0}}),
    ("participations", "takes its client beyond the privacy budget of 1.0", {"epsilon": {3: 0.8}}),
    ("rounds", "begins before time 0", {"start_s": {0: -1.0}, "duration_s": {0: 9.0}}),
    ("rounds", "ends before it begins", {"end_s": {1: 7.0}, "duration_s": {1: -1.0}}),
    ("rounds", "has a duration that its ends contradict", {"duration_s": {1: 4.5}}),
    ("rounds", "counts less than no client", {"candidates": {1: -1}}),
    ("rounds", "does not have a higher number than the round before it", {"round": {1: 1}}),
    ("rounds", "begins before the round before it has ended", {"start_s": {2: 11.0}, "duration_s": {2: 9.0}}),
    ("rounds", "has leaked more in the mean than at the most", {"mean_leakage": {1: 0.6}}),
    ("rounds", "has leaked less than the round before it", {"largest_leakage": {2: 0.4}}),
    ("rounds", "has an older model than the round before it", {"model_version": {2: 0}}),
    ("rounds", "counts more participations that ended than were begun so far", {"dropped": {1: 1}}),
    ("evaluations", "stands before time 0", {"time_s": {0: -1.0}}),
    ("evaluations", "stands before the evaluation before it", {"time_s": {1: 7.0}}),
    ("evaluations", "has an older model than the evaluation before it", {"model_version": {1: 0}}),
    ("edge_participations", "begins before time 0", {"start_s": {0: -1.0}}),
    ("edge_participations", "ends before it begins", {"end_s": {1: 7.0}, "downlink_s": {1: 0.0}, "uplink_s": {1: 0.0}}),
    ("edge_participations", "has less than 0 s or 0 bits of a transfer", {"uplink_bits": {1: -1.0}}),
    ("edge_participations", "has longer transfers than itself", {"uplink_s": {1: 3.5}}),
    ("edge_participations", "begins before the edge's one before it has ended", {"start_s": {1: 7.0}}),
    ("accounts", "has used its time for less than 0 s", {"idle_s": {0: -1.0}, "compute_s": {0: 11.0}}),
    ("accounts", "has not used as much time as another client", {"idle_s": {1: 5.0}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "broken", "cells"), PLANTS, ids=[f"{name}: {broken}" for name, broken, _ in PLANTS])
def test_a_planted_violation_is_refused_by_its_rule(name, broken, cells):
    with pytest.raises(AssertionError, match=rf"^{name}, row .*: {re.escape(broken)} \("):
        audited({name: cells})


def test_every_rule_of_a_row_has_a_planted_violation():
    """Tables share rules: a participation, a probe and a step of secure sums those of what is on the air."""
    rules = {rule for of_table in ROW_RULES.values() for rule in of_table.values()}
    assert rules == {ROW_RULES[name][broken] for name, broken, _ in PLANTS if broken in ROW_RULES.get(name, {})}


ENDS = [
    ({"selected": {2: 1}}, "participations: its rows add up to 4 participations begun; the server has counted 5", {}),
    ({"stale_used": {2: 2}}, "participations: its rows add up to 1 stale updates used; the server has counted 2", {}),
    (
        {},
        "participations: its rows add up to 0.5 epsilon of client 4; the server has counted 0.75",
        {"spent": [0, 0, 0.25, 0, 0.75]},
    ),
]


@pytest.mark.parametrize(("rounds", "message", "accounted"), ENDS)
def test_tables_that_contradict_one_another_are_refused_at_the_end(rounds, message, accounted):
    accountant = accounts()
    accountant.spent = np.array(accounted.get("spent", accountant.spent), float)
    with pytest.raises(AssertionError) as refusal:
        audited({"rounds": rounds}, accountant=accountant)
    assert str(refusal.value) == message


def test_an_edge_server_may_go_back_to_an_older_model_of_the_cloud():
    audited({"edge_rounds": {"model_version": {2: 0}}})


def test_with_edge_servers_participations_that_no_round_counts_are_no_contradiction():
    """The edge servers' last rounds are not over when the cloud's last one is."""
    audited({"rounds": {"selected": {1: 0}, "late": {1: 0}}}, one_server=False)
