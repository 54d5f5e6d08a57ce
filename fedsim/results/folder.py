"""The folder of a run: scenario, tables, summary and figures, readable at every moment.

The page of this room lists the files. Every file is written beside its place and moved there, so that a killed run
leaves a folder with all rounds up to the last writing.
"""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from fedsim.errors import RunError, ScenarioError
from fedsim.history import History, Recorder
from fedsim.history.schema import FORMAT_VERSION, TABLES
from fedsim.scenario import Scenario

_PACKAGES: Final = ("fedsim-des", "numpy", "scipy", "simpy", "torch", "torchvision")


class RunFolder:
    """The folder of one run, open for writing.

    Parameters
    ----------
    path : of the folder; made if it does not exist
    scenario : of the run
    replace : whether the run of another scenario may be replaced

    Raises
    ------
    RunError
        If the folder holds another scenario's run or something that is no run, or cannot be written.
    """

    def __init__(self, path: str | Path, scenario: Scenario, *, replace: bool = False) -> None:
        self.path, self.scenario = Path(path), scenario
        # Read now, because a file may change while the run goes on.
        self._digest, self._files = scenario.digest(), scenario.files()
        self._code = {path: code.unreadable or code.text for path, code in scenario.code().items()}
        self._check_free(replace)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for stale in (*self.path.glob("*.parquet"), *self.path.glob("*.png"), self.path / "summary.json"):
                stale.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{self.path}: cannot be written: {error.strerror}") from None
        self._write_scenario()

    def write(self, history: History, status: str, wall_s: float) -> None:
        """Write the present tables and the state of the run.

        Parameters
        ----------
        history : up to now
        status : ``"running"``, ``"finished"`` or ``"interrupted"``
        wall_s : real seconds since the run started
        """
        for name, table in history.tables().items():
            self._replace(f"{name}.parquet", lambda part, table=table: pq.write_table(table, part))
        self.write_json(
            "run.json",
            {
                "format": FORMAT_VERSION,
                "name": self.scenario.name,
                "digest": self._digest,
                "files": self._files,
                "code": self._code,
                "seed": self.scenario.seed,
                "status": status,
                "rounds": history.rounds.num_rows,
                "wall_s": round(wall_s, 3),
                "versions": versions(),
            },
        )

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        """Write values as JSON to a file of this name."""
        text = json.dumps(values, indent=2) + "\n"
        self._replace(name, lambda part: part.write_text(text, encoding="utf-8"))

    def _check_free(self, replace: bool) -> None:
        if replace or not self.path.exists():
            return
        if not self.path.is_dir():
            raise RunError(f"{self.path}: is a file; a run needs a folder")
        if not any(self.path.iterdir()):
            return
        try:
            digest = read_state(self.path)["digest"]
        except RunError:
            raise RunError(f"{self.path}: is a folder that holds no run; choose another with --out") from None
        # The digest of an object without a description knows its class only, so the run may be another one.
        if digest != self._digest or self.scenario.selector.prototype is not None:
            raise RunError(
                f"{self.path}: holds a run of another scenario (digest {digest[:12]}); choose another folder with "
                "--out, or replace that run with --force"
            )

    def _write_scenario(self) -> None:
        try:
            text = self.scenario.to_toml()
        except ScenarioError as error:
            text = f"# {error}\n"
        self._replace("scenario.toml", lambda part: part.write_text(text, encoding="utf-8"))
        self.write(Recorder(self.scenario.name).history(), "running", 0.0)

    def _replace(self, name: str, write: Any) -> None:
        part = self.path / f".{name}.part"
        try:
            write(part)
            part.replace(self.path / name)
        except OSError as error:
            raise RunError(f"{self.path / name}: cannot be written: {error.strerror}") from None


def read_run(path: str | Path) -> History:
    """Return the history in a run folder, also of a run that was not finished.

    A folder without a format is of format 1; columns that are newer than the folder's format are null.

    Raises
    ------
    RunError
        If the folder holds no run, or one of a newer format, or a table that is not in its format.
    """
    folder = Path(path)
    state = read_state(folder)
    version = state.get("format", 1)
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise RunError(
            f"{folder / 'run.json'}: format {version!r} cannot be read; allowed: 1 to {FORMAT_VERSION}. A newer fedsim "
            "reads folders of a newer format"
        )
    tables = {}
    for name, schema in TABLES.items():
        file = folder / f"{name}.parquet"
        if schema.optional and not file.exists():
            continue
        try:
            tables[name] = schema.read(pq.read_table(file), version)
        except (OSError, pa.ArrowException, ValueError) as error:
            raise RunError(f"{file}: cannot be read as a table of a run: {error}") from None
    return History(str(state["name"]), **tables)


def read_state(path: Path) -> dict[str, Any]:
    """Return the content of a run folder's ``run.json``.

    Raises
    ------
    RunError
        If there is no such file, or it describes no run.
    """
    file = path / "run.json"
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RunError(f"{path}: holds no run (no readable run.json)") from None
    if not isinstance(state, dict) or not {"name", "digest", "status"} <= state.keys():
        raise RunError(f"{file}: is not the state of a run")
    return state


def versions() -> dict[str, str]:
    """Return the versions of the packages that a result depends on; packages that are not installed are left out."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
