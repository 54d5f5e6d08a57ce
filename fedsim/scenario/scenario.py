"""A scenario: a frozen value that is checked as a whole, read from TOML and written to it."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import tomli_w
from pydantic import ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails

from fedsim.answers import attributing
from fedsim.code_digest import CodeDigest
from fedsim.errors import ScenarioError
from fedsim.foreign import Foreign
from fedsim.history.first_sight import FirstSight
from fedsim.identity import nested, parts_of, user_code
from fedsim.inputs.files import read_text
from fedsim.inputs.paths import located
from fedsim.registry import refusal
from fedsim.scenario.compatibility import problems
from fedsim.scenario.file_digests import check_files, contents, without_folders
from fedsim.scenario.messages import explain
from fedsim.scenario.overrides import override
from fedsim.scenario.sections import ScenarioTables
from fedsim.scenario.toml import parse_toml


class Scenario(FirstSight, ScenarioTables):
    """One experiment, described completely; a frozen value.

    A field with a catalogue takes a kind, a table with a kind and its options, or a part; see the page of this room.

    Raises
    ------
    ScenarioError
        On any value that is not allowed, naming the field's path, the value and what is allowed.

    Examples
    --------
    >>> tables = {"name": "small", "crowd": {"clients": 4}, "learning": "none", "network": "pause-two-speed"}
    >>> tables |= {"devices": {"compute": "zero"}, "selector": {"kind": "uniform", "cohort": 2}}
    >>> scenario = Scenario(**tables, rounds={"count": 3})
    >>> scenario == Scenario.from_toml(scenario.to_toml())
    True
    >>> Scenario(**tables, rounds={"count": 0})
    Traceback (most recent call last):
    ...
    fedsim.errors.ScenarioError: rounds.count: 0 is not allowed; input should be greater than or equal to 1
    """

    def __init__(self, /, **tables: Any) -> None:
        try:
            with attributing():
                super().__init__(**located(tables))
        except ValidationError as error:
            raise ScenarioError(explain(error)) from None

    def _first_sight(self) -> tuple[str, list[tuple[str, str]]]:
        """Return a title, and a line for each table, with the kinds of its parts."""
        described = self.describe()
        parts = {name: described.get(name, {"kind": "none"}) for name in ("learning", "privacy", "network", "devices")}
        lines = [("crowd", f"{self.crowd.clients:,} clients")]
        lines += [(name, _kinds(table)) for name, table in parts.items()]
        lines += [
            ("rounds", f"{self.rounds.count:,}, {_kinds(described['rounds'])}"),
            ("selector", _own(described["selector"])),
        ]
        return f"Scenario {self.name!r}, seed {self.seed}", lines

    @field_validator("privacy", mode="before")
    @classmethod
    def _no_privacy(cls, value: Any) -> Any:
        return None if value in ("none", {"kind": "none"}) else value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        errors: list[InitErrorDetails] = [
            {"type": refusal("does_not_fit", "{message}", message=message), "loc": path, "input": value}
            for path, value, message in problems(self)
        ]
        if errors:
            raise ValidationError.from_exception_data("Scenario", errors)
        return self

    def digest(self) -> str:
        """Return the SHA-256 of the resolved scenario, of the files that it reads and of the user's own code.

        It has 64 hexadecimal digits. With a part whose source cannot be read it holds in this process only; see `code`.
        """
        return self.digests([self.seed])[0]

    def digests(self, seeds: Iterable[int]) -> list[str]:
        """Return the digests of the scenario with these seeds.

        Parameters
        ----------
        seeds : in place of its own
        """
        beside = {"files": self.files(), "code": {path: code.text for path, code in self.code().items()}}
        described = {
            **without_folders(self.describe(), self),
            **{name: table for name, table in beside.items() if table},
        }
        texts = (json.dumps({**described, "seed": seed}, sort_keys=True, separators=(",", ":")) for seed in seeds)
        return [hashlib.sha256(text.encode()).hexdigest() for text in texts]

    def files(self) -> dict[str, str]:
        """Return the SHA-256 of each file that the scenario reads now, by the dotted path of the field that names it.

        Such files are placements, topologies and traces, and those that options of a user's own parts name. Data sets
        have names of their own.
        """
        return contents(self)

    def check_files(self) -> None:
        """Refuse the scenario if a file that it would read is not there or cannot be read.

        Raises
        ------
        ScenarioError
            Naming the field and the file.
        """
        check_files(self)

    def code(self) -> dict[str, CodeDigest]:
        """Return the code of each part that is not fedsim's own, by the dotted path of its field."""
        return user_code(self)

    def describe(self) -> dict[str, Any]:
        """Return the resolved scenario as plain tables, defaults included."""
        return self.model_dump(exclude_none=True)

    def replace(self, values: Mapping[str, Any]) -> "Scenario":
        """Return a scenario in which some values differ.

        Parameters
        ----------
        values : dotted path to value, in any order: a table is set before what is within it

        Examples
        --------
        >>> quickstart = Scenario.load("scenarios/quickstart.toml")
        >>> other = quickstart.replace({"rounds.policy.deadline_s": 2.0, "selector.kind": "uniform"})
        >>> other.rounds.policy.deadline_s, other.selector.kind, quickstart.selector.kind
        (2.0, 'uniform', 'pause')
        """
        tables: dict[str, Any] = dict(nested(self))
        for path, value in sorted(values.items(), key=lambda change: change[0].count(".")):
            override(type(self), tables, path, value)
        return Scenario(**{name: value for name, value in tables.items() if value is not None})

    def to_toml(self) -> str:
        """Return the scenario as TOML text that `from_toml` reads back.

        Raises
        ------
        ScenarioError
            If the selector is an object that a class and its options do not describe, or a part is an object that was
            handed over.
        """
        if self.selector.content:
            raise ScenarioError(
                f"selector: {self.selector.kind} cannot be written as TOML, because its constructor arguments are "
                "not among its attributes; allowed: a class that keeps each argument under its own name"
            )
        for path, part in parts_of(self):
            if isinstance(part, Foreign) and part.content:
                raise ScenarioError(
                    f"{path}: an object of {part.place} cannot be written as TOML; allowed: the name of a class or "
                    "function that gives it"
                )
        return tomli_w.dumps(self.describe())

    @classmethod
    def from_toml(
        cls,
        text: str,
        *,
        source: str = "scenario",
        values: Mapping[str, Any] | None = None,
        tell: Callable[[str], None] | None = None,
        folder: str | Path = "",
    ) -> "Scenario":
        """Return the scenario that TOML text describes, with some values replaced by their dotted paths.

        Parameters
        ----------
        text : TOML
        source : name of the text in messages
        values : dotted path to value
        tell : called with a sentence for each changed kind on which options are kept
        folder : folder from which paths in the text are meant; by default, as for values, the working folder

        Raises
        ------
        ScenarioError
            If the text is no TOML or holds values that are not allowed.
        """
        tables = located(parse_toml(text, source), folder)
        for path, value in (values or {}).items():
            told = override(cls, tables, path, value)
            if told and tell is not None:
                tell(told)
        try:
            return cls(**tables)
        except ScenarioError as error:
            raise ScenarioError("\n".join(f"{source}: {line}" for line in str(error).splitlines())) from None

    @classmethod
    def of(cls, given: "Scenario | str | Path | Mapping[str, Any]") -> "Scenario":
        """Return the scenario that is given as one, as a file or as tables.

        Parameters
        ----------
        given : Scenario, path of a TOML file, or tables by name

        Raises
        ------
        ScenarioError
            If the file cannot be read, or holds values that are not allowed, as tables may.
        """
        if isinstance(given, Scenario):
            return given
        return cls(**given) if isinstance(given, Mapping) else cls.load(given)

    @classmethod
    def load(
        cls, path: str | Path, values: Mapping[str, Any] | None = None, tell: Callable[[str], None] | None = None
    ) -> "Scenario":
        """Return the scenario of a TOML file, with some values replaced by their dotted paths.

        Paths in the file are meant from its folder, and those among the values from the working folder.

        Parameters
        ----------
        path : file
        values : dotted path to value
        tell : as in `from_toml`

        Raises
        ------
        ScenarioError
            If the file cannot be read, is no TOML or holds values that are not allowed.
        """
        try:
            text = read_text(path, ScenarioError)
        except ScenarioError as error:
            raise ScenarioError(f"{error}; a scenario is a TOML file") from None
        return cls.from_toml(text, source=str(path), values=values, tell=tell, folder=Path(path).parent)


_SHOWN: Final = ("data", "model", "budget", "mechanism", "compute", "availability", "dropout", "energy", "policy")
"""Parts whose kinds are shown at first sight; a table with a kind of its own comes first."""
_USUAL: Final = ("always", "never", "none")


def _kinds(table: Mapping[str, Any]) -> str:
    """Return the kind of a table and those of its main parts, but for what does nothing."""
    kinds = [_own(table)] if "kind" in table and not {"data", "model"} & table.keys() else []
    kinds += [f"{name} {_own(table[name])}" for name in _SHOWN if name in table and table[name]["kind"] not in _USUAL]
    return ", ".join(kinds) or "none"


def _own(table: Mapping[str, Any]) -> str:
    """Return the kind of a part, with the options that are numbers."""
    numbers = {
        name: value for name, value in table.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }
    options = [f"{name} {value:g}" for name, value in numbers.items()]
    return " ".join([str(table["kind"]), *([f"({', '.join(options)})"] if options else [])])
