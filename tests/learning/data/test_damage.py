"""Damaged files of data sets end in a sentence with the file's name, or are read where they still are of their form."""

from functools import partial

import pytest

from fedsim.errors import DataError
from fedsim.learning import DATASETS
from tests.support.data_files import WRITERS, write_femnist, write_speech_commands, write_vectors
from tests.support.random_texts import damaged
from tests.support.seeded_draws import Seeded, distinct

OPTIONS = {
    "mind": {"samples": "clicks", "glove": "vectors.txt"},
    "omniglot": {"side": 4},
    "tiny-shakespeare": {"length": 8, "stride": 1},
}


SMALLER = {"femnist": partial(write_femnist, samples=2), "speech-commands": partial(write_speech_commands, speakers=2)}


@pytest.mark.parametrize(("number", "first"), [(3, 0), pytest.param(40, 1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", WRITERS)
def test_damaged_files(kind, number, first, tmp_path):
    SMALLER.get(kind, WRITERS[kind])(tmp_path)
    write_vectors(tmp_path)
    part = DATASETS.make({"kind": kind, **OPTIONS.get(kind, {})})
    for path in part.files(tmp_path)[:3]:
        content = path.read_bytes()

        def changed(seed, name=path.name, content=content):
            return damaged(Seeded(f"{name} {seed}"), content)

        for seed, other in [(None, b""), *distinct(changed, number, first)]:
            path.write_bytes(other)
            said = path.name
            try:
                part.read(tmp_path)
            except DataError as error:
                said = str(error)
            assert path.name in said, (path, seed)
            assert len(said) < 1000, (path, seed)
        path.write_bytes(content)
