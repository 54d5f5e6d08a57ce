"""One seed, many named random streams.

Every random draw in fedsim comes from a stream with a name and keys, such as ``("fading", client, block)`` or
``("training", client, version)``. A draw is a function of (seed, name, keys) alone, never of how many draws
were made before it: another selector, cohort or deadline leaves every other draw untouched, so two policies
face common random numbers and their comparison is paired.

Three forms of the same idea:

* `Streams.generator` gives a NumPy generator (Philox4x64) for one key, for work that needs many draws.
* `GeneratorPool` gives the same generators for many keys, and uses the objects again for the next ones.
* `Streams.uniform` gives one uniform number per element of arrays of keys, for whole cohorts at once.

The counter-based generator behind `uniform` is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC 2011, section 3.3), checked in the tests against the authors' known answers.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import ArrayLike, NDArray

from fedsim.arrays import FloatArray, constant
from fedsim.errors import ScenarioError

Key = int | str
Schedule = list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]

_ROUNDS: Final = 10
_FIRST: Final = 0xD2511F53
_SECOND: Final = 0xCD9E8D57
_WORD: Final = np.dtype("<u8")
_HALF: Final = np.dtype("<u4")
_KEY_STEPS: Final = np.array([0x9E3779B9, 0xBB67AE85], dtype=_WORD)
# Without axes: operations with NumPy's scalars are slower.
_FIRST_WORD, _SECOND_WORD, _LOW, _UPPER, _TWENTY, _TWELVE = (
    np.array(word, dtype=_WORD) for word in (_FIRST, _SECOND, 0xFFFFFFFF, 32, 20, 12)
)
_ONE: Final = np.array(0x3FF0000000000000, dtype=_WORD)
"""Bits of the floating-point number 1; the lower 52 are those of the numbers between 1 and 2."""
_BELOW_ONE: Final = constant(1 - 2.0**-53)
_FLOAT: Final = np.dtype("<f8")
_SIGNED_WORD: Final = np.dtype("<i8")
_TWO_WORDS: Final = struct.Struct("<QQ").unpack
_CHUNK: Final = 2**13
"""Numbers drawn at once, so that their counters stay in a core's cache."""
_LARGEST: Final = 2**63
_FEW: Final = 200
"""Largest size for which drawing in the lanes of whole numbers is faster than drawing arrays."""
_MOST_LANES: Final = 600
"""Lanes up to which numbers of several streams are drawn together."""


def key_schedule(key: tuple[int, int]) -> Schedule:
    """Return the ten round keys of a Philox4x32 key, each two 32-bit words without axes."""
    words = (np.array(key, dtype=_WORD) + np.arange(_ROUNDS, dtype=_WORD)[:, None] * _KEY_STEPS) & _LOW
    return [(row[0, ...], row[1, ...]) for row in words]


def philox4x32(counter: Sequence[ArrayLike], schedule: Schedule) -> list[NDArray[np.uint64]]:
    """Return the four words, shape (n,) each, of Philox4x32-10 of n counters of four words under one key.

    Of second and fourth words, given or returned, the lower 32 bits count.
    """
    words = np.empty((6, *np.broadcast(*counter).shape), dtype=_WORD)
    words[0], words[2], words[1], words[3] = counter
    rows, size = words.reshape(3, -1), words[0].size
    (even, _, first, third), before, product = [
        (halves[0::2], halves[1::2], row[:size], row[size:]) for row, halves in zip(rows, rows.view(_HALF), strict=True)
    ]
    for even_key, odd_key in schedule:
        # The products lie in exchanged order, so that each upper word is beside the words that it meets.
        _, upper, of_third, of_first = product
        np.multiply(third, _SECOND_WORD, out=of_third)
        np.multiply(first, _FIRST_WORD, out=of_first)
        np.bitwise_xor(upper, before[0], out=even)
        first ^= even_key
        third ^= odd_key
        before, product = product, before
    return [first, before[2], third, before[3]]


class _PhiloxKey(ISeedSequence):
    """The key of a Philox4x64 generator, as NumPy asks for it.

    Given as a number, NumPy would fetch fresh entropy from the system before it takes the key, which costs more than
    the rest of making a generator.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[Any]:
        return np.frombuffer(self._key, dtype="<u8")


class Streams:
    """All random streams of one run."""

    def __init__(self, seed: int, path: tuple[Key, ...] = ()) -> None:
        if seed < 0:
            raise ScenarioError(f"seed: {seed!r} is not allowed; it must be a whole number of at least 0")
        self.seed, self._path = seed, path
        self._keys: dict[str, tuple[int, int]] = {}
        self._prefix = _text((seed, *path))[1:]
        self._schedules: dict[str, Schedule] = {}
        self._lanes = lru_cache(maxsize=128)(self._new_lanes)
        # Streams that were asked for the numbers of the same counters one after the other are drawn together; the
        # first of them leads. What was drawn last: the counters, the stream that leads, and the others' numbers.
        self._together: dict[str, tuple[str, ...]] = {}
        self._ready: tuple[bytes, int, str, dict[str, FloatArray]] = (b"", 0, "", {})

    def within(self, *path: Key) -> "Streams":
        """Return streams of the same run for one of several parts of a kind, such as an edge server."""
        return Streams(self.seed, (*self._path, *path))

    def digest(self, name: str, *keys: Key) -> bytes:
        """Return 16 bytes that identify a stream, equal on every machine and under every hash seed."""
        return hashlib.blake2b((self._prefix + _text((name, *keys))).encode(), digest_size=16).digest()

    def generator(self, name: str, *keys: Key) -> np.random.Generator:
        """Return a fresh generator at the start of the stream ``(name, *keys)``."""
        return np.random.Generator(np.random.Philox(cast(Any, _PhiloxKey(self.digest(name, *keys)))))

    def pool(self, name: str) -> "GeneratorPool":
        """Return generators of the streams ``(name, *keys)`` that are used again and again."""
        return GeneratorPool(hashlib.blake2b((self._prefix + _text((name,))).encode(), digest_size=16))

    def uniform(self, name: str, client: ArrayLike, block: ArrayLike = 0) -> FloatArray:
        """Return a number in the open interval (0, 1), of 52 random bits, for each (client, block)."""
        asked = np.asarray(client)
        if isinstance(block, int) and 0 <= block < _LARGEST and asked.size <= _FEW:
            words = asked if asked.dtype == _SIGNED_WORD else asked.astype(_WORD)
            numbers = self._of_few(name, words.tobytes(), asked.size, block)
            return numbers if asked.ndim == 1 else numbers.reshape(asked.shape)
        both = np.broadcast(asked, block)
        if both.size <= _FEW:
            words = np.empty((2, *both.shape), dtype=_WORD)
            words[0], words[1] = asked, block
            lanes = self._lanes((name,), both.size)
            return _in_lanes(words[0].tobytes(), words[1].tobytes(), lanes).reshape(both.shape)
        if both.size <= _CHUNK:
            return _in_arrays(asked, np.asarray(block), self._schedule(name)).reshape(both.shape)
        clients, blocks = (each.ravel() for each in np.broadcast_arrays(asked, block))
        parts = [slice(low, low + _CHUNK) for low in range(0, both.size, _CHUNK)]
        return np.concatenate([self.uniform(name, clients[part], blocks[part]) for part in parts]).reshape(both.shape)

    def _of_few(self, name: str, clients: bytes, size: int, block: int) -> FloatArray:
        """Return the numbers of a few clients in one block, shape (n,), and draw those of other streams with them."""
        clients_before, block_before, leader, ready = self._ready
        if block == block_before and clients == clients_before:
            if name in ready:
                return ready.pop(name)
            followers = self._together.get(leader, ())
            if name != leader and name not in followers:
                self._together[leader] = (*followers, name)
            return _in_lanes(clients, block, self._lanes((name,), size))
        if ready:
            # These were drawn in vain.
            self._together[leader] = tuple([other for other in self._together[leader] if other not in ready])
        names = (name, *self._together.get(name, ()))
        if size * len(names) > _MOST_LANES:
            names = (name,)
        lanes = self._lanes(names, size)
        numbers: FloatArray = _in_lanes(clients * len(names), block, lanes).reshape(len(names), size)
        # By their places: to go through an array takes longer than to take its rows.
        self._ready = clients, block, name, {other: numbers[i] for i, other in enumerate(names) if i}
        first: FloatArray = numbers[0]
        return first

    def _key(self, name: str) -> tuple[int, int]:
        """Return the two words of a stream's Philox key."""
        if name not in self._keys:
            digest = self.digest(name)
            self._keys[name] = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")
        return self._keys[name]

    def _new_lanes(self, names: tuple[str, ...], size: int) -> "_Lanes":
        return _Lanes(tuple([self._key(name) for name in names]), size)

    def _schedule(self, name: str) -> Schedule:
        if name not in self._schedules:
            self._schedules[name] = key_schedule(self._key(name))
        return self._schedules[name]


class GeneratorPool:
    """Generators of one name for many keys, made by `Streams.pool`: a new state costs less than a new generator."""

    def __init__(self, start: "hashlib.blake2b") -> None:
        self._start = start
        self._state: Any = {
            "bit_generator": "Philox",
            "state": {"counter": (0, 0, 0, 0), "key": (0, 0)},
            "buffer": (0, 0, 0, 0),
            "buffer_pos": 4,  # nothing of the buffer is left
            "has_uint32": 0,
            "uinteger": 0,
        }
        self._pool: list[tuple[np.random.Generator, np.random.Philox]] = []

    def generators(self, keys: Iterable[tuple[int, ...]]) -> list[np.random.Generator]:
        """Return a generator at the start of each key's stream; those of the call before are used again."""
        found, pool, start, state = [], self._pool, self._start, self._state
        inner = state["state"]
        for number, key in enumerate(keys):
            if number == len(pool):
                made = np.random.Philox(cast(Any, _PhiloxKey(bytes(16))))
                pool.append((np.random.Generator(made), made))
            generator, philox = pool[number]
            digest = start.copy()
            digest.update(b"\x1fi%d" * len(key) % key)  # see `_text`
            inner["key"] = _TWO_WORDS(digest.digest())
            philox.state = state
            found.append(generator)
        return found


def _text(parts: tuple[Key, ...]) -> str:
    """Return the text that stands for parts of a stream's name, with a separator before each."""
    return "".join([f"\x1fs{part}" if isinstance(part, str) else f"\x1fi{part}" for part in parts])


class Draws:
    """The keys of draws from one stream, of which there may be several in a round."""

    def __init__(self) -> None:
        self._last = self._times = 0

    def keys(self, number: int) -> tuple[int, ...]:
        """Return the keys of the next draw: the round, and for repeated draws of that round how many came before."""
        self._times = self._times + 1 if self._last == number else 0
        self._last = number
        return (number, self._times) if self._times else (number,)


class _Lanes:
    """Constants of Philox4x32-10 for counters that lie side by side in one whole number, 64 bits each."""

    def __init__(self, keys: tuple[tuple[int, int], ...], size: int) -> None:
        self.size = size * len(keys)
        self.ones = int.from_bytes(b"\x01\0\0\0\0\0\0\0" * self.size, "little")
        self.low, self.short, self.one = self.ones * 0xFFFFFFFF, self.ones * 0xFFFFF, self.ones * int(_ONE)
        words = np.array([key_schedule(key) for key in keys]).reshape(len(keys), 2 * _ROUNDS).T.repeat(size, axis=1)
        rows = [int.from_bytes(row.tobytes(), "little") for row in words]
        *first, ninth, tenth = zip(rows[0::2], rows[1::2], strict=True)
        self.keys, self.ninth, self.tenth = first, ninth[1], tenth[0]


def _in_lanes(client: bytes, block: bytes | int, lanes: _Lanes) -> FloatArray:
    """Return the numbers of a few counters, shape (n,): `_in_arrays` in the lanes of whole numbers.

    A product of two 32-bit words fits into a lane, so that one multiplication of whole numbers is one of all lanes.
    """
    low, short = lanes.low, lanes.short
    first, odd = int.from_bytes(client, "little"), 0
    blocks = lanes.ones * block if isinstance(block, int) else int.from_bytes(block, "little")
    # The bits of `second` and `odd` beyond the lower half of a lane have no meaning.
    second, third = blocks, blocks >> 32 & low
    for even_key, odd_key in lanes.keys:
        one, other = first * _FIRST, third * _SECOND
        first, second, third, odd = (
            ((other >> 32) ^ second ^ even_key) & low,
            other,
            ((one >> 32) ^ odd ^ odd_key) & low,
            one,
        )
    # Of the last two rounds only the words that the number depends on.
    second, third = third * _SECOND, ((first * _FIRST >> 32) ^ odd ^ lanes.ninth) & low
    last = third * _SECOND
    bits = ((((last >> 32) ^ second ^ lanes.tenth) & low) << 20) ^ (last >> 12 & short)
    return _above_zero(np.frombuffer((bits ^ lanes.one).to_bytes(8 * lanes.size, "little"), dtype=_FLOAT))


def _in_arrays(client: NDArray[Any], block: NDArray[Any], schedule: Schedule) -> FloatArray:
    """Return the numbers of n counters, shape (n,): the first 52 bits of each counter's Philox words."""
    bits, lower, *_ = philox4x32((client, block, block >> 32, 0), schedule)
    bits <<= _TWENTY
    lower &= _LOW
    lower >>= _TWELVE
    bits ^= lower
    bits ^= _ONE
    return _above_zero(bits.view(np.float64))


def _above_zero(numbers: FloatArray) -> FloatArray:
    """Return numbers of [1, 2), whose lower 52 bits are b each, moved to ``(b + 1/2) / 2**52``, which is exact."""
    moved: FloatArray = numbers - _BELOW_ONE
    return moved
