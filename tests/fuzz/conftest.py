"""Fixtures of the fuzz tests."""

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.one_command import CHEAPER


@pytest.fixture(autouse=True, scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder, before = tmp_path_factory.mktemp("fuzz"), Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        for part, name, value in CHEAPER:
            patch.setattr(part, name, value)
        patch.setattr(sys, "path", list(sys.path))
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        patch.setenv("FEDSIM_DATA", str(folder))
        patch.setenv("FEDSIM_CACHE", str(folder / "cache"))
        os.chdir(folder)
        yield folder
        os.chdir(before)
