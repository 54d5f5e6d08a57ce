"""Small files in the forms of public data sets, each with at least 121 training samples."""

import gzip
import io
import json
import struct
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

WORDS: Final = (
    *("the", "model", "learns", "from", "news", "about", "games", "and", "music", "in", "a", "far", "town"),
    *("while", "rain", "falls", "on", "green", "hills"),
)
CHARACTERS: Final = 8
DRAWERS: Final = 20


def draws() -> np.random.Generator:
    return np.random.default_rng(0)


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def idx(array: NDArray[np.uint8]) -> bytes:
    """Return an array of bytes as an IDX file: two zeros, 8 for bytes, the number of axes, their lengths, the items."""
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_emnist(folder: Path) -> None:
    rng = draws()
    for division in ("byclass", "bymerge", "letters"):
        for part, size in (("train", 130), ("test", 20)):
            name = f"EMNIST/raw/emnist-{division}-{part}"
            labels = rng.integers(1, 27, size, dtype=np.uint8)
            written(folder / f"{name}-images-idx3-ubyte", idx(rng.integers(0, 256, (size, 4, 5), dtype=np.uint8)))
            written(folder / f"{name}-labels-idx1-ubyte", idx(labels))


def write_femnist(folder: Path, samples: int = 20) -> None:
    """Write 8 writers with some training samples each in two files; the first pixel is the writer's number over 255."""
    for part, size in (("train", samples), ("test", 3)):
        for file in range(2):
            names = [f"f{file}{k:03}_{k}" for k in range(4)]
            users = {
                name: {
                    "x": [[(4 * file + k) / 255, *[1.0] * 700, *[0.0] * 83]] * size,
                    "y": [(k + i) % 62 for i in range(size)],
                }
                for k, name in enumerate(names)
            }
            content = {"users": names, "num_samples": [size] * 4, "user_data": users}
            written(folder / f"femnist/{part}/all_data_{file}.json", json.dumps(content).encode())


def png(pixels: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).convert("1").save(file, "PNG")
    return file.getvalue()


def write_omniglot(folder: Path) -> None:
    """Write 8 characters of 2 alphabets by 20 drawers: white, black rows by number, one more in the second set."""
    for part in ("small1", "small2"):
        root, file = f"images_background_{part}", io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{root}/", b"")
            for character in range(CHARACTERS):
                pixels = np.full((105, 105), 255, dtype=np.uint8)
                pixels[: 15 * (character % 4 + 1) + (part == "small2")] = 0
                content = png(pixels)
                for drawer in range(1, DRAWERS + 1):
                    alphabet = "Greek" if character < 4 else "Latin"
                    name = f"{root}/{alphabet}/character{character % 4 + 1:02}/{character:04}_{drawer:02}.png"
                    archive.writestr(name, content)
        written(folder / f"omniglot/{root}.zip", file.getvalue())


def wav(sound: NDArray[np.float64], rate: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(np.rint(sound * 2**15).astype("<i2").tobytes())
    return file.getvalue()


def write_speech_commands(folder: Path, speakers: int = 10) -> None:
    """Write three words by each speaker, five times; of the last speaker four are for testing and one is not used."""
    place, tone = folder / "SpeechCommands/speech_commands_v0.02", np.sin(np.arange(800) / 3)
    test, validation = [], []
    for number, word in enumerate(("down", "go", "up")):
        content = wav((number + 1) / 8 * tone, 16_000)
        for speaker in range(speakers):
            for take in range(5):
                name = f"{word}/{speaker:08x}_nohash_{take}.wav"
                written(place / name, content)
                if speaker == speakers - 1:
                    (test if take < 4 else validation).append(name)
    written(place / "_background_noise_/noise.wav", b"no recording")
    written(place / "testing_list.txt", "\n".join(test).encode())
    written(place / "validation_list.txt", "\n".join(validation).encode())


def write_spoken_digits(folder: Path) -> None:
    """Write features of two speakers, ten digits, 12 takes of each."""
    speaker, digit, take = (axis.reshape(-1) for axis in np.mgrid[:2, :10, :12])
    rng = draws()
    file = io.BytesIO()
    arrays: dict[str, Any] = {"label": digit.astype(np.uint8), "speaker": speaker.astype(np.uint8), "take": take}
    logmel = rng.integers(0, 256, (take.size, 32, 32), dtype=np.uint8)
    np.savez_compressed(file, logmel=logmel, speaker_names=np.array(["a", "b"]), **arrays)
    written(folder / "fsdd/fsdd_logmel.npz", file.getvalue())


def sentence(rng: np.random.Generator) -> str:
    return " ".join(rng.choice(WORDS, rng.integers(3, 9)))


def write_mind(folder: Path) -> None:
    """Write 200 news of three topics, and the histories of 20 readers, of which each has a first line twice."""
    rng = draws()
    for name in ("MINDsmall_train", "MINDlarge_train"):
        topics = ("sports", "music", "news")
        news = [
            f"N{i}\t{topics[i % 3]}\tpart\t{sentence(rng).title()} {topics[i % 3]}!\tabstract\turl\t[]\t[]"
            for i in range(200)
        ]
        read = [" ".join(f"N{(10 * i + k) % 200}" for k in range(10)) for i in range(20)]
        lines = [f"{i}\tU{i % 20}\t11/13/2019 8:36:57 AM\t{read[i % 20]}\tN1-0" for i in range(25)]
        written(folder / name / "news.tsv", "\n".join(news).encode())
        written(folder / name / "behaviors.tsv", "\n".join(lines).encode())


def write_reviews(folder: Path) -> None:
    """Write 200 reviews by 10 reviewers in the older form, and in the newer one, packed."""
    rng = draws()
    old = [
        {"overall": float(i % 5 + 1), "reviewerID": f"A{i % 10}", "asin": "B0", "reviewText": sentence(rng)}
        for i in range(200)
    ]
    new = [{"rating": r["overall"], "user_id": r["reviewerID"], "title": "", "text": r["reviewText"]} for r in old]
    written(folder / "amazon/Toys_and_Games_5.json", "\n".join(map(json.dumps, old)).encode())
    written(folder / "amazon/two.jsonl.gz", gzip.compress("\n".join(map(json.dumps, [*new, new[0]])).encode(), mtime=0))


def write_vectors(folder: Path) -> None:
    rng = draws()
    for name, width in (("vectors.txt", 3), ("other.txt", 4)):
        lines = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=width))}" for word in ("unseen", *WORDS)]
        written(folder / name, "\n".join(lines).encode())


def write_plays(folder: Path) -> None:
    speech = "To be or not to be, that is the question.\nWhether tis nobler\n"
    text = "\n".join(f"{name}:\n{speech}" for name in ("Hamlet", "Ghost", "Hamlet", "Queen", "Hamlet"))
    written(folder / "tinyshakespeare/input.txt", f"{text}\nLord:\nAy.\n".encode())


WRITERS: Final[dict[str, Callable[[Path], None]]] = {
    "emnist": write_emnist,
    "femnist": write_femnist,
    "omniglot": write_omniglot,
    "spoken-digits": write_spoken_digits,
    "speech-commands": write_speech_commands,
    "mind": write_mind,
    "amazon-reviews": write_reviews,
    "tiny-shakespeare": write_plays,
}
"""Kinds of data sets in files that fedsim does not download."""


def write_data_sets(folder: Path) -> None:
    for write in (*WRITERS.values(), write_vectors):
        write(folder)
