"""`fedsim --version` prints what a report of a fault needs, and imports no torch for it."""

import platform
import re
import sys
import tomllib

import numpy as np
import pytest

import fedsim
from fedsim.cli import version
from fedsim.cli.version import code_of, instructions, version_lines
from tests.support.one_command import call
from tests.support.pages import ROOT

NAMES = ["fedsim", "code", "python", "platform", "processor", "libraries", "graphics", "variables", "cache"]


def told():
    return dict(line.split(" ", 1) for line in version_lines())


def test_the_command_prints_a_line_of_each_kind_and_ends_well():
    ended = call(["--version"])
    assert ended.code == 0, ended.errors
    assert [line.split()[0] for line in ended.out.splitlines()] == NAMES
    assert ended.out.splitlines()[0] == f"fedsim {fedsim.__version__}"


def test_versions_are_those_of_what_is_imported():
    libraries = dict(pair.split(" ") for pair in told()["libraries"].split(", "))
    assert libraries["numpy"] == np.__version__
    assert {"scipy", "simpy", "networkx", "torch", "torchvision", "scikit-learn"} <= libraries.keys()
    assert told()["python"] == f"{platform.python_version()} ({platform.python_implementation()})"


def test_the_version_is_one():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == fedsim.__version__
    assert f"version = {{{fedsim.__version__}}}" in (ROOT / "README.md").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", fedsim.__version__), "major.minor.patch"


def test_the_digest_of_the_code_knows_names_and_contents(tmp_path):
    (tmp_path / "one.py").write_text("x = 1\n")
    before = code_of(tmp_path)
    assert re.fullmatch("[0-9a-f]{16}", before)
    (tmp_path / "notes.txt").write_text("no code")
    assert code_of(tmp_path) == before
    (tmp_path / "one.py").write_text("x = 2\n")
    edited = code_of(tmp_path)
    (tmp_path / "one.py").write_text("x = 1\n")
    (tmp_path / "one.py").rename(tmp_path / "two.py")
    assert len({before, edited, code_of(tmp_path)}) == 3
    assert told()["code"] == code_of(ROOT / "fedsim")


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="flags are those of x86 on Linux")
def test_instructions_are_those_that_torch_uses():
    import torch

    assert instructions() == torch.backends.cpu.get_cpu_capability()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("flags\t\t: fpu fma avx2 avx512f avx512vl avx512bw avx512dq", "AVX512"),
        ("flags\t\t: fpu fma avx2 avx512f", "AVX2"),
        ("flags\t\t: fpu avx", "DEFAULT"),
        ("processor: 0", f"{platform.machine()}, instructions not known"),
    ],
)
def test_instructions_follow_from_the_flags(flags, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(version, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    assert instructions() == f"{platform.machine()}, instructions not known"
    (tmp_path / "cpuinfo").write_text(f"{flags}\n")
    assert instructions() == expected
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert instructions() == "AVX2"


def test_the_driver_variables_and_the_cache_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(version, "_NVIDIA", tmp_path / "version")
    assert told()["graphics"] == "no NVIDIA driver found"
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\nGCC version\n")
    assert told()["graphics"] == "NVIDIA driver 550.54.15"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FEDSIM_CACHE", str(tmp_path / "kept"))
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert told()["cache"] == "~/kept (not made yet)"
    assert "FEDSIM_CACHE=~/kept" in told()["variables"]
    assert "OMP_NUM_THREADS=3" in told()["variables"]
    (tmp_path / "kept").mkdir()
    assert told()["cache"] == "~/kept (there)"
