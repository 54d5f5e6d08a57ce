"""What is printed of scenarios, histories and testbeds, as text and as HTML."""

import pytest

from fedsim import Scenario, Testbed, run, simulate
from fedsim.errors import RunError
from fedsim.history.first_sight import FirstSight

SECOND = {"kind": "constant", "value_s": 1.0}
TABLES = {
    "name": "printed",
    "crowd": {"clients": 4},
    "learning": "none",
    "network": {"kind": "latency", "downlink": SECOND, "uplink": SECOND, "uplink_factor": [1.0, 1.0, 1.0, 4.0]},
    "devices": {"compute": "zero"},
    "rounds": {"count": 2, "policy": {"kind": "deadline", "deadline_s": 3.5}},
    "selector": {"kind": "uniform", "cohort": 4},
}


def test_a_scenario_prints_its_kinds():
    assert str(Scenario(**TABLES)) == repr(Scenario(**TABLES)) == (
        "Scenario 'printed', seed 0\n"
        "  crowd     4 clients\n"
        "  learning  none\n"
        "  privacy   none\n"
        "  network   latency (spread_sigma 0, downlink_factor 1)\n"
        "  devices   compute zero\n"
        "  rounds    2, policy deadline (deadline_s 3.5)\n"
        "  selector  uniform (cohort 4)"
    )  # fmt: skip


def test_a_history_prints_what_it_came_to():
    """Client 3 needs five seconds and is late twice."""
    history = simulate(TABLES)
    assert str(history) == (
        "History of 'printed'\n"
        "  rounds          2 in 7 s\n"
        "  participations  6 delivered, 2 late, 0 dropped\n"
        "  tables          participations 8, rounds 2, evaluations 0, clients 4"
    )
    assert "<tr><th>rounds</th><td>2 in 7 s</td></tr>" in history._repr_html_()


def test_a_testbed_prints_its_second_without_time_that_passes():
    with Testbed(TABLES) as testbed:
        assert str(testbed) == "Testbed of 'printed'\n  simulated time  0 s\n  clients         4"
        testbed.round([0, 3])
        assert str(testbed).splitlines()[1:] == [
            "  simulated time  3.5 s",
            "  clients         4",
            "  last round      1, 1 of 2 delivered",
        ]


class Marked(FirstSight):
    def _first_sight(self):
        return "<b>", [("a&b", "<i>")]


def test_names_are_text_in_html():
    assert Marked()._repr_html_() == (
        "<table><caption>&lt;b&gt;</caption><tr><th>a&amp;b</th><td>&lt;i&gt;</td></tr></table>"
    )
    assert "<th>selector</th><td>uniform (cohort 4)</td>" in Scenario(**TABLES)._repr_html_()


def test_a_scenario_may_be_given_as_a_file_or_as_tables(tmp_path):
    file = tmp_path / "printed.toml"
    file.write_text(Scenario(**TABLES).to_toml())
    rounds = simulate(Scenario(**TABLES)).rounds
    for given in (TABLES, file, str(file)):
        assert simulate(given).rounds.equals(rounds)
    assert run(file, tmp_path / "run").rounds.equals(rounds)
    with pytest.raises(RunError, match="has no models to evaluate"):
        simulate(file).evaluate_missing()
