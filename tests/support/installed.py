"""Packages laid out as pip leaves them: the modules, and a `.dist-info` with the entry points of a `pyproject.toml`."""

import shutil
import tomllib

from tests.support.pages import ROOT

PLUGIN = ROOT / "tests" / "plugin_package"


def lay_out(source, site, **changes):
    """Install a package without pip, and return its name and version."""
    project = {**tomllib.loads((source / "pyproject.toml").read_text())["project"], **changes}
    for package in source.glob("*/__init__.py"):
        shutil.copytree(package.parent, site / package.parent.name, dirs_exist_ok=True)
    told = f"{project['name']} {project['version']}"
    folder = site / f"{told.replace('-', '_').replace(' ', '-')}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return told
