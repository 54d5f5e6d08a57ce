"""Command lines, files and settings that are wrong: each ends in a paragraph on standard error and exit code 2."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from fedsim import Scenario
from tests.support.one_command import call

SCENARIO = """
name = "tiny"
crowd = { clients = 6 }
learning = { kind = "none", model_bits = 1e6 }
network = "pause-two-speed"
devices = { compute = "zero" }
rounds = { count = 2, policy = { kind = "deadline", deadline_s = 5.0 } }
selector = { kind = "uniform", cohort = 2 }
"""
LONG = "a" * 300


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "tiny.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.delenv("FEDSIM_TRACEBACK", raising=False)
    return tmp_path


def is_refused(line, *words):
    ended = call(line)
    assert ended.code == 2, ended.errors
    told = " ".join(ended.errors.replace("│", " ").split())
    assert not [word for word in words if word not in told], told
    assert "Traceback" not in ended.errors
    return ended.errors


def graph(cells=2, **more):
    link = "{capacity_bps = 1e6, delay_s = 0.0}"
    return {
        "network.kind": "graph",
        "network.access": "{downlink_bps = 1e6, uplink_bps = 1e6, delay_s = 0.0}",
        "network.topology": f"{{kind = 'two-tier', cells = {cells}, site_distance_m = 50.0, fronthaul = {link}, "
        f"backhaul = {link}}}",
        **{f"network.{name}": value for name, value in more.items()},
    }


SETTINGS = {
    "a radius of 1e300 m": (
        {"crowd.placement": "{kind = 'disc', radius_m = 1e300}"},
        "crowd.placement.radius_m: 1e+300 is not allowed; allowed: absolute values from 1e-06 to 1e+09",
    ),
    "a time to trigger of 1e12 s": (
        graph(handover="{time_to_trigger_s = 1e12}"),
        "network.handover.time_to_trigger_s: 1000000000000.0 is not allowed; allowed: absolute values from 0.001 to 60",
    ),
    "sojourns of a nanosecond": (
        {"devices.availability": "{kind = 'markov', mean_on_s = 1e-9, mean_off_s = 1e-9}"},
        "devices.availability.mean_on_s: 1e-09 is not allowed; input should be greater than or equal to 0.001",
    ),
    "bursts of a nanosecond": (
        graph(trouble="[{kind = 'outage-bursts', mean_good_s = 1e-9, mean_bad_s = 1e-9}]"),
        "network.trouble.0.mean_good_s: 1e-09 is not allowed; allowed: absolute values from 0.001 to 1e+10",
    ),
    "a column that no table has": (
        {"learning.samples_per_client": "{column = 'n', path = 'missing.csv'}"},
        "missing.csv: cannot be read: No such file",
    ),
    "10^9 cells": (graph(10**9), "cells: 1000000000 is not allowed"),
    "10^4 cells and 10^8 clients": (
        {**graph(10**4), "crowd.clients": "10000000000"},
        "crowd.clients: 10000000000 is not allowed",
    ),
    "2^31 clients": ({"crowd.clients": "2147483648"}, "less than or equal to 100000000"),
    "a seed of 64 bits": ({"seed": "9223372036854775808"}, "a whole number of 64 bits"),
    "smoothing 1e12": ({"results.smoothing": "1000000000000"}, "results.smoothing: 1000000000000 is not allowed"),
    "a name of 300 letters": ({"name": LONG}, "name: "),
    "a path of 300 letters": ({"crowd.placement": f"{{kind = 'file', path = '{LONG}'}}"}, "300 bytes is too long"),
    "a null character": ({"crowd.placement": '{kind = "file", path = "a\\u0000b"}'}, "no null character"),
    "/dev/zero": ({"crowd.placement": "{kind = 'file', path = '/dev/zero'}"}, "a pipe or a device"),
    "a folder": ({"crowd.placement": "{kind = 'file', path = '.'}"}, "it is a folder"),
    "a trace of /dev/zero": ({"devices.availability": "{kind = 'traces', path = '/dev/zero.npz'}"}, "cannot be read"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_wrong_settings(case):
    values, words = SETTINGS[case]
    sets = [part for path, value in values.items() for part in ("--set", f"{path}={value}")]
    is_refused(["run", "tiny.toml", *sets, "--quiet"], words)


GOOD = """
name = "small"
[crowd]
clients = 10
[learning]
data = { kind = "digits" }
model = { kind = "mlp", hidden = [8] }
local = { optimizer = "sgd", learning_rate = 0.1, batch_size = 10 }
[network]
kind = "cell"
uplink = { bandwidth_hz = 1e5, transmit_power_dbm = 23.0, noise_figure_db = 5.0 }
[rounds]
count = 2
policy = { kind = "deadline", deadline_s = 5.0 }
[selector]
kind = "uniform"
cohort = 3
"""

# what is wrong: (what to replace, by what, what the message must name)
WRONG = {
    "unknown key": ("clients = 10", "clients = 10\ncolour = 3", ["crowd.colour", "there is no such option"]),
    "misspelt key": ("count = 2", "cuont = 2", ["rounds.cuont", "did you mean 'count'", "allowed: count, policy"]),
    "unknown table": ("[crowd]", "[crowds]", ["crowds", "did you mean 'crowd'"]),
    "negative bandwidth": ("1e5", "-1e5", ["network.uplink.bandwidth_hz", "-100000.0", "greater than 0"]),
    "cohort larger than the crowd": ("cohort = 3", "cohort = 11", ["selector.cohort", "11", "crowd.clients = 10"]),
    "cohort of nobody": ("cohort = 3", "cohort = 0", ["selector", "cohort", "0"]),
    "no cohort": ("cohort = 3", "", ["selector.cohort", "is missing"]),
    "broken TOML": ("[rounds]", "[rounds", ["is not valid TOML", "line"]),
    "NaN": ("deadline_s = 5.0", "deadline_s = nan", ["rounds.policy.deadline_s", "nan", "finite"]),
    "infinite": ("_dbm = 23.0", "_dbm = inf", ["network.uplink.transmit_power_dbm", "inf", "finite"]),
    "text for a number": ("count = 2", 'count = "2"', ["rounds.count", "'2'", "integer"]),
    "number for a text": ('name = "small"', "name = 7", ["name", "7", "string"]),
    "fraction for a count": ("clients = 10", "clients = 10.5", ["crowd.clients", "10.5", "integer"]),
    "yes for a count": ("clients = 10", "clients = true", ["crowd.clients", "True"]),
    "empty crowd": ("clients = 10", "clients = 0", ["crowd.clients", "0", "greater than or equal to 1"]),
    "zero deadline": ("deadline_s = 5.0", "deadline_s = 0.0", ["rounds.policy.deadline_s", "greater than 0"]),
    "unknown selector": ('"uniform"', '"unifrom"', ["selector", "did you mean 'uniform'", "pause"]),
    "unknown network": ('"cell"', '"sell"', ["network", "did you mean 'cell'"]),
    "no kind": ('kind = "uniform"', "", ["selector", "needs a kind"]),
    "missing table": ('[network]\nkind = "cell"\nuplink', "uplink", ["network: is missing"]),
    "module that is not there": ('"uniform"', '"no.such.module:Selector"', ["selector", "cannot be loaded"]),
    "class that is no selector": ('"uniform"', '"collections:OrderedDict"', ["selector", "no method select"]),
    "option of another kind": ('kind = "uniform"', 'kind = "uniform"\nalpha = 2.0', ["selector.alpha", "cohort"]),
    "name with a slash": ('"small"', '"a/b"', ["name", "a/b"]),
    "negative seed": ('name = "small"', 'name = "small"\nseed = -1', ["seed", "-1"]),
    "drop out and wait for all": (
        'policy = { kind = "deadline", deadline_s = 5.0 }',
        'policy = "wait-for-all"\n[devices]\ndropout = { kind = "hazard", rate_per_s = 0.1 }',
        ["rounds.policy", "devices.dropout"],
    ),
    "timing only without the size of a model": (
        GOOD[GOOD.index("[learning]") : GOOD.index("[network]")],
        '[learning]\nkind = "none"\n',
        ["learning.model_bits", "learn"],
    ),
    "late clients kept by a word that is none": ("count = 2", 'count = 2\nlate = "keep"', ["rounds.late", "keep"]),
    "two wrong values at once": (
        'count = 2\npolicy = { kind = "deadline", deadline_s = 5.0 }',
        'count = -2\npolicy = { kind = "deadline", deadline_s = -5.0 }',
        ["rounds.count", "rounds.policy.deadline_s"],
    ),
}


def test_the_good_scenario_is_good():
    assert Scenario.from_toml(GOOD).crowd.clients == 10


@pytest.mark.parametrize("what", WRONG)
def test_wrong_files(what, folder):
    old, new, said = WRONG[what]
    assert old in GOOD
    (folder / "wrong.toml").write_text(GOOD.replace(old, new))
    told = is_refused(["run", "wrong.toml", "--out", "out"], *said)
    assert told.startswith("fedsim: wrong.toml: ")
    assert not (folder / "out").exists()
    assert len(told.splitlines()) <= 4, "a paragraph, not a page"


COMMANDS = {
    "a device for a scenario": (["check", "/dev/zero"], "a pipe or a device"),
    "a name of 300 letters": (["check", LONG], "300 bytes is too long"),
    "a folder of 300 letters": (["run", "tiny.toml", "--out", LONG], "300 bytes is too long"),
    "data of 300 letters": (["data", "--data-dir", LONG], "300 bytes is too long"),
    "a home of no user": (["data", "--data-dir", "~no-such-user-here/x"], "HOME is not set"),
    "a path of 5,000 letters": (["report", "a/" * 2500], "at most 4095"),
    "smoothing 1e12": (["plot", "x", "--smoothing", "1000000000000"], "1000000000000"),
    "a report of nothing": (["report", "[bold]x"], "[bold]x: holds no run"),
    "a run that is none": (["report", "."], "holds no run"),
    "no value": (["run", "tiny.toml", "--set", "[/bold]"], "--set [/bold]: is not of the form"),
    "an option that is none": (["run", "tiny.toml", "--[/bold]x"], "No such option"),
    "a command that is none": (["[/bold]x"], "No such command"),
    "a file that is not there": (["run", "missing.toml"], "missing.toml: cannot be read"),
    "a folder for a scenario": (["check", "."], "cannot be read"),
    "another encoding": (["check", "latin.toml"], "not UTF-8"),
    "an option of a number": (
        ["check", "tiny.toml", "--set", "rounds.count.deep=3"],
        "rounds.count is 2, which is no table",
    ),
    "a list that is none": (["list", "selectrs"], "did you mean 'selectors'"),
    "data that are none": (["data", "mnits"], "there is no data set 'mnits'"),
    "a file for a folder": (["run", "tiny.toml", "--out", "tiny.toml"], "is a file"),
    "data that are not at hand": (
        ["run", "tiny.toml", "--set", "learning={data='mnist'}", "--data-dir", "empty"],
        "fedsim data mnist --download",
    ),
    "a figure of nothing": (["plot", "no-such-run"], "holds no run"),
    "a figure of no format": (["sweep", "tiny.toml", "--out", "runs", "--plot", "x.doc"], "a name that ends in ."),
    "no argument": (["run"], "Missing argument"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_wrong_command_lines(case, folder):
    (folder / "latin.toml").write_bytes('name = "café"'.encode("latin-1"))
    (folder / "empty").mkdir()
    is_refused(*COMMANDS[case])
    assert not (folder / "runs").exists(), "nothing is written before everything is checked"


def test_traces_beyond_the_clock_are_refused(folder):
    np.savez(folder / "late.npz", offset=[0, 1], start_s=[1e17], end_s=[1e17 + 64], period_s=[1e18])
    value = "devices.availability={kind = 'traces', path = 'late.npz'}"
    is_refused(["run", "tiny.toml", "--set", value], "start_s, row 1: 1e+17 is not allowed")


@pytest.mark.usefixtures("figures")
def test_markup_is_text():
    for name in ("[bold]x", "[/bold]y"):
        ran = call(["run", "tiny.toml", "--out", name])
        assert (ran.code, ran.errors) == (0, "")
        assert f"{name}/round_durations.png" in ran.out
    told = call(["data", "--data-dir", "[/bold]z"])
    assert told.code == 0
    assert "data sets in [/bold]z" in told.out
    plot = ["plot", "[bold]x", "--y", "duration", "--out"]
    for out in ("", ".", "x", "x.[bold]", "folder/"):
        is_refused([*plot, out], "a figure needs a name that ends in .")
    is_refused([*plot, LONG + ".png"], "304 bytes is too long")


PLUGIN = """
import pathlib
pathlib.Path("effect").write_text("imported")
class Own:
    def select(self, view, rng):
        return view.client[:2]
    def observe(self, reports):
        pass
"""


def test_check_says_what_it_imports_and_can_be_kept_from_it(folder, monkeypatch):
    """A module is found in the current folder; that it is beside the file too is tested with run folders."""
    (folder / "own_and_only.py").write_text(PLUGIN)
    (folder / "elsewhere").mkdir()
    own = [str((folder / "tiny.toml").rename(folder / "elsewhere" / "tiny.toml"))]
    own += ["--set", "selector=own_and_only:Own"]
    for command in ("check", "run"):
        is_refused([command, *own, "--no-plugins"], "--no-plugins is given")
    assert not (folder / "effect").exists()
    checked = call(["check", *own])
    assert checked.code == 0
    assert "valid, digest" in checked.out
    assert f"its module 'own_and_only' ({folder / 'own_and_only.py'}) was imported" in checked.errors
    assert (folder / "effect").read_text() == "imported"
    monkeypatch.delitem(sys.modules, "own_and_only")
    checked = call(["check", "elsewhere/tiny.toml", "--no-plugins"])
    assert (checked.code, checked.errors) == (0, "")
    told = call(["check", "--help"]).out
    assert "plug-in" in told
    assert "--no-plugins" in told


def start(arguments, folder, **more):
    environment = {name: value for name, value in os.environ.items() if name not in more.get("without", ())}
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "fedsim", *arguments],
        cwd=folder,
        env={**environment, **more.get("env", {})},
        stdout=more.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        check=False,
    )


PLAIN = {"env": {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, "without": ["HOME"]}
FULL = b"fedsim: the output cannot be written: No space left on device; allowed: a place with room for it\n"


@pytest.mark.slow
def test_terminals_and_runs_without_utf8_home_and_room(folder):
    for line in (["list", "staleness-laws"], ["run", "tiny.toml"]):
        plain = start(line, folder, **PLAIN)
        assert (plain.returncode, plain.stderr) == (0, b"")
        assert plain.stdout.isascii()
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        for line in (["list", "staleness-laws"], ["report", "runs/tiny"], ["run", "tiny.toml", "--force"]):
            done = start(line, folder, stdout=full)
            assert (done.returncode, done.stderr) == (2, FULL), line
