"""Classes are looked up in the source before a module is imported: what does not define the class is not run."""

import sys
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from fedsim.inputs.plugins import PluginError, imported_plugins, load_plugin, without_plugins

FIRST = """
class First:
    class Inner:
        pass
"""
FILES = {
    "plug_first.py": FIRST,
    "plug_again.py": "from plug_first import First as Again\nfrom plug_package.deep import *\n",
    "plug_package/__init__.py": "from .deep import Deep\nfrom . import deep\n",
    "plug_package/deep.py": "try:\n    import nothing_here\nexcept ImportError:\n    class Deep: ...\n"
    "Made = type('Made', (), {})\n",
    "plug_package/__main__.py": "raise SystemExit('run')\n",
    "plug_bare/deep.py": FIRST,
    "plug_effects.py": "open('effect', 'w').close()\nx = 1\ndef make(): ...\nimport json\n",
    "plug_raises.py": "class A: ...\nraise RuntimeError('no\\nkey')\n",
    "plug_exits.py": "class A: ...\nimport sys\nsys.exit(3)\n",
    "plug_stops.py": "class A: ...\nraise BaseException\n",
    "plug_no_python.py": "class A(:\n",
    "plug_deep.py": "x = " + "(" * 3000 + "\nclass A: ...\n",
    "plug_null.py": "class A: ...\0\n",
    "plug_circle.py": "from plug_circle import A\n",
    "plug_lazy.py": "class A: ...\ndel A\n",
}


@pytest.fixture(autouse=True)
def plugs(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / f"plug_compiled{EXTENSION_SUFFIXES[0]}").write_bytes(b"no machine code")
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
    "plug_first:Firts": r"defines no class 'Firts' \(did you mean 'First'\?\), so it is not imported",
    "plug_first:First.Outer": "has no 'First.Outer'",
    "plug_effects:x": "defines no class 'x'",
    "plug_effects:make": "defines no class 'make'",
    "plug_effects:json": "defines no class 'json'",
    "antigravity:A": "defines no class 'A'",
    "this:s": "defines no class 's'",
    "plug_raises:A": "fails when it is imported: RuntimeError: no key",
    "plug_exits:A": r"ends the program when it is imported \(exit code 3\)",
    "plug_stops:A": "fails when it is imported: BaseException: no reason",
    "plug_no_python:A": "cannot be read: ",
    "plug_deep:A": "cannot be read: ",
    "plug_null:A": "cannot be read: ",
    "plug_circle:A": "in a circle",
    "plug_lazy:A": "has no 'A'",
    "_heapq_no:A": "there is no module",
    "plug_compiled:A": "has no source of Python",
}


@pytest.mark.parametrize("place", REFUSED)
def test_what_defines_no_class_is_refused(place, plugs):
    with pytest.raises(PluginError, match=REFUSED[place]):
        load_plugin(place)
    assert not (plugs / "effect").exists()
    assert "antigravity" not in sys.modules


def test_an_interrupt_on_import_is_an_interrupt(plugs):
    (plugs / "plug_interrupt.py").write_text("class A: ...\nraise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_plugin("plug_interrupt:A")


def test_without_plugins_nothing_is_imported():
    with without_plugins(), pytest.raises(PluginError, match="--no-plugins is given"):
        load_plugin("plug_first:First")
    assert "plug_first" not in sys.modules
    assert load_plugin("plug_first:First")


def test_what_an_installed_package_registers_may_be_compiled():
    with pytest.raises(PluginError, match="fails when it is imported: ImportError"):
        load_plugin("plug_compiled:A", package="a package 1.0")
