"""Classes that a scenario names as module:Class: what is found, and every way in which one cannot be loaded."""

import sys

import pytest

from fedsim.inputs.plugins import PluginError, imported_plugins, load_plugin, without_plugins

FIRST = """
class First:
    class Inner:
        pass
def made(): ...
"""
FILES = {
    "plug_first.py": FIRST,
    "plug_again.py": "from plug_first import First as Again\nfrom plug_package.deep import *\n",
    "plug_package/__init__.py": "from .deep import Deep\nfrom . import deep\n",
    "plug_package/deep.py": "try:\n    import nothing_here\nexcept ImportError:\n    class Deep: ...\n"
    "Made = type('Made', (), {})\n",
    "plug_package/__main__.py": "raise SystemExit('run')\n",
    "plug_bare/deep.py": FIRST,
    "plug_needs.py": "import nothing_here\nclass A: ...\n",
    "plug_raises.py": "class A: ...\nraise RuntimeError('no\\nkey')\n",
    "plug_exits.py": "class A: ...\nimport sys\nsys.exit(3)\n",
    "plug_stops.py": "class A: ...\nraise BaseException\n",
    "plug_no_python.py": "class A(:\n",
    "plug_null.py": "class A: ...\0\n",
}


@pytest.fixture(autouse=True)
def plugs(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("plug_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("place", "name"),
    {
        "plug_first:First": "First",
        "plug_first:First.Inner": "Inner",
        "plug_again:Again": "First",
        "plug_package:Deep": "Deep",
        "plug_package.deep:Deep": "Deep",
        "plug_package.deep:Made": "Made",
        "plug_bare.deep:First": "First",
        "plug_first:made": "made",
    }.items(),
)
def test_a_class_is_found_where_it_stands_and_where_it_is_imported(place, name):
    assert load_plugin(place).__name__ == name
    module = place.partition(":")[0]
    assert imported_plugins()[module].endswith(".py")


REFUSED = {
    "unittest.__main__:x": "is a program",
    "plug_package.__main__:A": "is a program",
    ".a:B": "not of the form",
    ":B": "not of the form",
    "a:": "not of the form",
    "a:B:C": "not of the form",
    "a b:C": "not of the form",
    "no_such_module_at_all:A": "there is no module 'no_such_module_at_all'",
    "plug_package.none.deeper:A": "there is no module 'plug_package.none'",
    "plug_first.deep:A": "there is no module 'plug_first.deep'",
    "plug_first:Firts": r"has no 'Firts' \(did you mean 'First'\?\)",
    "plug_first:First.Outer": "has no 'First.Outer'",
    "plug_raises:A": "fails when it is imported: RuntimeError: no key",
    "plug_exits:A": r"ends the program when it is imported \(exit code 3\)",
    "plug_stops:A": "fails when it is imported: BaseException: no reason",
    "plug_needs:A": "fails when it is imported: ModuleNotFoundError: No module named 'nothing_here'",
    "plug_no_python:A": "fails when it is imported: SyntaxError",
    "plug_null:A": "fails when it is imported: SyntaxError",
    "_heapq_no:A": "there is no module",
}


@pytest.mark.parametrize("place", REFUSED)
def test_what_cannot_be_loaded_is_refused(place):
    with pytest.raises(PluginError, match=REFUSED[place]):
        load_plugin(place)


def test_an_interrupt_on_import_is_an_interrupt(plugs):
    (plugs / "plug_interrupt.py").write_text("class A: ...\nraise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_plugin("plug_interrupt:A")


def test_without_plugins_nothing_is_imported():
    with without_plugins(), pytest.raises(PluginError, match="--no-plugins is given"):
        load_plugin("plug_first:First")
    assert "plug_first" not in sys.modules
    assert load_plugin("plug_first:First")
