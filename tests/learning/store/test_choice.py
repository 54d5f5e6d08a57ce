"""Which store a run uses."""

import pytest

from fedsim.errors import FedsimError, StoreError, StoreWarning
from fedsim.learning.store.choice import default_folder, open_store, parse_size, show_size
from fedsim.learning.store.contracts import MemoryStore, NoStore
from fedsim.learning.store.disk import DEFAULT_LIMIT_BYTES, DiskStore


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDSIM_CACHE", str(tmp_path / "cache"))
    for name in ("FEDSIM_STORE", "FEDSIM_STORE_LIMIT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("asked", [None, True])
def test_by_default_it_lies_in_the_users_cache(asked, tmp_path):
    store = open_store(asked)
    assert isinstance(store, DiskStore)
    assert store.folder == tmp_path / "cache" / "store" == default_folder()
    assert store.limit_bytes == DEFAULT_LIMIT_BYTES == 5 * 1024**3


def test_the_environment_names_another_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDSIM_STORE", str(tmp_path / "named"))
    assert open_store().folder == tmp_path / "named" == default_folder()
    assert open_store(tmp_path / "asked").folder == tmp_path / "asked"
    assert isinstance(open_store(False), NoStore)


@pytest.mark.parametrize("asked", [None, False, "none"])
def test_none_is_a_store_of_this_run_alone(asked, monkeypatch):
    monkeypatch.setenv("FEDSIM_STORE", "none")
    assert isinstance(open_store(asked), NoStore)
    assert open_store(asked) is not open_store(asked)
    assert default_folder() is None


def test_a_folder_has_one_store_in_a_process_and_a_store_is_itself(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    store, memory = open_store("kept"), MemoryStore()
    assert open_store(tmp_path / "kept") is store
    assert open_store(tmp_path / "other") is not store
    assert open_store(memory) is memory


def test_a_folder_that_was_removed_is_made_again(tmp_path):
    store = open_store(tmp_path / "kept")
    store.put_records({"a": {"loss": 1.0}})
    (tmp_path / "kept").rename(tmp_path / "gone")
    again = open_store(tmp_path / "kept")
    again.put_records({"b": {"loss": 1.0}})
    assert again.records(["a", "b"]) == {"b": {"loss": 1.0}}


def test_the_environment_sets_the_limit(monkeypatch, tmp_path):
    store = open_store(tmp_path)
    monkeypatch.setenv("FEDSIM_STORE_LIMIT", "1.5 MB")
    assert open_store(tmp_path) is store
    assert store.limit_bytes == 1_500_000
    monkeypatch.setenv("FEDSIM_STORE_LIMIT", "much")
    with pytest.raises(FedsimError, match="FEDSIM_STORE_LIMIT: 'much' is not allowed"):
        open_store(tmp_path)


@pytest.mark.parametrize("folder", ["file", "file/store"])
def test_a_named_folder_that_cannot_be_used_is_an_error(folder, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    said = r"store: .*file.* cannot be used .* it must be a folder"
    with pytest.raises(StoreError, match=said):
        open_store(tmp_path / folder)
    monkeypatch.setenv("FEDSIM_STORE", str(tmp_path / folder))
    with pytest.raises(StoreError, match=said):
        open_store()


def test_a_cache_that_cannot_be_used_is_a_warning(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.warns(StoreWarning, match="cannot be used .* Results are kept as long as the run lasts"):
        store = open_store()
    assert isinstance(store, NoStore)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5 GiB", 5 * 1024**3), ("500 MB", 500_000_000), ("500MB", 500_000_000), (" 0 B ", 0), ("1.5 kib", 1536)],
)
def test_sizes(text, expected):
    assert parse_size(text, "--to") == expected


@pytest.mark.parametrize("text", ["", "5", "GiB", "-1 GB", "1e9 B", "5 GigaB", "5 GB more", "nan GB"])
def test_what_is_no_size(text):
    with pytest.raises(FedsimError, match=r"--to: .* is not allowed; it must be a number and a unit"):
        parse_size(text, "--to")


@pytest.mark.parametrize("text", ["0 B", "1023 B", "1.0 KiB", "2.5 MiB", "5.0 GiB", "3.0 TiB"])
def test_shown_sizes_are_sizes(text):
    assert show_size(parse_size(text, "size")) == text
