"""The contract of a network, checked by building its links and sending over them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

import numpy as np
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import MODEL_BITS, SITES
from fedsim.clock import Environment
from fedsim.errors import AuditError, ContractError, ScenarioError
from fedsim.network import NETWORKS, Links, Network
from fedsim.network.contracts import Directions, SharedMedium, Transfer, build_links
from fedsim.rounds.audit.audit import check_book
from fedsim.streams import Streams

T = TypeVar("T")

_SLACK: Final = 1e-9
_STARTS_APART_S: Final = 977.0
"""Between the starts of transfers with different draws, so that they meet different fading blocks."""


def check_network(
    network: Network | str | Mapping[str, Any],
    *,
    clients: int = 12,
    bits: float = 1e7,
    draws: int = 48,
    rtol: float = 0.1,
    radius_m: float = 100.0,
    seed: int = 0,
) -> None:
    """Check that a network keeps the contracts of `Network`, `Links` and `SharedMedium`; return nothing if it does.

    Its links are built for clients in a disc around the base station. For every direction

    * durations are arrays of float64, one for each client of the call, at least 0 and no NaN,
    * they are functions of (client, draw, start, bits): the other clients of a call, their order, earlier calls and
      another object built from the same seed change nothing,
    * more bits never take less time, and bits have no effect where ``requires`` does not name ``"model-bits"``,
    * their mean over many draws agrees with what is expected, and both are infinite for the same clients,
    * no array of the caller is changed.

    In every shared direction the medium carries transfers to their ends: bits sent never fall and are all of them at
    the end, a cancelled transfer sends no more, and the work in the books adds up.

    Parameters
    ----------
    network : an object, or a kind or table as in a scenario
    clients : number of clients; at least 2
    bits : size of the usual message; a duration should be long against the coherence time of a fading link
    draws : participations of each client from which means are taken
    rtol : by which the mean may differ from what is expected, besides five standard errors
    radius_m : of the disc
    seed : whole number of at least 0

    Raises
    ------
    ContractError
        Naming the class, the method, and what it did.
    ValueError
        If ``clients`` or ``draws`` is too small to check anything.
    """
    if clients < 2 or draws < 2:
        raise ValueError(f"clients and draws: {clients!r} and {draws!r} are not allowed; both must be at least 2")
    checked = _Checked(_network(network), clients, bits, radius_m, seed)
    for way in ("downlink", "uplink"):
        checked.shapes(way)
        checked.purity(way)
        checked.sizes(way)
        checked.mean(way, draws, rtol)
    checked.medium()


def _network(network: Network | str | Mapping[str, Any]) -> Network:
    """Return the network that is given or described, refusing what is none."""
    try:
        found: Network = NETWORKS.make(network)
    except (PydanticCustomError, ValidationError) as error:
        raise ContractError(f"{type(network).__name__}: {error}") from None
    return found


class _Checked:
    """One network and its links; parameters as in `check_network`."""

    def __init__(self, network: Network, clients: int, bits: float, radius_m: float, seed: int) -> None:
        self.network, self.bits, self.seed = network, bits, seed
        self.name = type(network).__name__
        rng = np.random.default_rng([seed, clients])
        distance_m, angle = radius_m * np.sqrt(rng.uniform(0.02, 1.0, clients)), rng.uniform(0, 2 * np.pi, clients)
        self.positions_m = np.column_stack([distance_m * np.cos(angle), distance_m * np.sin(angle)])
        self.client = np.arange(clients, dtype=np.int64)
        self.links = self._build(self.positions_m)
        if not isinstance(self.links.shared, Directions):
            self._refuse(f"shared is {self.links.shared!r}; it must be fedsim.network.Directions")
        serving = self.links.serving
        if serving is None and SITES in network.provides:
            self._refuse(f"provides names {SITES!r}, but its links have no serving")
        if serving is not None and (serving.shape != (clients,) or serving.dtype != np.int64 or serving.min() < 0):
            self._refuse("serving must be an array of int64 with one number of at least 0 for each client")

    def shapes(self, way: str) -> None:
        """Check shapes, types and ranges, for all clients, one and none."""
        for client in (self.client, self.client[:1], self.client[:0]):
            self._seconds(f"{way}_s", self._ask(self.links, way, client, 1), client.size)
        self._seconds(f"expected_{way}_s", self._expected(way), self.client.size)

    def purity(self, way: str) -> None:
        """Check that durations depend on client, draw, start and bits alone."""
        first = self._ask(self.links, way, self.client, 1)
        self._ask(self.links, way, self.client, 2)
        self._same(way, "again after another draw", first, self._ask(self.links, way, self.client, 1))
        some = self.client[::-2]
        self._same(way, "for some of the clients", first[some], self._ask(self.links, way, some, 1))
        twin = self._ask(self._build(self.positions_m), way, self.client, 1)
        self._same(way, "of links built again from the same seed", first, twin)

    def sizes(self, way: str) -> None:
        """Check that more bits never take less time, and none has an effect where bits are not used."""
        sizes = [self.bits * factor for factor in (0.0, 0.01, 0.5, 1.0, 3.0)]
        of_sizes = {
            f"{way}_s": [self._ask(self.links, way, self.client, 1, size) for size in sizes],
            f"expected_{way}_s": [self._expected(way, size) for size in sizes],
        }
        for what, took in of_sizes.items():
            for seconds in took:
                self._seconds(what, seconds, self.client.size)
            for less, more, size in zip(took, took[1:], sizes[1:], strict=False):
                if np.any(more < less * (1 - _SLACK)):
                    client = int(np.argmax(more < less * (1 - _SLACK)))
                    self._refuse(f"{what} is {more[client]} s for {size} bits of client {client}, and more for fewer")
            if MODEL_BITS not in self.network.requires and any(np.any(one != took[0]) for one in took):
                self._refuse(f"{what} depends on the bits, though requires does not name {MODEL_BITS!r}")

    def mean(self, way: str, draws: int, rtol: float) -> None:
        """Compare the mean of many durations with what is expected."""
        found = np.array([self._ask(self.links, way, self.client, draw) for draw in range(1, draws + 1)])
        expected = self._expected(way)
        if np.any(np.isinf(found).any(axis=0) != np.isinf(expected)):
            self._refuse(f"{way}_s and expected_{way}_s are infinite for different clients")
        finite = np.isfinite(expected)
        mean, error = found[:, finite].mean(axis=0), found[:, finite].std(axis=0, ddof=1) / np.sqrt(draws)
        apart = np.abs(mean - expected[finite]) - 5 * error - rtol * expected[finite] - _SLACK
        if np.any(apart > 0):
            at = int(np.argmax(apart))
            self._refuse(
                f"expected_{way}_s is {expected[finite][at]} s for client {self.client[finite][at]}, but the mean of "
                f"{draws} durations is {mean[at]} s; for fading links more bits may bring the two together"
            )

    def medium(self) -> None:
        """Send over the medium in each shared direction: one transfer alone, and many of which one is cancelled."""
        for way, shared in zip(("downlink", "uplink"), self.links.shared, strict=True):
            can = np.flatnonzero(np.isfinite(self._expected(way)))
            if shared and can.size:
                self._send(way, can[:1], cancels=False)
                self._send(way, can, cancels=True)

    def _send(self, way: str, client: IntArray, cancels: bool) -> None:
        env = Environment()
        medium = self._call("open", lambda: self.links.open(env))
        if not isinstance(medium, SharedMedium):
            self._refuse(f"open returned a {type(medium).__name__}; it must derive from fedsim.network.SharedMedium")
        start = medium.downlink if way == "downlink" else medium.uplink
        transfers = [self._call(way, partial(start, one, self.bits)) for one in client.tolist()]
        for transfer in transfers:
            if not isinstance(transfer, Transfer):
                self._refuse(f"{way} returned a {type(transfer).__name__}; it must derive from fedsim.network.Transfer")
        cancelled, step_s = transfers[-1] if cancels else None, float(np.max(self._expected(way)[client])) / 8
        sent, kept = np.zeros(client.size), 0.0
        for step in range(1, 100 * client.size):
            env.run(until=step * step_s)
            sent = self._progress(way, transfers, sent, env.now)
            if step == 1 and cancelled is not None:
                for _ in range(2):
                    cancelled.cancel()
                kept = cancelled.sent_bits()
            if all(transfer.done.processed or transfer is cancelled for transfer in transfers):
                break
        self._ends(way, transfers, cancelled, kept)
        for name, book in self._call("books", medium.books).items():
            try:
                check_book(name, book)
            except AuditError as error:
                self._refuse(f"books: {error}")

    def _progress(self, way: str, transfers: list[Transfer], before: FloatArray, now_s: float) -> FloatArray:
        """Return the bits sent by each transfer, checked against those before."""
        sent = np.array([transfer.sent_bits() for transfer in transfers])
        if np.any(sent < before - _SLACK * self.bits) or np.any(sent > self.bits * (1 + _SLACK)):
            self._refuse(f"sent_bits of a transfer on the {way} fell, or exceeded its {self.bits} bits")
        if not all(0 <= transfer.queued_s() <= now_s for transfer in transfers):
            self._refuse(f"queued_s of a transfer on the {way} is not between 0 and the time since its start")
        return sent

    def _ends(self, way: str, transfers: list[Transfer], cancelled: Transfer | None, kept: float) -> None:
        for number, transfer in enumerate(transfers):
            if transfer is cancelled:
                if transfer.sent_bits() != kept or (transfer.done.processed and kept < self.bits * (1 - _SLACK)):
                    self._refuse(f"a transfer on the {way} that was cancelled sent bits, or ended, afterwards")
            elif not transfer.done.processed:
                self._refuse(f"transfer {number} on the {way} has not ended after many times its expected duration")
            elif abs(transfer.sent_bits() - self.bits) > _SLACK * self.bits:
                self._refuse(f"transfer {number} on the {way} ended with {transfer.sent_bits()} of {self.bits} bits")

    def _build(self, positions_m: FloatArray) -> Links:
        given = positions_m.copy()
        given.setflags(write=False)
        try:
            return self._call("build", lambda: build_links(self.network, given, Streams(self.seed)))
        except ScenarioError as error:
            raise ContractError(f"{self.name}: {error}") from error

    def _ask(self, links: Links, way: str, client: IntArray, draw: int, bits: float | None = None) -> FloatArray:
        """Return the durations of transfers that start together, with arrays that cannot be written."""
        ids, start_s = client.copy(), np.full(client.size, draw * _STARTS_APART_S)
        for array in (ids, start_s):
            array.setflags(write=False)
        ask = links.downlink_s if way == "downlink" else links.uplink_s
        return self._call(f"{way}_s", lambda: ask(ids, draw, start_s, self.bits if bits is None else bits))

    def _expected(self, way: str, bits: float | None = None) -> FloatArray:
        ask = self.links.expected_downlink_s if way == "downlink" else self.links.expected_uplink_s
        return self._call(f"expected_{way}_s", lambda: ask(self.bits if bits is None else bits))

    def _seconds(self, method: str, took: object, clients: int) -> None:
        if not isinstance(took, np.ndarray) or took.dtype != np.float64 or took.shape != (clients,):
            found = f"{took.dtype} of shape {took.shape}" if isinstance(took, np.ndarray) else type(took).__name__
            self._refuse(f"{method} returned {found}; it must be an array of float64 of shape ({clients},)")
        if not np.all(took >= 0):
            self._refuse(f"{method} returned {took[~(took >= 0)][0]} s; times are numbers of at least 0")

    def _same(self, way: str, when: str, one: FloatArray, other: FloatArray) -> None:
        if not np.array_equal(one, other):
            at = int(np.argmax(one != other))
            self._refuse(f"{way}_s is {one[at]} s, and {other[at]} s {when}")

    def _call(self, method: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except ScenarioError:
            raise
        except Exception as error:
            hint = "; it must not change the arrays that it is given" if "read-only" in str(error) else ""
            raise ContractError(f"{self.name}: {method} failed with {type(error).__name__}: {error}{hint}") from error

    def _refuse(self, why: str) -> NoReturn:
        raise ContractError(f"{self.name}: {why}")
