"""What goes wrong without ending a run is said: in the summary of its folder, and on the terminal."""

import numpy as np
import pytest

from fedsim import Scenario, simulate
from fedsim.errors import FedsimError
from fedsim.learning import FedAvgM
from fedsim.results import read_run, read_summary, run as run_in_folder
from fedsim.selectors import Cohort, validation
from tests.support import lies
from tests.support.one_command import call

FLAT = {"kind": "battery", "capacity_j": 10.0, "compute_w": 1000.0, "least_charge": 0.5}


def notes_of(tables, tmp_path):
    scenario = Scenario(**lies.together(lies.BASE, tables))
    run_in_folder(scenario, tmp_path / "run", store=False)
    return read_summary(tmp_path / "run")["notes"]


def battery_world():
    """Work of 0.05 s at 1 kW empties a battery of 10 J at once, and none is ever charged."""
    return {
        "learning": {"kind": "none", "samples_per_client": 5, "model_bits": 8.0},
        "devices": {"energy": FLAT, "compute": {"kind": "rate", "samples_per_s": 100.0, "spread_sigma": 0.0}},
        "rounds": {"count": 100, "policy": {"kind": "deadline", "deadline_s": 2.0}},
        "selector": {"kind": "uniform", "cohort": 1},
    }


def test_a_run_without_trouble_says_nothing(tmp_path):
    assert notes_of({}, tmp_path) == []


class Diverging(FedAvgM):
    """Makes the second model no number; its state counts the steps."""

    def step(self, model, update, state):
        after = {"velocity": state["velocity"] + 1}
        return (model * np.float32(np.nan) if state["velocity"][0] == 1 else model + update), after


def test_a_model_that_is_no_number_is_named(tmp_path):
    (note,) = notes_of(lies.learning(server=Diverging()), tmp_path)
    assert note.startswith("the model is no number any more: its loss is nan after round 2, at ")
    assert "2 of 4 evaluations are not finite. Clients whose updates round 2 used: " in note
    assert note.endswith("a too high learning.local.learning_rate, or very large values in the data")


class UntilFive(lies.HonestAvailability):
    """All clients for five seconds, and none after that."""

    def available(self, client, time_s, draw):
        return np.full(client.size, time_s < 5.0)

    def next_s(self, time_s, draw, client=None):
        return (time_s if time_s < 5.0 else np.inf), draw


def test_a_crash_with_no_client_after_it_is_named(tmp_path):
    """Rounds take at most 0.95 s or so; the server is down from second 3 to second 10."""
    tables = {
        "devices": {"availability": lies.building(lambda _: UntilFive(), may_leave=False)},
        "rounds": {"count": 100, "faults": {"server_restart": {"at_s": [3.0], "down_s": 7.0}}},
    }
    (note,) = notes_of(tables, tmp_path)
    assert "of 100, at 10 s: the server crashed at 3 s, and since then no client will ever be available again" in note


class LateLiar(lies.HonestSelector):
    """Lies in round 8."""

    def select(self, view, rng):
        return Cohort(view.client[:2], draws=np.array([1, 2**62 if view.round == 8 else 1]))


@pytest.mark.parametrize("checked", [True, False])
def test_rounds_before_a_lie_are_kept(checked, tmp_path, monkeypatch):
    """Seven rounds of two clients; also where the lie gets as far as the table, which cannot hold it."""
    if not checked:
        monkeypatch.setitem(validation._COHORT, "draws", lambda answer, _given: np.asarray(answer))
    scenario = Scenario(**lies.together(lies.BASE, {"rounds": {"count": 10}, "selector": LateLiar()}))
    with pytest.raises(FedsimError, match=str(2**62)):
        run_in_folder(scenario, tmp_path / "run", store=False)
    history = read_run(tmp_path / "run")
    assert (history.rounds.num_rows, history.participations.num_rows) == (7, 14)


def test_the_terminal_names_a_failing_part_in_five_lines(tmp_path, monkeypatch):
    """Round 2 fails in the second line of its method."""
    monkeypatch.setenv("FEDSIM_TRACEBACK", "0")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_failing_part.py").write_text(
        "class Failing:\n"
        "    def select(self, view, rng):\n"
        "        return view.client[: 4 // (2 - view.round)]\n"
        "    def observe(self, reports):\n"
        "        pass\n"
    )
    tables = lies.together(lies.BASE, {"selector": {"kind": "my_failing_part:Failing"}})
    file = tmp_path / "failing.toml"
    file.write_text(Scenario(**tables).to_toml())
    arguments = ["run", str(file), "--out", str(tmp_path / "out"), "--no-store", "--quiet"]
    ended = call(arguments)
    lines = ended.errors.splitlines()
    assert ended.code == 2
    assert lines[:4] == [
        "fedsim: Failing.select failed with ZeroDivisionError: integer division or modulo by zero",
        "  where: my_failing_part.py, line 3, in select",
        "  client: one of 4: 0, 1, 2, 3",
        "  round: 2",
    ]
    assert len(lines) == 5


BEFORE_A_RUN = """
from typing import ClassVar

from pydantic import model_validator

from fedsim import Component


class Selector:
    def select(self, view, rng):
        return view.client

    def observe(self, reports):
        pass


class MadeInVain(Selector):
    def __init__(self):
        self.price = {}["price"]


class NoSize(Selector):
    @property
    def cohort(self):
        return {}["price"]


class Network(Component):
    requires: ClassVar = frozenset()

    def build(self, run):
        return {}["price"]


class NoNeeds(Network):
    @property
    def requires(self):
        return {}["price"]


class Unsound(Network):
    @model_validator(mode="after")
    def sound(self):
        return {}["price"]


class NoLinks(Network):
    def build(self, run):
        return 3
"""


@pytest.mark.parametrize(
    ("slot", "kind", "what", "client", "second"),
    [
        ("selector", "MadeInVain", "parts_before_a_run:MadeInVain.__init__ failed with KeyError: 'price'", None, None),
        ("selector", "NoSize", "parts_before_a_run:NoSize.cohort failed with KeyError: 'price'", None, "0"),
        ("network", "NoNeeds", "parts_before_a_run:NoNeeds.requires failed with KeyError: 'price'", None, None),
        ("network", "Unsound", "parts_before_a_run:Unsound.sound failed with KeyError: 'price'", None, None),
        (
            "network",
            "Network",
            "network parts_before_a_run:Network.build failed with KeyError: 'price'",
            "one of 4: 0, 1, 2, 3",
            "0",
        ),
        ("network", "NoLinks", "network: NoLinks.build returned a int", None, "0"),
    ],
)
def test_what_fails_before_the_first_round_has_five_lines(slot, kind, what, client, second, tmp_path, monkeypatch):
    """`check` makes the parts; a run also builds with them, at second 0."""
    monkeypatch.setenv("FEDSIM_TRACEBACK", "0")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "parts_before_a_run.py").write_text(BEFORE_A_RUN)
    file = tmp_path / "case.toml"
    file.write_text(Scenario(**lies.BASE).to_toml())
    part = ["--set", f"{slot}={{kind='parts_before_a_run:{kind}'}}"]
    for line in (["check", str(file)], ["run", str(file), "--out", str(tmp_path / "out"), "--no-store", "--quiet"]):
        ended = call([*line, *part])
        assert ended.code == (0 if line[0] == "check" and second is not None else 2)
        if not ended.code:
            continue
        said = ended.errors.splitlines()
        assert said[0] == f"fedsim: {what}"
        assert said[1].split(":")[0].strip() in ("where", "allowed")
        assert said[2:] == [
            f"  client: {client or 'none is named in the call'}",
            "  round: before the first",
            f"  simulated second: {second or 'none, the clock has not begun'}",
        ]


def test_empty_batteries_end_a_run_as_history_log_summary_and_terminal_say(tmp_path, logged):
    """Four clients, one a round: after four rounds all are empty."""
    scenario = Scenario(**lies.together(lies.BASE, battery_world()))
    history = simulate(scenario, store=False)
    note, nothing = history.notes
    assert note.startswith("the run ended after round 4 of 100, at ")
    assert note.endswith("all 4 batteries are below 5 J, the least charge, for good")
    assert nothing.startswith("nothing was delivered: 0 of 4 participations; 0 late, 4 dropped; they spent up to ")
    assert logged == [f"fedsim: {note}" for note in history.notes]
    (tmp_path / "flat.toml").write_text(scenario.to_toml())
    told = call(["run", str(tmp_path / "flat.toml"), "--out", str(tmp_path / "run"), "--no-store", "--quiet"])
    assert told.code == 0
    assert f"fedsim: {note}" in " ".join(told.errors.split())
    assert read_summary(tmp_path / "run")["notes"] == history.notes == read_run(tmp_path / "run").notes
