"""The contract of a network, checked by building its links and sending over them."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

import numpy as np
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from fedsim.answers import unchecked
from fedsim.arrays import FloatArray, IntArray
from fedsim.capabilities import MODEL_BITS, SITES
from fedsim.clock import Environment
from fedsim.errors import ContractError
from fedsim.network import NETWORKS, Links, Network
from fedsim.network.contracts import Directions, build_links
from fedsim.network.transfers import SharedMedium, Transfer
from fedsim.rounds.effects.audit.audit import check_book
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, at_least_two, locked

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

    Examples
    --------
    >>> check_network('pause-two-speed', clients=4)
    """
    at_least_two(clients=clients, draws=draws)
    checked = _Checked(_network(network), clients, bits, radius_m, seed)
    for way in ("downlink", "uplink"):
        checked.shapes(way)
        checked.purity(way)
        checked.sizes(way)
        checked.carried(way)
        checked.mean(way, draws, rtol)
    checked.medium()


def _network(network: Network | str | Mapping[str, Any]) -> Network:
    """Return the network that is given or described, refusing what is none."""
    try:
        found: Network = NETWORKS.make(network)
    except (PydanticCustomError, ValidationError) as error:
        raise ContractError(f"{type(network).__name__}: {error}") from None
    return found


class _Checked(Examination):
    read_only = "it must not change the arrays that it is given"

    def __init__(self, network: Network, clients: int, bits: float, radius_m: float, seed: int) -> None:
        super().__init__(network)
        self.network, self.bits, self.seed = network, bits, seed
        rng = np.random.default_rng([seed, clients])
        distance_m, angle = radius_m * np.sqrt(rng.uniform(0.02, 1.0, clients)), rng.uniform(0, 2 * np.pi, clients)
        self.positions_m = np.column_stack([distance_m * np.cos(angle), distance_m * np.sin(angle)])
        self.client = np.arange(clients, dtype=np.int64)
        self.links = self._build()
        shared, serving = self.links.shared, self.links.serving
        self.law(isinstance(shared, Directions), f"shared is {shared!r}; it must be fedsim.network.Directions")
        if serving is None:
            self.law(SITES not in network.provides, f"provides names {SITES!r}, but its links have no serving")
        else:
            self.array("serving", serving, (clients,), np.int64)

    def shapes(self, way: str) -> None:
        """Check shapes, types and ranges, for all clients, one and none."""
        for client in (self.client, self.client[:1], self.client[:0]):
            self.array(f"{way}_s", self._ask(self.links, way, client, 1), client.shape, infinite=True)
        self.array(f"expected_{way}_s", self._expected(way), self.client.shape, infinite=True)

    def purity(self, way: str) -> None:
        """Check that durations depend on client, draw, start and bits alone."""
        first = self._ask(self.links, way, self.client, 1)
        self._ask(self.links, way, self.client, 2)
        fault, some = f"{way}_s is not the same", self.client[::-2]
        self.same(first, self._ask(self.links, way, self.client, 1), f"{fault} again after another draw")
        self.same(first[some], self._ask(self.links, way, some, 1), f"{fault} for some of the clients")
        twin = self._ask(self._build(), way, self.client, 1)
        self.same(first, twin, f"{way}_s is not that of links built again from the same seed")

    def sizes(self, way: str) -> None:
        """Check that more bits never take less time, and none has an effect where bits are not used."""
        sizes = [self.bits * factor for factor in (0.0, 0.01, 0.5, 1.0, 3.0)]
        of_sizes = {
            f"{way}_s": [self._ask(self.links, way, self.client, 1, size) for size in sizes],
            f"expected_{way}_s": [self._expected(way, size) for size in sizes],
        }
        for what, took in of_sizes.items():
            for seconds in took:
                self.array(what, seconds, self.client.shape, infinite=True)
            for less, more, size in zip(took, took[1:], sizes[1:], strict=False):
                client = int(np.argmax(more < less * (1 - _SLACK)))
                fault = f"{what} is {more[client]} s for {size} bits of client {client}, and more for fewer"
                self.law(more[client] >= less[client] * (1 - _SLACK), fault)
            needs = MODEL_BITS in self.network.requires or all(np.array_equal(one, took[0]) for one in took)
            self.law(needs, f"{what} depends on the bits, though requires does not name {MODEL_BITS!r}")

    def carried(self, way: str) -> None:
        """Check that bits carried of a transfer never fall with time, and are all bits at its end."""
        took_s, start_s = self._ask(self.links, way, self.client, 1), np.full(self.client.size, _STARTS_APART_S)
        can = np.flatnonzero(np.isfinite(took_s))
        up = way == "uplink"
        if can.size and not self.links.shared[up]:
            before, air_before_s = np.zeros(can.size), np.zeros(can.size)
            for part in (0.0, 0.25, 0.5, 1.0):
                arguments = self.client[can], 1, start_s[can], part * took_s[can], self.bits
                bits = self.ask("carried_bits", partial(self.links.carried_bits, up=up), *arguments)
                self.array("carried_bits", bits, can.shape, least=-np.inf)
                grows = np.all(bits >= before * (1 - _SLACK)) and np.all(bits <= self.bits * (1 + _SLACK))
                self.law(bool(grows), f"carried_bits of the {way} fell with time, or exceeded its {self.bits} bits")
                before = bits
                air_s = self.ask("on_air_s", partial(self.links.on_air_s, up=up), *arguments)
                self.array("on_air_s", air_s, can.shape)
                right = (air_s >= air_before_s * (1 - _SLACK)) & (air_s <= part * took_s[can] * (1 + _SLACK))
                fault = f"on_air_s of the {way} fell with time, or exceeded the seconds since the start"
                self.law(np.all(right), fault)
                air_before_s = air_s
            whole = bool(np.all(before >= self.bits * (1 - _SLACK)))
            self.law(whole, f"carried_bits of the {way} is less than {self.bits} bits at the end of the transfer")

    def mean(self, way: str, draws: int, rtol: float) -> None:
        found = np.array([self._ask(self.links, way, self.client, draw) for draw in range(1, draws + 1)])
        expected = self._expected(way)
        same = np.array_equal(np.isinf(found).any(axis=0), np.isinf(expected))
        self.law(same, f"{way}_s and expected_{way}_s are infinite for different clients")
        finite = np.isfinite(expected)
        mean, error = found[:, finite].mean(axis=0), found[:, finite].std(axis=0, ddof=1) / np.sqrt(draws)
        apart = np.abs(mean - expected[finite]) - 5 * error - rtol * expected[finite] - _SLACK
        if np.any(apart > 0):
            at = int(np.argmax(apart))
            raise self.fault(
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
        medium = self.ask("open", self.links.open, env)
        self._derives("open", medium, SharedMedium)
        start = medium.downlink if way == "downlink" else medium.uplink
        transfers = [self.ask(way, start, one, self.bits) for one in client.tolist()]
        for transfer in transfers:
            self._derives(way, transfer, Transfer)
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
        for name, book in self.ask("books", medium.books).items():
            self.ask("books", partial(check_book, f"{self.name}, {name}", book))

    def _derives(self, method: str, answer: object, base: type) -> None:
        fault = f"{method} returned a {type(answer).__name__}; it must derive from fedsim.network.{base.__name__}"
        self.law(isinstance(answer, base), fault)

    def _progress(self, way: str, transfers: list[Transfer], before: FloatArray, now_s: float) -> FloatArray:
        """Return the bits sent by each transfer, checked against those before."""
        sent = np.array([transfer.sent_bits() for transfer in transfers])
        grows = np.all(sent >= before - _SLACK * self.bits) and np.all(sent <= self.bits * (1 + _SLACK))
        self.law(grows, f"open: sent_bits of a transfer on the {way} fell, or exceeded its {self.bits} bits")
        queued = all(0 <= transfer.queued_s() <= now_s for transfer in transfers)
        self.law(queued, f"open: queued_s of a transfer on the {way} is not between 0 and the time since its start")
        on_air = all(0 <= transfer.on_air_s(now_s) <= now_s for transfer in transfers)
        self.law(on_air, f"open: on_air_s of a transfer on the {way} is not between 0 and the time since its start")
        return sent

    def _ends(self, way: str, transfers: list[Transfer], cancelled: Transfer | None, kept: float) -> None:
        for number, transfer in enumerate(transfers):
            sent, ended, whole = transfer.sent_bits(), transfer.done.processed, self.bits * (1 - _SLACK)
            if transfer is cancelled:
                stopped = sent == kept and (not ended or kept >= whole)
                self.law(stopped, f"open: a transfer on the {way} that was cancelled sent bits, or ended, afterwards")
            else:
                this = f"open: transfer {number} on the {way}"
                self.law(ended, f"{this} has not ended after many times its expected duration")
                right = abs(sent - self.bits) <= _SLACK * self.bits
                self.law(right, f"{this} ended with {sent} of {self.bits} bits")

    def _build(self) -> Links:
        run = RunSetup.at(locked(self.positions_m), Streams(self.seed))
        links = self.ask("build", lambda: build_links(self.network, run))
        return cast(Links, unchecked(links))  # what is wrong is said here with the law that it breaks

    def _ask(self, links: Links, way: str, client: IntArray, draw: int, bits: float | None = None) -> FloatArray:
        """Return the durations of transfers that start together."""
        start_s = np.full(client.size, draw * _STARTS_APART_S)
        durations_s = links.downlink_s if way == "downlink" else links.uplink_s
        return self.ask(f"{way}_s", durations_s, client, draw, start_s, self.bits if bits is None else bits)

    def _expected(self, way: str, bits: float | None = None) -> FloatArray:
        expected_s = self.links.expected_downlink_s if way == "downlink" else self.links.expected_uplink_s
        return self.ask(f"expected_{way}_s", expected_s, self.bits if bits is None else bits)
