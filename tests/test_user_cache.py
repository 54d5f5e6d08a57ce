"""Where the user's cache lies, against paths written down here."""

from pathlib import Path

import pytest

from fedsim.learning import data_folder
from fedsim.user_cache import user_cache

HOME = Path.home() / ".cache" / "fedsim"


@pytest.mark.parametrize(
    ("named", "of_all_caches", "expected"),
    [
        ("/named", "/caches", Path("/named")),
        ("~/elsewhere", None, Path.home() / "elsewhere"),
        (None, "/caches", Path("/caches/fedsim")),
        (None, "caches", HOME),
        (None, None, HOME),
        ("", "", HOME),
    ],
)
def test_the_folder_follows_the_environment(monkeypatch, named, of_all_caches, expected):
    """A folder of all caches counts if it is absolute."""
    for name, value in (("FEDSIM_CACHE", named), ("XDG_CACHE_HOME", of_all_caches), ("FEDSIM_DATA", None)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert user_cache() == data_folder() == expected
    assert not Path("/named").exists()
