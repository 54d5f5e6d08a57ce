"""Sets in MNIST's files: headers, published ones by their checksums, others by name."""

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from fedsim import Scenario, run
from fedsim.errors import DataError, RunError, ScenarioError
from fedsim.learning import CIFAR10, CIFAR100, DATASETS, MNIST, FashionMNIST, IdxFiles
from fedsim.learning.data.images.idx import FILES, array_of, read_set
from tests.support.data_files import idx
from tests.support.run_folders import state_of
from tests.support.short_runs import of_learning

IMAGES = struct.pack(">IIII", 2051, 5, 28, 28) + bytes(5 * 784)
LABELS = struct.pack(">II", 2049, 5) + bytes(5)


def test_items_are_read_and_pairs_belong_together(tmp_path):
    assert array_of(IMAGES, 3, tmp_path).shape == (5, 28, 28)
    files = [tmp_path / name for name in ("images", "labels", "test-images", "test-labels")]
    content = dict(zip(files, (IMAGES, LABELS, IMAGES, LABELS), strict=True))
    assert [array.shape for array in read_set(files, content.__getitem__, 1)] == [(5, 28, 28, 1), (5,)] * 2
    content[files[3]] = LABELS[:-2] + bytes([7, 0])
    with pytest.raises(DataError, match=r"test-labels: label 7 in row 3; labels must lie in 0\.\.0"):
        read_set(files, content.__getitem__, 1)
    content[files[1]] = struct.pack(">II", 2049, 4) + bytes(4)
    with pytest.raises(DataError, match="has 5 images, and labels has 4 labels"):
        read_set(files, content.__getitem__, 1)


DAMAGED = {
    "another magic": (b"\x00\x00\x08\x01" + IMAGES[4:], "begins with '00000801'; allowed: '00000803'"),
    "empty": (b"", "begins with ''"),
    "cut within the header": (IMAGES[:9], "ends within its header of 16 bytes"),
    "cut within the images": (IMAGES[:-1], "claims 3936 bytes for 5 items, and it has 3935"),
    "longer": (IMAGES + b"x", "and it has 3937"),
    "no image": (struct.pack(">IIII", 2051, 0, 28, 28), "for 0 items"),
    "2^32 images": (struct.pack(">IIII", 2051, 2**32 - 1, 28, 28) + bytes(784), "for 4294967295 items"),
    "a side of 0": (struct.pack(">IIII", 2051, 5, 0, 28), "side of 0; allowed: 1 to 1024"),
    "a side of 2^32": (struct.pack(">IIII", 2051, 5, 2**32 - 1, 28), "side of 4294967295"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_header_is_named(damage, tmp_path):
    content, words = DAMAGED[damage]
    with pytest.raises(DataError, match=words):
        array_of(content, 3, tmp_path)


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


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Return a data folder with a small set that counts as MNIST."""
    write_set(tmp_path / "MNIST" / "raw")
    raw = tmp_path / "MNIST" / "raw"
    monkeypatch.setattr(MNIST, "published", {name: md5((raw / name).read_bytes()) for name in FILES})
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
    with pytest.raises(DataError, match=rf"damaged \(.*{packed[0]}.gz: .* packed by gzip: .*fetch it again"):
        MNIST().load(published)


@pytest.mark.parametrize("name", FILES)
def test_a_turned_bit_is_refused_with_both_checksums(name, published):
    file = published / "MNIST" / "raw" / name
    bits = bytearray(file.read_bytes())
    bits[-1] ^= 1
    file.write_bytes(bits)
    with pytest.raises(
        DataError, match=f"{name} has the MD5 {md5(bits)}, and the published one is {MNIST.published[name]}"
    ):
        MNIST().load(published)


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def mirror(tmp_path):
    """Return a folder and the address at which it is served."""
    (tmp_path / "served").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=tmp_path / "served"))
    Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path / "served", f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_a_download_asks_each_mirror_and_keeps_what_has_the_checksum(mirror, published, monkeypatch):
    served, address = mirror
    raw = published / "MNIST" / "raw"
    packed = {f"{name}.gz": gzip.compress((raw / name).read_bytes()) for name in FILES}
    for name, content in packed.items():
        (served / name).write_bytes(content)
    checksums = {name: md5(content) for name, content in packed.items()}
    monkeypatch.setattr(MNIST, "archives", {**checksums, f"{FILES[3]}.gz": "0" * 32})
    monkeypatch.setattr(MNIST, "mirrors", (f"{address}away/", address))
    other = published / "other"
    with pytest.raises(
        DataError, match=r"mnist cannot be downloaded .*away.*404.*; .*t10k-labels.*known hash: expected md5:0000"
    ):
        MNIST().download(other)
    assert not MNIST().available(other)
    monkeypatch.setattr(MNIST, "archives", checksums)
    MNIST().download(other)
    assert MNIST().load(other).digest == MNIST().load(published).digest
    monkeypatch.setattr(MNIST, "mirrors", ("http://127.0.0.1:9/",))
    MNIST().download(other)  # what is there is not fetched again
    with pytest.raises(DataError, match=r"cannot be downloaded to .*new: http://127\.0\.0\.1:9/train-images.* refused"):
        MNIST().download(published / "new")


@pytest.mark.parametrize(("part", "key"), [(CIFAR10, "labels"), (CIFAR100, "fine_labels")])
def test_photographs_come_from_pickles_with_the_published_checksums_alone(part, key, mirror, tmp_path, monkeypatch):
    served, address = mirror
    pixels = np.random.default_rng(0).integers(0, 256, (len(part.published), 2, 3, 32, 32), np.uint8)
    batches = {
        name: pickle.dumps({"data": of.reshape(2, -1), key: [place, 9 - place]})
        for place, (name, of) in enumerate(zip(part.published, pixels, strict=True))
    }
    name = next(iter(part.archives))
    with tarfile.open(served / name, "w:gz") as archive:
        for batch, content in batches.items():
            member = tarfile.TarInfo(f"{part().where()}/{batch}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(part, "mirrors", (address,))
    monkeypatch.setattr(part, "archives", {name: md5((served / name).read_bytes())})
    part().download(tmp_path)
    with pytest.raises(
        DataError, match=f"{next(iter(batches))} has the MD5 .*fetch it again: fedsim data {DATASETS.kind_of(part())}"
    ):
        part().load(tmp_path)
    monkeypatch.setattr(part, "published", {batch: md5(content) for batch, content in batches.items()})
    data = part().load(tmp_path)
    np.testing.assert_array_equal(data.train_x, np.moveaxis(pixels[:-1].reshape(-1, 3, 32, 32), 1, -1))
    np.testing.assert_array_equal(data.test_x, np.moveaxis(pixels[-1], 1, -1))
    assert (data.test_y.tolist(), data.classes) == ([len(batches) - 1, 10 - len(batches)], part.classes)


@pytest.mark.slow
def test_checksums_are_those_of_torchvision():
    from torchvision import datasets

    for part, of in ((MNIST, datasets.MNIST), (FashionMNIST, datasets.FashionMNIST)):
        assert ([*part.archives.items()], [*part.mirrors]) == (of.resources, of.mirrors)
    for part, of in ((CIFAR10, datasets.CIFAR10), (CIFAR100, datasets.CIFAR100)):
        assert part.archives == {of.filename: of.tgz_md5}
        assert part.mirrors[0] + of.filename == of.url
        assert part.published == dict([*of.train_list, *of.test_list])


def test_a_set_of_ones_own_is_read_by_name_and_may_be_pinned(tmp_path):
    write_set(tmp_path / "mine" / "raw")
    data = IdxFiles(name="mine", classes=3).load(tmp_path)
    assert (data.classes, data.shape) == (3, (1, 4, 5))
    assert IdxFiles(name="mine", classes=3, digest=data.digest).load(tmp_path).digest == data.digest
    write_set(tmp_path / "mine" / "raw", seed=1)
    with pytest.raises(DataError, match=f"has the digest [0-9a-f]{{32}}; allowed: {data.digest}"):
        IdxFiles(name="mine", classes=3, digest=data.digest).load(tmp_path)
    with pytest.raises(DataError, match=r"raw/train-labels-idx1-ubyte: label 2 in row \d+; labels must lie in 0\.\.1"):
        IdxFiles(name="mine", classes=2).load(tmp_path)
    with pytest.raises(DataError, match=r"idx-files is not in .*other/raw \(missing: .*train-images-idx3-ubyte"):
        IdxFiles(name="other").load(tmp_path)
    assert IdxFiles(name="mine").available(tmp_path)
    assert not IdxFiles(name="other").available(tmp_path)


@pytest.mark.parametrize("name", ["", "..", "a/b", "/a", ".hidden", "a\0b", "a" * 101])
def test_a_name_is_that_of_a_folder(name):
    with pytest.raises(ScenarioError, match="must be the name of a folder"):
        Scenario(name="page", learning={"data": {"kind": "idx-files", "name": name}}, selector="all")


def test_the_digest_of_the_data_is_recorded_and_other_data_do_not_go_on(tmp_path):
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


def test_a_fifth_file_tells_the_users_of_samples(tmp_path):
    write_set(tmp_path / "mine" / "raw")
    own, users = IdxFiles(name="mine", classes=3, users=True), tmp_path / "mine" / "raw" / "train-users.csv"
    assert (own.available(tmp_path), IdxFiles(name="mine", classes=3).available(tmp_path)) == (False, True)
    with pytest.raises(DataError, match=r"missing: mine/raw/train-users\.csv"):
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
