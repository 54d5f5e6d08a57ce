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
    TABLE = {}
    TABLE["a"] = 1.0

    def helper(x):
        return inner(x) * SCALE

    def inner(x):
        return x + TABLE["a"]

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


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Return a function that writes the user's modules anew and loads them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("own_part", "own_helpers", "own_tools")

    def make(part: str = PART, helpers: str = HELPERS) -> ModuleType:
        for name, text in zip(names, (part, helpers, "VALUE = 1\n"), strict=True):
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("own_part")

    yield make
    for name in names:
        sys.modules.pop(name, None)


def digest(module: Any) -> CodeDigest:
    found = code_digest(module.Part)
    assert not found.unreadable
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return helper(x) +", "return helper(x) -"),
        ("return inner(x) * SCALE", "return inner(x) / SCALE"),
        ("return x + TABLE", "return x - TABLE"),
        ("SCALE = 2.0", "SCALE = 3.0"),
        ('TABLE["a"] = 1.0', 'TABLE["a"] = 2.0'),
        ("            return 1\n", "            return 2\n"),
    ],
)
def test_the_class_and_what_it_uses_count(load: Callable[..., ModuleType], old: str, new: str) -> None:
    before = digest(load())
    assert old in PART
    assert digest(load(PART.replace(old, new))) != before
    assert digest(load()) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def unrelated(x):\n        return x", "def unrelated(x):\n        return -x"),
        ("    SCALE = 2.0", "    OTHER = 1\n\n\n    SCALE = 2.0"),
        ("print(Part())", "print(Part().act(1))"),
        ("import numpy as np", "import numpy"),
    ],
)
def test_what_the_class_does_not_use_does_not_count(load: Callable[..., ModuleType], old: str, new: str) -> None:
    before = digest(load())
    assert old in PART
    assert digest(load(PART.replace(old, new))) == before


def test_the_users_other_modules_count_as_a_whole(load: Callable[..., ModuleType]) -> None:
    before = digest(load())
    for old, new in (
        ("return deep(x)", "return -deep(x)"),
        ("def deep(x):\n        return x", "def deep(x):\n        return -x"),
        ("OUTER = 1.0", "OUTER = 2.0"),
        ("def unused(x):\n        return x", "def unused(x):\n        return -x"),
    ):
        assert old in HELPERS
        assert digest(load(helpers=HELPERS.replace(old, new))) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return helper(x) +", 'return globals()["helper"](x) +'),
        ("import numpy as np", "from math import *"),
    ],
)
def test_where_uses_cannot_be_told_the_whole_module_counts(load: Callable[..., ModuleType], old: str, new: str) -> None:
    opaque = PART.replace(old, new)
    before = digest(load(opaque))
    assert (
        digest(load(opaque.replace("def unrelated(x):\n        return x", "def unrelated(x):\n        return -x")))
        != before
    )
    assert digest(load(opaque, HELPERS.replace("return deep(x)", "return -deep(x)"))) != before


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


def test_a_module_used_as_a_whole_counts_as_a_whole(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    text = PART.replace("outer(x) + OUTER", "own_tools.VALUE")
    before = digest(load(text))
    module = load(text)
    (tmp_path / "own_tools.py").write_text("VALUE = 1\n\n\nMORE = 2\n")
    assert digest(module) != before


def test_two_processes_agree(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    expected = digest(load()).text
    program = "import own_part; from fedsim.code_digest import code_digest; print(code_digest(own_part.Part).text)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == expected


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
