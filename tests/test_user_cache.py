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
    monkeypatch.delenv("FEDSIM_CACHE", raising=False)
    if value is not None:
        monkeypatch.setenv("FEDSIM_CACHE", value)
    assert user_cache() == Path.home() / ".cache" / "fedsim"


def test_a_home_folder_may_be_written_as_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDSIM_CACHE", "~/elsewhere")
    assert user_cache() == Path.home() / "elsewhere"
