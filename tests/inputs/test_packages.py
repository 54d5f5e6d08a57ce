"""Parts of installed packages: `tests/plugin_package` is installed, listed, named by scenarios, and broken."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import PartError, ScenarioError
from fedsim.inputs import plugins
from fedsim.inputs.plugins import registered, with_package, without_plugins
from fedsim.testing import check_network, check_selector
from tests.support.one_command import call
from tests.support.pages import ROOT

PLUGIN = ROOT / "tests" / "plugin_package"
TABLES = {
    "name": "slots",
    "crowd": {"clients": 12},
    "learning": "none",
    "network": {"kind": "satellite-slots", "slot_s": 0.2},
    "devices": {"compute": "zero"},
    "rounds": {"count": 4},
    "selector": {"kind": "longest-wait", "cohort": 3},
}


def lay_out(source, site, **changes):
    """Lay a package out as pip leaves it, the modules and a `.dist-info`, and return its name and version."""
    project = {**tomllib.loads((source / "pyproject.toml").read_text())["project"], **changes}
    for package in source.glob("*/__init__.py"):
        shutil.copytree(package.parent, site / package.parent.name, dirs_exist_ok=True)
    told = f"{project['name']} {project['version']}"
    folder = site / f"{told.replace('-', '_').replace(' ', '-')}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return told


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages that is on the path, and forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(plugins, "_PACKAGES", {})
    monkeypatch.setenv("COLUMNS", "1000")
    yield folder
    for name in [name for name in sys.modules if name.startswith("fedsim_slots")]:
        del sys.modules[name]


@pytest.fixture
def slots(site):
    return lay_out(PLUGIN, site)


def words_of(*arguments):
    ended = call(["list", *arguments])
    assert ended.code == 0, ended.errors
    return " ".join(ended.out.replace("│", " ").split())


def test_its_kinds_are_listed_with_the_package(slots):
    assert slots == "fedsim-slots 1.2"
    assert "satellite-slots" in words_of()
    told = (
        "satellite-slots A satellite that sends at the beginning of slots of fixed length: each message waits for one."
    )
    assert f"{told} (package fedsim-slots 1.2) slot_s, propagation_s" in words_of("networks")
    assert "longest ago, and of these the first by number. (package fedsim-slots 1.2)" in words_of("selectors")


def test_a_scenario_names_them(slots):
    scenario = Scenario(**TABLES)
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    history = simulate(scenario)
    # Three clients a round that have waited longest: all twelve in four rounds, in the order of their numbers.
    assert history.participations["client"].to_pylist() == list(range(12))
    # Propagation of 0.25 s and a wait of at most a slot of 0.2 s, each way.
    assert history.column("participations", "uplink_s").min() >= 0.25
    assert history.column("participations", "uplink_s").max() <= 0.45


def test_they_keep_their_contracts(slots):
    check_network("satellite-slots")
    import fedsim_slots

    # It does not learn from deliveries: a client that never delivers is asked as often as the others.
    check_selector(fedsim_slots.LongestWait(cohort=5), clients=12, rounds=6)


def test_without_plug_ins_they_are_refused(slots):
    with without_plugins(), pytest.raises(ScenarioError, match=r"installed package fedsim-slots 1\.2.*--no-plugins"):
        Scenario(**TABLES)


def test_an_entry_point_without_its_class_names_the_package(slots, site):
    (site / "fedsim_slots" / "__init__.py").write_text("Slots = None\n")
    with pytest.raises(ScenarioError) as refused:
        Scenario(**TABLES)
    fault = (
        "'fedsim_slots:LongestWait' of the installed package fedsim-slots 1.2 cannot be loaded: 'fedsim_slots' has no"
    )
    assert fault in str(refused.value)
    assert f"longest-wait {fault} 'LongestWait'" in words_of("selectors")


def test_a_package_that_fails_on_import_names_itself_and_hides_no_other_kind(slots, site):
    (site / "fedsim_slots" / "__init__.py").write_text("raise RuntimeError('no licence')\n")
    with pytest.raises(ScenarioError, match=r"fedsim-slots 1\.2 cannot be loaded: .* RuntimeError: no licence"):
        Scenario(**TABLES)
    said = words_of("networks")
    assert "fedsim-slots 1.2 cannot be loaded: 'fedsim_slots' fails when it is imported: RuntimeError" in said
    assert "not known" in said
    assert "pause-two-speed" in said


def test_a_part_that_fails_or_lies_in_a_run_names_the_package(slots, site):
    code = (PLUGIN / "fedsim_slots" / "__init__.py").read_text()
    home = site / "fedsim_slots" / "__init__.py"
    home.write_text(code.replace("        law = {", "        law = self.orbit\n        law = {"))
    with pytest.raises(PartError) as failed:
        simulate(Scenario(**TABLES))
    assert "network fedsim_slots:Slots (package fedsim-slots 1.2).build failed with AttributeError" in str(failed.value)
    del sys.modules["fedsim_slots"]
    home.write_text(code.replace("        return chosen", "        return chosen - 100"))
    with pytest.raises(PartError, match=r"LongestWait \(package fedsim-slots 1.2\).select returned"):
        simulate(Scenario(**TABLES))


def test_a_class_without_the_methods_names_the_package(slots, site):
    (site / "fedsim_slots" / "__init__.py").write_text("class Slots: ...\nclass LongestWait: ...\n")
    with pytest.raises(ScenarioError, match=r"\(package fedsim-slots 1.2\) is no selector: it has no method select"):
        Scenario(**TABLES)


def test_a_name_of_two_packages_is_refused_and_both_are_named(slots, site):
    other = {"fedsim.networks": {"satellite-slots": "fedsim_slots:LongestWait"}}
    lay_out(PLUGIN, site, name="other-slots", version="0.3", **{"entry-points": other})
    refused = (
        "'satellite-slots' is registered by .*-slots .* and by .*-slots .*; allowed: 'fedsim_slots:.*' or 'fedsim_sl"
    )
    with pytest.raises(ScenarioError, match=refused) as error:
        Scenario(**TABLES)
    assert "fedsim-slots 1.2" in str(error.value)
    assert "other-slots 0.3" in str(error.value)
    same = {"fedsim.selectors": {"longest-wait": "fedsim_slots:LongestWait"}}
    lay_out(PLUGIN, site, name="same-slots", version="0.3", **{"entry-points": same})
    assert len(registered("fedsim.selectors")["longest-wait"].places) == 1, "one class under one name is one kind"


def test_a_name_of_fedsims_own_stays_its_own_and_is_listed_as_hidden(site):
    point = {"fedsim.networks": {"cell": "fedsim_slots:Slots"}, "fedsim.selectors": {"pause": "fedsim_slots:Slots"}}
    lay_out(PLUGIN, site, **{"entry-points": point})
    own = Scenario(**{**TABLES, "network": "pause-two-speed", "selector": {"kind": "pause", "cohort": 3}})
    assert type(own.selector.build()).__module__.startswith("fedsim.")
    for sort in ("networks", "selectors"):
        assert "not used: fedsim-slots 1.2 registers this name too, and fedsim's own kind has it" in words_of(sort)


def test_a_class_of_no_package_has_no_package_in_its_name():
    assert with_package("a:B", "a") == "a:B"
    assert plugins.Registered(("a:B",), ("one 1.0",)).in_words() == "one 1.0"


@pytest.mark.slow
def test_pip_installs_it_with_the_same_entry_points(tmp_path):
    """The layout of the other tests is that of pip, which builds a wheel without a network."""
    pytest.importorskip("hatchling", reason="needs hatchling, which builds the package")
    target = tmp_path / "site"
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(target)]
    command = [sys.executable, "-m", "pip", "install", *options, str(PLUGIN)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - pip of this environment
    (laid := tmp_path / "laid").mkdir()
    lay_out(PLUGIN, laid)
    found = [
        {(point.group, point.name, point.value) for dist in distributions(folder) for point in dist.entry_points}
        for folder in (target, laid)
    ]
    assert found[0] == found[1] != set()
    listing = [sys.executable, "-m", "fedsim", "list", "networks"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(listing, check=True, capture_output=True, text=True, env=environment)  # noqa: S603 - own command
    assert "satellite-slots" in done.stdout


def distributions(folder):
    return list(importlib.metadata.distributions(path=[str(folder)]))
