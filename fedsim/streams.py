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
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import ArrayLike, NDArray

from fedsim.arrays import FloatArray, constant
from fedsim.errors import ScenarioError

Key = int | str

_ROUNDS: Final = 10
_FIRST: Final = 0xD2511F53
_SECOND: Final = 0xCD9E8D57
_MULTIPLIERS: Final = np.array([[_FIRST], [_SECOND]], dtype=np.uint64)
_KEY_STEPS: Final = np.array([0x9E3779B9, 0xBB67AE85], dtype=np.uint64)
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_TWENTY: Final = np.uint64(20)
_TWELVE: Final = np.uint64(12)
_ONE: Final = np.uint64(0x3FF0000000000000)
"""Bits of the floating-point number 1; the lower 52 are those of the numbers between 1 and 2."""
_BELOW_ONE: Final = constant(1 - 2.0**-53)
_WORD: Final = np.dtype("<u8")
_FLOAT: Final = np.dtype("<f8")
_SIGNED_WORD: Final = np.dtype("<i8")
_TWO_WORDS: Final = struct.Struct("<QQ").unpack
_CHUNK: Final = 2**13
"""Numbers drawn at once, so that their counters stay in a core's cache."""
_LARGEST: Final = 2**63
_FEW: Final = 600
"""Largest size for which drawing in the lanes of whole numbers is faster than drawing arrays."""


def key_schedule(key: tuple[int, int]) -> NDArray[np.uint64]:
    """Return the ten round keys of a Philox4x32 key of two 32-bit words, shape (10, 2, 1)."""
    steps = np.arange(_ROUNDS, dtype=np.uint64)[:, None]
    return ((np.array(key, dtype=np.uint64) + steps * _KEY_STEPS) & _LOW)[:, :, None]


def philox4x32(counter: NDArray[np.uint64], schedule: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return Philox4x32-10 of many counters under one key."""
    even, odd = counter[0::2].copy(), counter[1::2].copy()
    _rounds(even, odd, schedule)
    return np.stack([even[0], odd[0], even[1], odd[1]])


def _rounds(even: NDArray[np.uint64], odd: NDArray[np.uint64], schedule: NDArray[np.uint64]) -> None:
    """Turn the words of counters into those of Philox4x32-10, in place."""
    product = np.empty_like(even)
    crossed = product[::-1]
    for round_key in schedule:
        np.multiply(_MULTIPLIERS, even, out=product)
        np.right_shift(crossed, _HALF, out=even)
        np.bitwise_xor(even, odd, out=even)
        np.bitwise_xor(even, round_key, out=even)
        np.bitwise_and(crossed, _LOW, out=odd)


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
        self._schedules: dict[str, NDArray[np.uint64]] = {}
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
        counted = np.asarray(block)
        both = np.empty((2, *np.broadcast(asked, counted).shape), dtype=np.uint64)
        both[0], both[1] = asked, counted
        clients, blocks = both
        if clients.size <= _FEW:
            words = clients.tobytes(), blocks.tobytes()
            return _in_lanes(*words, self._lanes((name,), clients.size)).reshape(clients.shape)
        numbers = np.empty(clients.size)
        flat_clients, flat_blocks, schedule = clients.ravel(), blocks.ravel(), self._schedule(name)
        for low in range(0, numbers.size, _CHUNK):
            part = slice(low, low + _CHUNK)
            numbers[part] = _uniform(flat_clients[part], flat_blocks[part], schedule)
        return numbers.reshape(clients.shape)

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
        if size * len(names) > _FEW:
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

    def _schedule(self, name: str) -> NDArray[np.uint64]:
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
        words = np.stack([key_schedule(key)[:, :, 0] for key in keys], axis=2).repeat(size, axis=2)
        rows = [int.from_bytes(row.tobytes(), "little") for row in words.astype(_WORD).reshape(2 * _ROUNDS, self.size)]
        *first, ninth, tenth = zip(rows[0::2], rows[1::2], strict=True)
        self.keys, self.ninth, self.tenth = first, ninth[1], tenth[0]


def _in_lanes(client: bytes, block: bytes | int, lanes: _Lanes) -> FloatArray:
    """Return the numbers of a few counters, shape (n,): `_uniform` in the lanes of whole numbers.

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


def _uniform(client: NDArray[np.uint64], block: NDArray[np.uint64], schedule: NDArray[np.uint64]) -> FloatArray:
    """Return the numbers of one chunk: the first 52 bits of each counter's Philox words."""
    even, odd = np.empty((2, 2, client.size), dtype=np.uint64)
    even[0], odd[1] = client, 0
    np.bitwise_and(block, _LOW, out=odd[0])
    np.right_shift(block, _HALF, out=even[1])
    _rounds(even, odd, schedule)
    bits, lower = even[0], odd[0]
    bits <<= _TWENTY
    lower >>= _TWELVE
    bits ^= lower
    bits ^= _ONE
    return _above_zero(bits.view(np.float64))


def _above_zero(numbers: FloatArray) -> FloatArray:
    """Return numbers of [1, 2), whose lower 52 bits are b each, moved to ``(b + 1/2) / 2**52``, which is exact."""
    return np.asarray(numbers - _BELOW_ONE)
