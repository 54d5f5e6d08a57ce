"""Every scenario and study that is shipped runs, at tiny size."""

import importlib
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from fedsim import Scenario, Study, simulate, sweep
from fedsim.studies.study import Variant
from tests.support.families import by_default
from tests.support.study_commands import SCENARIOS, printed

TABLES = {path: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(SCENARIOS.rglob("*.toml"))}
FILES = [path for path, tables in TABLES.items() if "crowd" in tables]
STUDY_FILES = [path for path, tables in TABLES.items() if "study" in tables]
STUDIES = {
    "cell_edge.py": "--rounds 3",
    "compare_selectors.py": "--seconds 4 --seeds 1 --method uniform --method pow-d",
    "half_deliver.py": "--clients 30 --cohort 3 --rounds 3 --seeds 1",
    "messages.py": "--rounds 3 --seeds 1",
    "straggler_whatif.py": "--seconds 4 --seeds 1",
    "validate_laws.py": "--quick",
    "pairing.py": "--seeds 2",
    "widths.py": "--rounds 3 --seeds 1",
}
WITH_PICTURES = {"compare_selectors.py", "messages.py", "widths.py"}


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    """Scenarios name files by their paths from here, and parts of their own by modules that lie beside them."""
    monkeypatch.chdir(SCENARIOS.parent)
    monkeypatch.syspath_prepend(SCENARIOS / "fedsuv")


LAWS = """
UMa; UMi; RMa; InH; InF-SL; InF-DL; InF-SH; InF-DH; LOS share; sigma in dB; correlation over; correlation between sites
Rayleigh: Kolmogorov-Smirnov; Rician K; Nakagami; ergodic capacity; outage; CQI (64qam); 10^4 Rayleigh blocks
M/M/1 processor sharing; M/G/1 hyperexponential processor sharing; M/D/1 first come; Pollaczek-Khinchine; Little, M/M/1
upload of 50 blocks in an equal share of 8; multicast to 10; largest of 100; on/off Markov; diurnal, share online
FLASH session in s, 50%; FLASH gap in s, 90%; FLASH sessions per day, mean; FLASH share online at 4 h
largest hour over smallest
"""
BASELINES = [
    {},
    {"selector.kind": "uniform"},
    {"selector.kind": "fastest"},
    {"selector.kind": "all", "privacy": "none"},
]


def test_all_studies_are_listed_here():
    assert {path.name for path in SCENARIOS.glob("*.py")} == STUDIES.keys() | {"study_scripts.py"}


@pytest.mark.parametrize("file", STUDY_FILES, ids=lambda path: path.stem)
def test_study_is_valid_and_says_what_it_shows(file):
    assert file.read_text().startswith("# ")
    study = Study.load(file)
    assert Study.from_toml(study.to_toml()).digest() == study.digest()


ALONE = [file for file in STUDY_FILES if file.parent == SCENARIOS and not file.with_suffix(".py").exists()]


@pytest.mark.slow
@pytest.mark.parametrize("file", ALONE, ids=lambda path: path.stem)
def test_study_without_a_script_runs(file, tmp_path):
    whole = Study.load(file)
    ends = whole.variants[0], whole.variants[-1]
    arms = tuple(Variant(one.name, {**one.values, "rounds.count": 3}) for one in ends)
    study = replace(whole, variants=arms, baseline=arms[0].name, seeds=whole.seeds[:1], horizon={})
    result = sweep(study, out=tmp_path, jobs=1, quiet=True)
    assert (len(result), result.failures) == (2, {})
    assert result.table().num_rows == 2 * len(study.metrics)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_scenario_is_valid_and_says_what_it_shows(file):
    assert file.read_text().startswith("# ")
    scenario = Scenario.load(file)
    assert Scenario.from_toml(scenario.to_toml()) == scenario


OWN_DATA = ("fig2_", "fig6_")  # the other figures of the paper have the same data and models
# FedSUV's tasks differ in data and model alone, which digits replace; their methods are those of their own study.
OWN_METHODS = {"fedsuv", "fedsampling"}
# Those of one folder are one another's variants.
ONE = {file.parent: file for file in FILES if file.parent != SCENARIOS}
SHOWN = [file for file in FILES if ONE.get(file.parent, file) == file]
CASES = [(file, baseline) for file in FILES for baseline in BASELINES[: 1 if file.parent.name in OWN_METHODS else None]]


@pytest.mark.parametrize(
    ("file", "baseline"),
    by_default(CASES, [(file, {}) for file in SHOWN]),
    ids=lambda part: part.stem if isinstance(part, Path) else "-".join(map(str, part.values())) or "itself",
)
def test_scenario_runs_on_digits(file, baseline):
    scenario = Scenario.load(file).replace({"rounds.count": 2, "crowd.clients": 24, **baseline})
    learns = scenario.describe()["learning"]["kind"] != "none"
    if learns and scenario.learning.data != Scenario.load(SCENARIOS / "quickstart.toml").learning.data:
        digits = {"learning.data": "digits", "learning.model": {"kind": "mlp"}, "results.evaluate_every": 1}
        if scenario.describe()["learning"]["split"]["kind"] == "natural":  # digits have no users
            digits["learning.split"] = "equal"
        scenario = scenario.replace(digits)
    history = simulate(scenario)
    assert history.rounds.num_rows == 2
    assert history.evaluations.num_rows == (3 if learns else 0)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("file", [path for path in FILES if path.stem.startswith(OWN_DATA)], ids=lambda path: path.stem)
def test_paper_scenario_runs_on_its_own_data(file, data_dir):
    scenario = Scenario.load(file).replace({"rounds.count": 1, "selector.cohort": 2, "learning.local.max_batches": 2})
    history = simulate(scenario, data_dir=data_dir)
    assert 0 < history.column("evaluations", "accuracy")[0] < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"validate_laws.py"}))
def test_study_runs_and_draws(name, tmp_path):
    assert printed(name, tmp_path, *STUDIES[name].split(), "--out", tmp_path / "out").strip()
    written = {path.suffix for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert (".png" in written) == (name in WITH_PICTURES)
    of_study = {".toml", ".jsonl", ".arrows", ""}  # its folder, beside its figures
    assert written <= {".png", ".csv"} | (of_study if ".jsonl" in written else set())


@pytest.mark.slow
@pytest.mark.statistical
def test_every_law_stands_in_the_validation_table(tmp_path):
    """The command ends with status 0 only if no law is beyond its limit."""
    table = printed("validate_laws.py", tmp_path, "--quick").splitlines()
    rows = [cells for cells in (re.split(r"\s{2,}", line.strip()) for line in table) if len(cells) == 4][1:]
    laws = " | ".join(law for law, *_ in rows)
    for law in re.split("; |\n", LAWS.strip()):
        assert law in laws
    assert all(abs(float(errors)) < 4.5 for *_, errors in rows)
    # Nothing is drawn in a path loss: equal or not.
    assert {errors for law, *_, errors in rows if re.search(r" N?LOS \d+ m$", law)} == {"0"}


@pytest.mark.parametrize(("errors", "status"), [(4.4, 0), (-4.6, 1), (float("inf"), 1), (float("nan"), 1)])
def test_validation_fails_beyond_the_limit(errors, status, monkeypatch, capsys):
    monkeypatch.syspath_prepend(SCENARIOS)
    study = importlib.import_module("validate_laws")
    row = importlib.import_module("validation").Row("law of the jungle", errors, 0.0, 1.0)
    monkeypatch.setattr(study, "GROUPS", [lambda _: [row]])
    with pytest.raises(SystemExit) as ended:
        study.main()
    assert int(ended.value.code) == status
    assert "law of the jungle" in capsys.readouterr().out
