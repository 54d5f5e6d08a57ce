"""One seed, many streams: known answers, definitions written out, and independence."""

import hashlib
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from fedsim.errors import ScenarioError
from fedsim.streams import Streams, key_schedule, philox4x32

names = st.text("aZ0-_ \x1f\u00e9\u6f22\U0001f600", min_size=1, max_size=12)
clients = st.integers(0, 2**32 - 1)
blocks = st.integers(0, 2**63 - 1)

# Random123 (Salmon et al. 2011), file kat_vectors, philox4x32 with 10 rounds.
KNOWN_ANSWERS = [
    ([0] * 4, (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], (0xA4093822, 0x299F31D0), "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_authors_known_answers(counter, key, answer):
    words = philox4x32(counter, key_schedule(key))
    assert " ".join(f"{word.item() & 0xFFFFFFFF:08x}" for word in words) == answer


@given(st.integers(0, 2**64), names, st.lists(st.one_of(st.integers(0, 2**63), names), max_size=3))
def test_a_generator_is_numpys_philox_under_the_hash_of_its_name(seed, name, keys):
    """The definition, written out: a hash of seed, path, name and keys, and NumPy's own way from a key."""
    parts = (seed, "edge", 3, "part", "3", name, *keys)
    text = "\x1f".join(("s" if isinstance(part, str) else "i") + str(part) for part in parts)
    key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
    drawn = Streams(seed).within("edge", 3).within("part", "3").generator(name, *keys)
    plain = np.random.Generator(np.random.Philox(key=key))
    for rng in (drawn, pickle.loads(pickle.dumps(drawn))):  # noqa: S301 - its own
        again = np.random.Generator(np.random.Philox(key=key))
        assert rng.bit_generator.state["state"]["key"].tolist() == plain.bit_generator.state["state"]["key"].tolist()
        for draw in (
            lambda g: g.integers(2**63),
            lambda g: g.permutation(7).tolist(),
            lambda g: g.random(),
            lambda g: g.standard_normal(3).tolist(),
            lambda g: g.integers(5, dtype=np.uint8),
        ):
            assert draw(rng) == draw(again)


@given(st.integers(0, 2**64), names, st.lists(st.lists(st.tuples(clients, blocks), max_size=4), max_size=3))
def test_generators_of_a_pool_are_those_of_their_keys_whatever_was_drawn_from_them_before(seed, name, calls):
    """The definition is `Streams.generator`; draws of 8, 32 and 64 bits leave numbers of all kinds in a buffer."""
    streams = Streams(seed).within("edge", 2)
    pool = streams.pool(name)
    for keys in calls:
        found = pool.generators(keys)
        assert len(found) == len(keys)
        for generator, key in zip(found, keys, strict=True):
            plain = streams.generator(name, *key)
            assert repr(generator.bit_generator.state) == repr(plain.bit_generator.state)
            for draw in (
                lambda g: g.integers(2**63),
                lambda g: g.permutation(7).tolist(),
                lambda g: g.integers(5, dtype=np.uint8),
                lambda g: g.integers(7, dtype=np.uint32),
                lambda g: g.random(),
            ):
                assert draw(generator) == draw(plain)


@given(st.integers(0, 2**32), names, names, st.lists(st.tuples(clients, blocks), min_size=1, max_size=20))
def test_a_draw_depends_on_its_key_alone(seed, name, other, keys):
    """Whoever else is asked, in whatever order: adding a client leaves the others' draws alone.

    Streams that are asked for numbers of the same clients and block are drawn together from then on.
    """
    streams = Streams(seed)
    client, block = (np.array(column, dtype=np.uint64) for column in zip(*keys, strict=True))
    together = streams.uniform(name, client, block)
    alone = [float(streams.uniform(name, c, b)) for c, b in keys]
    assert together.tolist() == alone
    assert np.all((together > 0) & (together < 1))
    assert streams.uniform(name, client[:, None], block).diagonal().tolist() == alone
    for asked, number in ((name, 7), (other, 7), (name, 8), (other, 8), (name, 9), (name, 7), (other, 7)):
        assert streams.uniform(asked, client, number).tolist() == Streams(seed).uniform(asked, client, number).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("axis", ["client", "block"])
def test_draws_are_uniform_and_uncorrelated_along_each_key(axis):
    size = 200_000
    index = np.arange(size)
    u = Streams(1).uniform("test", index if axis == "client" else 5, index if axis == "block" else 5)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    lagged = np.corrcoef(u[:-1], u[1:])[0, 1]
    assert abs(lagged) < 4 / np.sqrt(size), "four standard errors of a correlation of independent draws"


@pytest.mark.parametrize("size", [1, 2, 31, 200, 201])
@pytest.mark.parametrize("block", [0, 7, 2**62 + 2**33 + 5])
def test_a_few_numbers_are_the_first_of_many(size, block):
    """Few numbers are drawn in the lanes of whole numbers, many as arrays of words; each depends on its key alone."""
    many = np.random.default_rng(size).integers(0, 2**32, 1000)
    blocks = block + np.arange(1000)
    streams = Streams(4)
    assert streams.uniform("a", many[:size], block).tolist() == streams.uniform("a", many, block)[:size].tolist()
    assert (
        streams.uniform("a", many[:size], blocks[:size]).tolist() == streams.uniform("a", many, blocks)[:size].tolist()
    )


def test_few_and_many_numbers_are_philox_of_their_counters():
    """A number is the first 52 bits of counter (client, low block, high block, 0) under the stream's key."""
    streams, client, block = Streams(4).within("edge", 0), np.array([0, 5, 2**32 - 1], dtype=np.uint64), 2**40 + 3
    key = tuple(int.from_bytes(streams.digest("a")[low : low + 4], "little") for low in (0, 4))
    counter = np.array([client, [block % 2**32] * 3, [block >> 32] * 3, [0] * 3], dtype=np.uint64)
    first, second, *_ = ((word & np.uint64(2**32 - 1)).tolist() for word in philox4x32(counter, key_schedule(key)))
    expected = [((one << 20 ^ other >> 12) + 0.5) / 2**52 for one, other in zip(first, second, strict=True)]
    assert streams.uniform("a", client, block).tolist() == expected


def test_bad_seed_is_refused():
    with pytest.raises(ScenarioError, match="seed: -1 is not allowed"):
        Streams(-1)
