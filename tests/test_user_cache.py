"""Where the user's cache lies, against paths written down here."""

from pathlib import Path

import pytest

from fedsim.learning import data_folder
from fedsim.user_cache import user_cache


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FEDSIM_DATA", raising=False)
    monkeypatch.setenv("FEDSIM_CACHE", str(tmp_path / "cache"))
    assert user_cache() == data_folder() == tmp_path / "cache"
    assert not user_cache().exists()


@pytest.mark.parametrize("value", [None, ""])
def test_without_it_the_folder_lies_in_the_home_folder(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    for name in ("FEDSIM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert user_cache() == Path.home() / ".cache" / "fedsim"


def test_the_folder_of_all_caches_counts_if_it_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FEDSIM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "fedsim"
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    assert user_cache() == Path.home() / ".cache" / "fedsim"


def test_a_home_folder_may_be_written_as_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDSIM_CACHE", "~/elsewhere")
    assert user_cache() == Path.home() / "elsewhere"
