"""Sets in MNIST's files: published ones by their checksums, others by name."""

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from fedsim import Scenario, run
from fedsim.errors import DataError, RunError, ScenarioError
from fedsim.learning import DATASETS, MNIST, FashionMNIST, IdxFiles
from fedsim.learning.data.idx import FILES, md5
from fedsim.learning.models.numerics import numerics
from tests.support.data_files import idx
from tests.support.run_folders import state_of
from tests.support.short_runs import of_learning


def write_set(folder, seed=0, classes=3):
    """Write a small set; return its arrays in the order of the files."""
    draws = np.random.default_rng(seed)
    arrays = []
    folder.mkdir(parents=True, exist_ok=True)
    for size in (30, 12):
        arrays += [draws.integers(0, 256, (size, 4, 5), np.uint8), draws.integers(0, classes, size, np.uint8)]
    for name, array in zip(FILES, arrays, strict=True):
        (folder / name).write_bytes(idx(array))
    return arrays


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Return a data folder with a small set that counts as MNIST."""
    write_set(tmp_path / "MNIST" / "raw")
    monkeypatch.setattr(MNIST, "published", {name: md5(tmp_path / "MNIST" / "raw" / name) for name in FILES})
    return tmp_path


def test_what_is_read_is_what_the_files_hold(published):
    arrays = write_set(published / "MNIST" / "raw")
    data = MNIST().load(published)
    found = (data.train_x[..., 0], data.train_y, data.test_x[..., 0], data.test_y)
    assert all(np.array_equal(one, written) for one, written in zip(found, arrays, strict=True))
    assert MNIST(train_limit=7).load(published).train_y.shape == (7,)


@pytest.mark.parametrize("packed", [FILES, FILES[1:2]])
def test_files_are_read_packed_as_they_are_published(packed, published):
    raw, plain = published / "MNIST" / "raw", MNIST().load(published).digest
    for name in packed:
        (raw / f"{name}.gz").write_bytes(gzip.compress((raw / name).read_bytes()))
        (raw / name).unlink()
    assert MNIST().available(published)
    assert MNIST().load(published).digest == plain
    (raw / f"{packed[0]}.gz").write_bytes(gzip.compress(b"another")[:-3])
    with pytest.raises(DataError, match=rf"damaged \({packed[0]}.gz: cannot be unpacked: .*fetch it again"):
        MNIST().load(published)


@pytest.mark.parametrize("name", FILES)
def test_a_turned_bit_is_refused_with_both_checksums(name, published):
    file = published / "MNIST" / "raw" / name
    bits = bytearray(file.read_bytes())
    bits[-1] ^= 1
    file.write_bytes(bits)
    found = hashlib.md5(bits, usedforsecurity=False).hexdigest()
    with pytest.raises(
        DataError, match=f"{name} has the MD5 {found}, and the published one is {MNIST.published[name]}"
    ):
        MNIST().load(published)


@pytest.mark.slow
def test_a_download_asks_each_mirror_for_the_archive_with_its_checksum(tmp_path, monkeypatch):
    """The list of archives and checksums is torchvision's own."""
    from torchvision import datasets
    from torchvision.datasets import utils

    mirrored = datasets.MNIST

    asked = []

    def fetch(url, download_root, filename, md5):
        asked.append((url, filename, md5))
        if url.startswith(mirrored.mirrors[0]):
            raise OSError("away")
        Path(download_root).mkdir(parents=True, exist_ok=True)
        (Path(download_root) / filename.removesuffix(".gz")).write_text("")

    monkeypatch.setattr(utils, "download_and_extract_archive", fetch)
    MNIST().download(tmp_path)
    FashionMNIST().download(tmp_path)
    assert {(name, md5) for _, name, md5 in asked} == {*mirrored.resources, *datasets.FashionMNIST.resources}
    assert MNIST().available(tmp_path)
    asked.clear()
    MNIST().download(tmp_path)
    assert not asked, "what is there is not fetched again"
    monkeypatch.setattr(mirrored, "mirrors", mirrored.mirrors[:1])
    with pytest.raises(DataError, match=r"cannot be downloaded .*: away"):
        MNIST().download(tmp_path / "other")


@pytest.mark.data
def test_the_published_sets_have_their_checksums(data_dir):
    """Those of the archives stand in torchvision; the files in them were unpacked from archives that have them."""
    for part in (MNIST, FashionMNIST):
        assert {name: md5(data_dir / part.folder / name) for name in FILES} == part.published


def test_a_set_of_ones_own_is_read_by_name_and_may_be_pinned(tmp_path):
    write_set(tmp_path / "mine" / "raw")
    data = IdxFiles(name="mine", classes=3).load(tmp_path)
    assert (data.classes, data.shape) == (3, (1, 4, 5))
    assert IdxFiles(name="mine", classes=3, digest=data.digest).load(tmp_path).digest == data.digest
    write_set(tmp_path / "mine" / "raw", seed=1)
    with pytest.raises(DataError, match=f"has the digest [0-9a-f]{{32}}; allowed: {data.digest}"):
        IdxFiles(name="mine", classes=3, digest=data.digest).load(tmp_path)
    with pytest.raises(DataError, match=r"labels must lie in 0\.\.1"):
        IdxFiles(name="mine", classes=2).load(tmp_path)
    with pytest.raises(DataError, match=r"other is not in .*train-images-idx3-ubyte"):
        IdxFiles(name="other").load(tmp_path)
    assert IdxFiles(name="mine").available(tmp_path)
    assert not IdxFiles(name="other").available(tmp_path)


@pytest.mark.parametrize("name", ["", "..", "a/b", "/a", ".hidden", "a\0b", "a" * 101])
def test_a_name_is_that_of_a_folder(name):
    with pytest.raises(ScenarioError, match="must be the name of a folder"):
        Scenario(name="page", learning={"data": {"kind": "idx-files", "name": name}}, selector="all")


def test_the_digest_of_the_data_is_recorded_and_other_data_do_not_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr("fedsim.results.recording.draw", lambda *_, **__: None)
    write_set(tmp_path / "mine" / "raw")
    own = {"kind": "idx-files", "name": "mine", "classes": 3}
    learning = {"data": own, "model": {"kind": "mlp", "hidden": [4]}, "split": "equal"}
    scenario = of_learning(learning, clients=3, rounds=3, devices={"compute": "zero"})

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scenario, tmp_path / "run", data_dir=tmp_path, store=False, on_round=stop)
    digest = DATASETS.make(own).load(tmp_path).digest
    assert state_of(tmp_path / "run")["data"] == digest
    write_set(tmp_path / "mine" / "raw", seed=1)
    with pytest.raises(RunError, match=f"begun with other data or parts .digest {digest}; now .*--force"):
        run(scenario, tmp_path / "run", data_dir=tmp_path, store=False)


def test_digests_of_results_hold_fedsims_release(monkeypatch):
    before = numerics()
    monkeypatch.setattr("fedsim.learning.models.numerics.version", lambda _: "99.0")
    assert "fedsim 99.0 " in numerics()
    assert numerics() != before


def test_a_fifth_file_tells_the_users_of_samples(tmp_path):
    write_set(tmp_path / "mine" / "raw")
    own, users = IdxFiles(name="mine", classes=3, users=True), tmp_path / "mine" / "raw" / "train-users.csv"
    assert (own.available(tmp_path), IdxFiles(name="mine", classes=3).available(tmp_path)) == (False, True)
    with pytest.raises(DataError, match=r"train-users\.csv missing"):
        own.load(tmp_path)
    users.write_text("user,hand\n" + "".join(f"{row // 7},left\n" for row in range(30)))
    assert own.load(tmp_path).train_users.tolist() == [row // 7 for row in range(30)]
    assert IdxFiles(name="mine", classes=3).load(tmp_path).train_users is None
    assert own.provides == {"users"}
    wrong = (
        ("writer\n1\n", "there is no column 'user'"),
        ("user\n1\n2\n", "it has 2 rows; there must be one for each of the 30 training samples"),
        ("user\nx\n", "user, row 1: 'x' is not allowed"),
    )
    for text, said in wrong:
        users.write_text(text)
        with pytest.raises(DataError, match=said):
            own.load(tmp_path)
