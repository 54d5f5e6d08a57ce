"""Every page does what it says: its blocks run, its paths exist, its names resolve."""

import ast
import functools
import importlib
import re
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.support.families import by_default
from tests.support.pages import LANGUAGES, PAGES, ROOT, Reader, blocks, prose

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"\]\(([^)\s]+)\)")
TICKED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(fedsim|scenarios|tests|\.ci)/[\w./*-]*|[\w./-]+\.(py|md)")
DOTTED = re.compile(r"\bfedsim(?:\.[A-Za-z_]\w*)+")
# Entry points have groups, which are no modules.
GROUPS = re.compile(r"group `?fedsim\.\w+`?|fedsim\.\w+`? entry point|entry-points\.\"fedsim\.\w+\"")


# The pages that a reader meets first in the default tier, all in the slow one.
FIRST = [ROOT / "README.md", ROOT / "fedsim" / "README.md", ROOT / "fedsim" / "testing" / "own_parts" / "selector.md"]


@pytest.mark.parametrize("page", by_default(PAGES, FIRST), ids=NAMES)
def test_blocks_run(page, beside_scenarios):
    if "from flwr" in page.read_text():
        pytest.importorskip("flwr", reason="the extra 'flower' is not installed")
    with mpl.rc_context({"backend": "Agg"}):
        Reader(page, beside_scenarios).follow()


def on_pages(wrong):
    """Return what is wrong on which page, by a function of a page."""
    return {name: found for name, page in zip(NAMES, PAGES, strict=True) if (found := wrong(page))}


def test_blocks_name_their_language():
    assert not on_pages(lambda page: [block.place for block in blocks(page) if block.language not in LANGUAGES])


def test_links_lead_somewhere():
    def wrong(page):
        targets = [target.split("#")[0] for target in LINK.findall(prose(page)) if "://" not in target]
        return [target for target in targets if target and not (page.parent / target).exists()]

    assert not on_pages(wrong)


def test_paths_exist():
    """A path is written from the root of the repository or from the page; a file that the page shows counts too."""

    def wrong(page):
        shown = {block.file for block in blocks(page)}
        paths = [word for text in TICKED.findall(prose(page)) for word in text.split() if PATH.fullmatch(word)]
        return [path for path in paths if path not in shown and not (found(ROOT, path) or found(page.parent, path))]

    assert not on_pages(wrong)


def found(folder, path):
    return any(folder.glob(path)) if "*" in path else (folder / path).exists()


@functools.cache
def resolves(name):
    """Return whether a dotted name is a module or leads to an attribute of one."""
    *way, last = name.split(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return bool(way) and resolves(".".join(way)) and hasattr(value_of(".".join(way)), last)
    return True


def value_of(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        way, _, last = name.rpartition(".")
        return getattr(value_of(way), last)


def docstrings(node):
    """Yield the docstring of a module, and those of its classes and functions."""
    yield ast.get_docstring(node, clean=False) or ""
    for part in node.body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from docstrings(part)


def names_in(text):
    return {name for name in DOTTED.findall(GROUPS.sub("", text)) if not name.endswith((".toml", ".py", ".md"))}


def test_names_on_pages_resolve():
    assert not on_pages(lambda page: [name for name in sorted(names_in(page.read_text())) if not resolves(name)])


def test_names_in_docstrings_resolve():
    files = sorted((ROOT / "fedsim").rglob("*.py"))
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for text in docstrings(ast.parse(path.read_text()))
        for name in names_in(text)
        if not resolves(name)
    }
    assert not wrong


def test_every_room_has_a_page():
    rooms = [ROOT / "fedsim", ROOT / "scenarios", ROOT / "tests"]
    rooms += sorted(path.parent for path in (ROOT / "fedsim").glob("*/__init__.py"))
    assert not [str(room.relative_to(ROOT)) for room in rooms if not (room / "README.md").is_file()]


def test_the_first_page_is_short():
    assert len(Path(ROOT / "README.md").read_text().splitlines()) <= 160
