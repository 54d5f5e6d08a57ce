"""How the repository is laid out: tests beside what they test, no test inside another, files of one idea."""

import ast
import re

from tests.support.pages import ROOT

TESTS = ROOT / "tests"
# What has no room in fedsim: whole runs, laws over many rooms, contracts over catalogues, and support.
OTHERS = {"benchmarks", "contracts", "end_to_end", "fuzz", "golden", "laws", "studies", "support", "tools", "typing"}
# A function or class of a module that is no test, and its body: the lines that are indented or empty.
DEFINED = re.compile(r"^(?:def|class) (?!test_)(\w+)(?:.*|\(\n(?: .*\n)+\).*):\n((?:(?: .*)?\n)+)", re.MULTILINE)
IMPORTED = re.compile(r"^\s*(from|import) tests\.([a-z_]+\.)*test_", re.MULTILINE)


def test_no_test_imports_another():
    wrong = [path for path in TESTS.rglob("test_*.py") if IMPORTED.search(path.read_text())]
    assert not [str(path.relative_to(ROOT)) for path in wrong]


def test_helpers_are_written_once():
    """What two tests need is in tests/support; two helpers with the same body are one."""
    written = {}
    for path in [*sorted(TESTS.rglob("test_*.py")), *sorted((TESTS / "support").glob("*.py"))]:
        for name, body in DEFINED.findall(path.read_text()):
            written.setdefault((name, body.strip()), []).append(str(path.relative_to(ROOT)))
    assert not {name: paths for (name, body), paths in written.items() if len(paths) > 1 and len(body) > 80}


def test_tests_mirror_the_tree():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    rooms = {folder for folder in folders if folder.parts and folder.parts[0] not in OTHERS}
    assert not {str(room) for room in rooms if not (ROOT / "fedsim" / room / "__init__.py").is_file()}


def test_folders_are_small():
    folders = {path.parent for path in (ROOT / "fedsim").rglob("*.py")}
    counts = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders}
    assert not {folder: count for folder, count in counts.items() if count > 20}


def test_rounds_ask_no_object_what_it_is():
    """An interface is declared with its defaults; nothing in rounds is discovered."""
    asked = set()
    for path in sorted((ROOT / "fedsim" / "rounds").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if call and node.func.id in {"getattr", "hasattr", "isinstance"}:
                asked.add(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert not asked, "\n".join(sorted(asked))


def test_clients_name_no_effect():
    """What runs participations, and what they stand on, reads without knowing any feature."""
    words = re.compile(r"batter|outage|hazard|secure|width|allocat|epsilon|account|audit|probe", re.IGNORECASE)
    rounds = ROOT / "fedsim" / "rounds"
    spine = [*(rounds / "clients").glob("*.py"), rounds / "run.py", rounds / "plan.py"]
    assert len(spine) > 7
    named = {f"{path.name}:{found.group()}" for path in spine for found in words.finditer(path.read_text())}
    assert not named
