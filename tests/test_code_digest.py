"""What a digest of code depends on, and what it does not."""

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fedsim.code_digest import CodeDigest, code_digest

PART = """
    from own_helpers import outer, OUTER
    import own_tools
    import numpy as np

    SCALE = 2.0

    def helper(x):
        return inner(x) * SCALE

    def inner(x):
        return x + 1.0

    def unrelated(x):
        return x

    class Base:
        def base(self):
            return 1

    class Part(Base):
        def act(self, x):
            return helper(x) + outer(x) + OUTER

    if __name__ == "__main__":
        print(Part())
"""
HELPERS = """
    OUTER = 1.0

    def outer(x):
        return deep(x)

    def deep(x):
        return x

    def unused(x):
        return x
"""
TOOLS = "VALUE = 1\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Return a function that writes the user's modules anew and loads them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("own_part", "own_helpers", "own_tools")

    def make(part: str = PART, helpers: str = HELPERS, tools: str = TOOLS) -> ModuleType:
        for name, text in zip(names, (part, helpers, tools), strict=True):
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("own_part")

    yield make
    for name in (*names, "own_package", "own_package.rates"):
        sys.modules.pop(name, None)


def digest(module: Any) -> CodeDigest:
    found = code_digest(module.Part)
    assert not found.unreadable
    return found


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("part", "return helper(x) +", "return helper(x) -"),
        ("part", "SCALE = 2.0", "SCALE = 3.0"),
        ("part", "def unrelated(x):\n        return x", "def unrelated(x):\n        return -x"),
        ("helpers", "return deep(x)", "return -deep(x)"),
        ("helpers", "def unused(x):\n        return x", "def unused(x):\n        return -x"),
        ("tools", "VALUE = 1", "VALUE = 2"),
    ],
)
def test_the_whole_module_counts_and_those_that_it_imports(
    load: Callable[..., ModuleType], module: str, old: str, new: str
) -> None:
    before, text = digest(load()), {"part": PART, "helpers": HELPERS, "tools": TOOLS}[module]
    assert old in text
    assert digest(load(**{module: text.replace(old, new)})) != before
    assert digest(load()) == before


def test_packages_without_a_line_in_their_init_count(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").touch()
    digests = []
    for text in ("RATE = 1.0\n", "RATE = 2.0\n"):
        (tmp_path / "own_package" / "rates.py").write_text(text)
        digests.append(digest(load(PART.replace("import own_tools", "from own_package import rates"))))
    assert digests[0] != digests[1]


def test_an_import_that_only_a_package_could_make_is_passed_over(load: Callable[..., ModuleType]) -> None:
    assert digest(load(PART.replace("import own_tools", "if __package__:\n        from . import own_tools")))


@pytest.mark.parametrize("line", ["import matplotlib.pyplot", "from matplotlib.pyplot import plot"])
def test_another_process_agrees_and_imports_no_installed_package_for_a_digest(
    load: Callable[..., ModuleType], tmp_path: Path, line: str
) -> None:
    expected = digest(load(PART.replace("return helper(x) +", f"{line}\n            return helper(x) +"))).text
    program = (
        "import sys, own_part; from fedsim.code_digest import code_digest; found = code_digest(own_part.Part); "
        "print(found.text, found.unreadable, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == [expected, "False"], "and there is nothing unreadable"


def test_a_module_that_is_imported_when_it_is_used_counts_before_it_is(
    load: Callable[..., ModuleType], tmp_path: Path
) -> None:
    lazy = PART.replace("return helper(x) +", "from own_lazy import late\n            return late(x) +")
    digests = []
    for text in ("def late(x):\n    return x\n", "def late(x):\n    return -x\n"):
        (tmp_path / "own_lazy.py").write_text(text)
        digests.append(digest(load(lazy)))
    assert "own_lazy" not in sys.modules
    assert digests[0] != digests[1]


def made(value: float) -> type:
    class Part:
        def act(self) -> float:
            return value

    return Part


def test_classes_without_source_say_so_and_count_for_themselves_only() -> None:
    space: dict[str, Any] = {"__name__": "nowhere"}
    exec("class Part:\n    pass\n", space)  # noqa: S102
    here: dict[str, Any] = {"__name__": __name__}
    exec("class Part:\n    pass\n", here)  # noqa: S102
    found = [space["Part"], here["Part"], made(1.0), made(2.0), type("Part", (), {})]
    digests = [code_digest(each) for each in found]
    assert len({each.text for each in digests}) == len(found)
    assert digests == [code_digest(each) for each in found]
    assert digests[0].unreadable == "the source of module 'nowhere' cannot be read"
    assert all("was made while the program ran" in each.unreadable for each in digests[1:])


def test_a_file_edited_since_it_was_loaded_is_no_source(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    module: Any = load()
    module.Part().act(1.0)
    (tmp_path / "own_part.py").write_text(textwrap.dedent(PART.replace("helper(x) +", "helper(x) -")))
    assert "has changed since it was loaded" in code_digest(module.Part).unreadable
