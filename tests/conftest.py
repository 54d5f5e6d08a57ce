"""Fixtures that every room may use."""

import gc
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What hypothesis reads of fedsim takes seconds: a new clone finds it, and failing examples, where others left it.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{tempfile.gettempdir()}/fedsim-hypothesis-{os.getuid()}")
# No test and no frozen table depends on what a calibration finds on this machine.
os.environ.setdefault("FEDSIM_EXECUTOR", "sequential")
# Two test processes on two cores: a second thread of each would wait in a loop for work on small arrays.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No run of a test has a thread beside it that looks whether it stands still.
os.environ.setdefault("FEDSIM_WATCHDOG_S", "0")
# No test writes into the store of the user who runs it.
os.environ["FEDSIM_STORE"] = "none"

# pytest's handlers are left out (``-p no:logging``): each test would hang them up at all loggers of all libraries.
logging.getLogger().addHandler(logging.NullHandler())

_PREPARE = Path(__file__).parents[2] / "shared" / "data" / "prepare.py"
_HERE = Path(__file__).parent
# Rooms by themselves, and what is about the house: the quick tier, but for what compares samples or reads data sets.
_QUICK = {
    *("devices", "history", "learning", "network", "privacy", "rounds", "scenario", "selectors"),
    *("test_layout.py", "test_streams.py", "test_traces.py", "test_units.py", "test_words.py"),
}
_DRAWS = ("draw", "draw_clients", "draw_durations")
_LONG = {"data", "slow", "statistical"}
_LONG_FILES = {
    *("test_algorithm.py", "test_beliefs.py", "test_budget_and_accountant.py", "test_clustered.py"),
    *("test_enumeration.py", "test_fault_laws.py", "test_flash.py", "test_laws.py", "test_oort.py", "test_sampling.py"),
    *("test_scenario.py", "test_shadowing.py"),
}


def pytest_configure(config: pytest.Config) -> None:
    """Let no test fail for the time of an example, of which there are thirty in a run of all tiers, new in each run."""
    most = {"not slow": 12, "quick": 12}.get(config.option.markexpr, 30)
    settings.register_profile("untimed", deadline=None, max_examples=most, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage among what is made while tests are collected: half a million objects, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what belongs to the quick tier; what is slow is marked where it stands."""
    for item in items:
        long = item.path.name in _LONG_FILES or _LONG & {marker.name for marker in item.iter_markers()}
        if item.path.relative_to(_HERE).parts[0] in _QUICK and not long:
            item.add_marker(pytest.mark.quick)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with the marker `cases` the numbers of its first cases, and the others in the slow tier."""
    if marker := metafunc.definition.get_closest_marker("cases"):
        few, many = marker.args
        parts = [range(few), pytest.param(range(few, many), marks=pytest.mark.slow)]
        metafunc.parametrize("cases", parts, ids=["few", "many"])


@pytest.fixture(scope="session", autouse=True)
def _check_tables() -> Generator[None]:
    """Let the tables of each run of this process pass the laws of `tests/support/table_audit.py` when it ends."""
    from fedsim.rounds.server.server import Server
    from tests.support.table_audit import Promised, check_tables

    end = Server.end

    def end_checked(server: Server, process: object) -> None:
        end(server, process)
        check_tables(server.recorder.history().tables(), Promised.of(server))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "end", end_checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def _draw_nothing() -> Generator[None]:
    """Draw nothing at the end of runs, which takes longer than most of them; `figures` is for tests that look at it."""
    from fedsim.results import recording

    with pytest.MonkeyPatch.context() as patch:
        for name in _DRAWS:
            patch.setattr(recording, name, lambda *_, **__: None)
        yield


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedsim import history
    from fedsim.results import recording

    for name in _DRAWS:
        monkeypatch.setattr(recording, name, getattr(history, name))


@pytest.fixture
def logged() -> Generator[list[str]]:
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("fedsim").addHandler(handler)
    yield messages
    logging.getLogger("fedsim").removeHandler(handler)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return a folder with MNIST, Fashion-MNIST and CIFAR-10; tests that use it carry the marker ``data``.

    It is FEDSIM_DATA if that is set. Otherwise the packed sets beside the checkout are laid out once under the
    system's temporary folder, where later sessions find them again.
    """
    if given := os.environ.get("FEDSIM_DATA"):
        return Path(given)
    if not _PREPARE.is_file():
        pytest.skip("no data sets: FEDSIM_DATA is not set and ../shared/data is not there")
    place = Path(tempfile.gettempdir()) / f"fedsim-test-data-{os.getuid()}"
    if not place.is_dir():
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f"{place.name}-") as scratch:
            laid_out = Path(scratch) / "data"
            subprocess.run([sys.executable, str(_PREPARE), str(laid_out)], check=True)  # noqa: S603 - own script
            try:
                laid_out.rename(place)
            except OSError:
                if not place.is_dir():  # unless another worker was faster
                    raise
    return place


@pytest.fixture(scope="session")
def small_sets() -> Path:
    """Return the folder with Omniglot, spoken digits and Tiny Shakespeare; tests that use it carry the marker ``data``.

    It is FEDSIM_SMALL_SETS if that is set, else the one beside the checkout.
    """
    place = Path(os.environ.get("FEDSIM_SMALL_SETS", _PREPARE.parent))
    if not (place / "omniglot").is_dir():
        pytest.skip("no small data sets: FEDSIM_SMALL_SETS is not set and ../shared/data is not there")
    return place


@pytest.fixture(scope="session")
def frozen_inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.golden import freeze

    folder = tmp_path_factory.mktemp("inputs")
    freeze.write_inputs(folder)
    return folder


@pytest.fixture
def beside_scenarios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working directory from which the scenarios are found.

    Python blocks of a page import the modules that the page writes, as a script in that directory would.
    """
    (tmp_path / "scenarios").symlink_to(Path(__file__).parents[1] / "scenarios")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path
