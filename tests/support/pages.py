"""The pages of the repository, and how their blocks of code are run."""

import contextlib
import re
import shlex
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest import mock

import typer
from typer.main import get_command

from fedsim import Scenario
from fedsim.cli import app, main

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(path for room in ("fedsim", "scenarios", "tests") for path in (ROOT / room).rglob("*.md")),
]
LANGUAGES = {"python", "toml", "console", "bash", "text", "bibtex", ""}
# How a line begins that somebody may want to type.
TYPED = re.compile(r"^(\$|pip|fedsim|python|pytest|import|from|\[\w+\]$)( |$)", re.MULTILINE)
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
TABLES = set(Scenario.model_fields)
# Programs that a page may name and a test does not run.
NOT_RUN = {"pip", "pytest", "ruff", "mypy", "lint-imports", "git", "cd"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self):
        """The file that the block shows, if its first line is a comment of one word that is a file's name."""
        found = re.match(r"# ([\w./-]+\.(?:py|toml|csv|json))\n", self.text)
        return None if found is None else found[1]


def blocks(page):
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1].strip(), found[2])
        for found in FENCE.finditer(text)
    ]


def prose(page):
    return FENCE.sub("", page.read_text())


class Reader:
    """Someone who follows a page: types its blocks in order, in a folder of their own beside the scenarios."""

    def __init__(self, page, folder):
        self.page, self.folder = page, folder
        self.code = ""
        self.written = set()

    def follow(self):
        for block in blocks(self.page):
            if block.file is not None:
                (self.folder / block.file).write_text(block.text)
            read = {"python": self._python, "toml": self._toml, "console": self._console, "bash": self._console}
            try:
                read.get(block.language, self._text)(block)
            except Exception as error:
                error.add_note(f"in the block at {block.place}")
                raise
            if block.file is not None:
                self.written.add(block.file.removesuffix(".py"))
        # Two pages may show files of one name.
        for module in (self._module, *self.written):
            sys.modules.pop(module, None)

    @property
    def _module(self):
        return "page_" + "_".join(self.page.relative_to(ROOT).with_suffix("").parts).lower()

    def _python(self, block):
        """Run a block in the namespace of those before it; lines are numbered as on the page.

        All blocks are one module with a file, so that the classes of a page have a source.
        """
        if block.text.startswith("# minutes\n"):
            compile(block.text, block.place, "exec")
            return
        lines = self.code.count("\n")
        self.code += "\n" * (block.line - lines) + block.text
        file = self.folder / f"{self._module}.py"
        file.write_text(self.code)
        if self._module not in sys.modules:
            spec = spec_from_file_location(self._module, file)
            sys.modules[self._module] = module_from_spec(spec)
        code = compile("\n" * block.line + block.text, str(file), "exec")
        exec(code, vars(sys.modules[self._module]))  # noqa: S102 - what a page says is what is tested

    def _text(self, block):
        """Refuse commands and code that would not be run."""
        assert not TYPED.search(block.text), "a block of commands or code names its language"

    def _toml(self, block):
        """Read a block: a whole scenario, some tables or fields of one, or a file of another kind."""
        tables = tomllib.loads(block.text)
        if {"name", "crowd"} <= set(tables):
            Scenario.from_toml(block.text, source=block.place)
        elif set(tables) <= TABLES:
            values = {}
            for name, value in tables.items():
                if isinstance(value, dict) and "kind" not in value:
                    values |= {f"{name}.{field}": given for field, given in value.items()}
                else:
                    values[name] = value
            Scenario.load(ROOT / "scenarios" / "quickstart.toml").replace(values)

    def _console(self, block):
        """Run the commands of a block: lines after ``$``, or all of them where there is none."""
        lines = block.text.replace("\\\n", " ").splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for line in lines:
            for command in line.split("&&"):
                words, long = shlex.split(command, comments=True), command.rstrip().endswith("# minutes")
                if words:
                    self._command(words, long, f"{block.place}: {command.strip()}")

    def _command(self, words, long, place):
        program, *arguments = words
        if program == "fedsim":
            check_arguments(arguments)
            placeholder = any(re.fullmatch(r"[A-Z][A-Z0-9]+", word) for word in arguments)
            if arguments and not long and not placeholder:
                quick = ["--set", "rounds.count=2"] if arguments[0] == "run" else []
                with mock.patch.object(sys, "argv", ["fedsim", *arguments, *quick]):
                    assert not exit_code(main), f"{place}: does not end well"
        elif program == "python":
            check_script(arguments, place)
        else:
            assert program in NOT_RUN, f"{place}: {program} is no program that pages use"
            named = [word for word in arguments if word.endswith((".py", ".toml")) or word.startswith("tests/")]
            assert all((ROOT / word.split("::")[0]).exists() for word in named), place


def check_arguments(arguments):
    """Check that the command line takes these arguments; nothing is run."""
    group = get_command(app)
    # --help and --version print and end.
    with (
        contextlib.suppress(typer.Exit),
        group.make_context("fedsim", list(arguments), resilient_parsing=not arguments) as context,
    ):
        rest = [*context._protected_args, *context.args]
        if rest:
            name, command, given = group.resolve_command(context, rest)
            command.make_context(name, given, parent=context)


def exit_code(program):
    try:
        program()
    except SystemExit as end:
        return end.code
    return 0


def check_script(arguments, place):
    """Check that a script exists and knows its options; studies are run at tiny size by tests/studies."""
    if arguments[0] == "-m":
        assert arguments[1] == "pytest" or arguments[1].startswith("fedsim"), place
        return
    script = ROOT / arguments[0]
    assert script.is_file(), f"{place}: there is no {arguments[0]}"
    source = script.read_text()
    for option in (word.split("=")[0] for word in arguments[1:] if word.startswith("--")):
        assert option in source, f"{place}: {arguments[0]} knows no {option}"
