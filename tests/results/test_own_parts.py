"""A finished run is that of what its own parts read: another content is another run."""

import re
import shutil
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

from fedsim import Scenario, read_run, run, simulate
from fedsim.answers.opened_files import NOT_TOLD, with_untold
from fedsim.errors import RunError

PARTS = """
import functools, glob, os, shutil, socket, sqlite3, subprocess
import numpy as np
from fedsim.selectors import Selector

def rows(csv: str = "d.csv"):
    found = np.loadtxt(csv, delimiter=",")
    return found[:, :5], found[:, 5].astype(int)

def whole():
    return rows("d.csv")

def of_a_folder():
    parts = [rows(path) for path in sorted(glob.glob("shards/*.csv"))]
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])

def by_environment():
    x, y = rows("d.csv")
    return x * float(os.environ.get("FEDSIM_TEST_SCALE", "1")), y

def with_a_cache():
    np.save("cache.npy", np.loadtxt("d.csv", delimiter=","))
    found = np.load("cache.npy")
    return found[:, :5], found[:, 5].astype(int)

class ByEnvironment(Selector):
    def select(self, view, rng):
        shutil.which("no-such-program")  # the library reads PATH
        if "FEDSIM_TEST_LAST" in os.environ:
            return view.client[-int(os.environ["FEDSIM_TEST_LAST"]):]
        os.environ["FEDSIM_TEST_SET"] = os.getenv("FEDSIM_TEST_SET", "") + "again"
        return view.client[:1]

LAST = int(os.environ.get("FEDSIM_TEST_AT_IMPORT", "1"))
SEEN = []

class ByVariables(Selector):
    FIRST = {"places": 0}
    def select(self, view, rng):
        SEEN.append(view.round)
        return view.client[self.FIRST["places"]:LAST + 1]

FEW = functools.partial(np.resize, new_shape=LAST)

class ByPartial(Selector):
    def select(self, view, rng):
        return FEW(view.client)

def cut(count):
    return lambda select: lambda self, view, rng: select(self, view, rng)[:count]

class ByDecorator(Selector):
    @cut(LAST)
    def select(self, view, rng):
        return view.client

class Listed(Selector):
    def select(self, view, rng):
        return np.loadtxt("c.csv", dtype=int, ndmin=1)

class Counting(Selector):
    def select(self, view, rng):
        return view.client[:len(glob.glob("*.csv"))]

class Stored(Selector):
    def select(self, view, rng):
        return np.array(sqlite3.connect("c.db").execute("select client from c").fetchone())

class ByNetwork(Selector):
    def select(self, view, rng):
        socket.getaddrinfo("127.0.0.1", 9)
        return view.client[:1]

class ByProcess(Selector):
    def select(self, view, rng):
        subprocess.run(["true"])
        return view.client[:1]
"""


@pytest.fixture(autouse=True)
def _parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("parts_of_a_run.py").write_text(PARTS)
    put(0)
    yield
    sys.modules.pop("parts_of_a_run", None)


def put(seed):
    rng = np.random.default_rng(seed)
    np.savetxt("d.csv", np.c_[rng.normal(size=(60, 5)), rng.integers(0, 3, 60)], delimiter=",")


def scenario(kind="rows", csv=None, **tables):
    local = {"learning_rate": 0.1, "epochs": 1, "batch_size": 8}
    learning = {
        "data": {"kind": f"parts_of_a_run:{kind}", **({"csv": csv} if csv else {})},
        "model": "logistic-regression",
        "local": local,
    }
    plain = {"name": "t", "crowd": {"clients": 4}, "network": "pause-two-speed"}
    return Scenario(**plain, **{"selector": "all", "rounds": {"count": 1}, **tables}, learning=learning)


def losses(history):
    return history.evaluations.column("loss").to_pylist()


@pytest.mark.parametrize("data", [{"kind": "rows"}, {"kind": "rows", "csv": "d.csv"}, {"kind": "whole"}])
def test_a_file_that_an_own_function_reads_has_changed(data):
    first = losses(run(scenario(**data), out="out", store=False))
    assert losses(run(scenario(**data), out="out", store=False)) == first
    put(1)
    with pytest.raises(RunError, match=r"run of another scenario .*\.csv.* has changed"):
        run(scenario(**data), out="out", store=False)
    right = losses(simulate(scenario(**data), store=False))
    assert losses(run(scenario(**data), out="out", store=False, replace=True)) == right != first


def put_clients(*clients):
    Path("c.csv").write_text("".join(f"{client}\n" for client in clients))
    with sqlite3.connect("c.db") as database:
        database.execute("create table if not exists c (client integer)")
        database.execute("delete from c")
        database.executemany("insert into c values (?)", [(client,) for client in clients])


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"kind": "by_environment"}, "environment variable FEDSIM_TEST_SCALE"),
        ({"selector": {"kind": "parts_of_a_run:Listed"}}, r"c\.csv"),
        ({"selector": "parts_of_a_run:Stored"}, r"c\.db"),
        ({"selector": "parts_of_a_run:Counting"}, r"names of \*\.csv in \."),
        ({"kind": "of_a_folder"}, r"names of \*\.csv in shards"),
    ],
)
def test_what_an_own_part_asks_for_has_changed(tables, said, monkeypatch):
    """A finished run names own selectors, which are known by their code alone."""
    put_clients(0, 1)
    Path("shards").mkdir()
    shutil.copy("d.csv", "shards/0.csv")
    lines = []
    for _ in range(2):
        run(scenario(**tables), out="out", store=False, tell=lines.append)
    assert ("selector: known by code, files, environment and module variables" in lines[-1]) == ("selector" in tables)
    put_clients(2, 3)
    monkeypatch.setenv("FEDSIM_TEST_SCALE", "3")
    for copy in ("shards/1.csv", "shards/notes.txt", "e.csv"):
        shutil.copy("d.csv", copy)
    with pytest.raises(RunError, match=rf"another scenario .*{said} has changed"):
        run(scenario(**tables), out="out", store=False)


def test_an_environment_variable_of_a_selector_has_changed(monkeypatch):
    monkeypatch.setenv("FEDSIM_TEST_SET", "once")
    monkeypatch.delenv("FEDSIM_TEST_LAST", raising=False)
    by_environment = scenario(selector="parts_of_a_run:ByEnvironment")
    run(by_environment, out="out", store=False)
    monkeypatch.setenv("FEDSIM_TEST_SET", "once")
    run(by_environment, out="out", store=False)
    monkeypatch.setenv("FEDSIM_TEST_LAST", "2")
    with pytest.raises(RunError, match=r"another scenario .*environment variable FEDSIM_TEST_LAST has changed"):
        run(by_environment, out="out", store=False)
    run(by_environment, out="out", store=False, replace=True)
    told = Path("out/run.json").read_text()
    assert "FEDSIM_TEST_SET" not in told
    assert "variable PATH" not in told
    run(by_environment, out="out", store=False)


def test_an_environment_variable_that_a_selector_sets_is_no_input_after_that(monkeypatch):
    monkeypatch.setenv("FEDSIM_TEST_SET", "once")
    for _ in range(2):
        run(scenario(selector="parts_of_a_run:ByEnvironment", rounds={"count": 2}), out="out", store=False)
        assert "environment variable FEDSIM_TEST_SET" in Path("out/run.json").read_text()
        monkeypatch.setenv("FEDSIM_TEST_SET", "once")


def test_files_of_callbacks_and_files_that_a_run_writes_are_no_inputs():
    def told(progress):
        Path("log.txt").write_text(Path("log.txt").read_text() + str(progress.round))

    Path("log.txt").write_text("")
    run(scenario("with_a_cache"), out="out", store=False, on_round=told)
    assert Path("log.txt").read_text() == "1"
    Path("cache.npy").unlink()
    run(scenario("with_a_cache"), out="out", store=False, on_round=told)


def test_a_variable_of_a_selectors_module_has_changed(monkeypatch):
    by_variables = scenario(selector="parts_of_a_run:ByVariables")
    for _ in range(2):  # what a run itself changes, as SEEN, is a part's own state
        run(by_variables, out="out", store=False)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("parts_of_a_run.LAST", 2)
        with pytest.raises(RunError, match=r"another scenario .*module variable parts_of_a_run:LAST has changed"):
            run(by_variables, out="out", store=False)
    monkeypatch.setitem(sys.modules["parts_of_a_run"].ByVariables.FIRST, "places", 1)
    with pytest.raises(RunError, match=r"another scenario .*parts_of_a_run:ByVariables.FIRST has changed"):
        run(by_variables, out="out", store=False)


@pytest.mark.parametrize(
    ("kind", "name"), [("ByVariables", "LAST"), ("ByPartial", "FEW"), ("ByDecorator", r"ByDecorator\.select")]
)
def test_a_variable_that_a_module_takes_from_the_environment_has_changed(kind, name, monkeypatch):
    for _ in range(2):
        run(scenario(selector=f"parts_of_a_run:{kind}"), out="out", store=False)
    monkeypatch.setenv("FEDSIM_TEST_AT_IMPORT", "3")
    del sys.modules["parts_of_a_run"]
    with pytest.raises(RunError, match=rf"module variable parts_of_a_run:{name} has changed"):
        run(scenario(selector=f"parts_of_a_run:{kind}"), out="out", store=False)


@pytest.mark.parametrize("kind", ["ByNetwork", "ByProcess"])
def test_a_run_of_a_part_that_asks_others_than_files_stands_for_itself(kind):
    asking = scenario(selector=f"parts_of_a_run:{kind}")
    first = run(asking, out="out", store=False)
    said = "learning.data or selector has asked for more than files .*; what its results depend on cannot be told"
    assert re.search(said, first.notes[-1])
    assert read_run("out").notes == first.notes
    with pytest.raises(RunError, match=rf"^out: holds a run of this scenario, but {said}.*--force"):
        run(asking, out="out", store=False)
    assert run(asking, out="out", store=False, replace=True).notes == first.notes


def test_a_run_says_once_that_its_parts_cannot_be_told():
    of_learning, of_all = (f"{who} has asked for more than files (a.b); {NOT_TOLD}" for who in ("learning", "selector"))
    assert with_untold(("a",), "") == ("a",)
    assert with_untold(("a",), of_all) == ("a", of_all)
    assert with_untold(("a", of_learning), of_all) == ("a", of_learning)
