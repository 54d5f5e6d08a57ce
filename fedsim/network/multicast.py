"""One transmission for everybody: a downlink that all of a cohort hear at once."""

from collections.abc import Callable

from simpy import Environment, Event

from fedsim.network.sharing import FirstCome
from fedsim.network.spectrum import Transfer


class Multicast:
    """Sends what is asked for at one instant as one message, with the whole bandwidth, at the rate of the weakest.

    A client whose link carries nothing hears nothing and does not hold up the others. The rate is that of the least
    efficiency in the group when the transmission is asked for; members who leave do not change it, and when all
    have left it ends. Several messages on their way are sent one after another.

    Parameters
    ----------
    env : Environment
    bandwidth_hz : float > 0
    """

    def __init__(self, env: Environment, bandwidth_hz: float) -> None:
        self.env = env
        self.medium = FirstCome(env, bandwidth_hz)
        self._groups: dict[float, Group] = {}

    def send(self, bits: float, efficiency: float, delay_s: float = 0.0) -> "Copy":
        """Join the transmission of this instant; as `Medium.send`."""
        group = self._groups.get(bits)
        if group is None:
            group = self._groups[bits] = Group(self, bits)
            _call(self.env.timeout(0), self._send_all)
        copy = Copy(group, delay_s)
        if efficiency > 0 or bits == 0:
            group.copies[copy] = efficiency
        return copy

    def _send_all(self, _event: Event) -> None:
        groups, self._groups = self._groups, {}
        for group in groups.values():
            group.start()


class Group:
    """Those who are to hear one message; `copies` holds the efficiency of each that still listens."""

    def __init__(self, multicast: Multicast, bits: float) -> None:
        self.multicast, self.bits = multicast, bits
        self.came_s = multicast.env.now
        self.copies: dict[Copy, float] = {}
        self.transfer: Transfer | None = None

    def start(self) -> None:
        """Start the transmission."""
        if self.copies:
            self.transfer = self.multicast.medium.send(self.bits, min(self.copies.values()))
            _call(self.transfer.done, self._heard)

    def leave(self, copy: "Copy") -> None:
        """Let a member go, and end the transmission if it was the last."""
        if self.copies.pop(copy, None) is not None and not self.copies and self.transfer is not None:
            self.transfer.cancel()

    def _heard(self, _event: Event) -> None:
        for copy in list(self.copies):
            if copy.delay_s > 0:
                _call(self.multicast.env.timeout(copy.delay_s), copy.arrive)
            else:
                copy.arrive()


class Copy:
    """One client's copy of a message: a flow."""

    def __init__(self, group: Group, delay_s: float) -> None:
        self._group, self.delay_s = group, delay_s
        self.done = Event(group.multicast.env)
        self._listens = True
        self._sent_bits = self._queued_s = 0.0

    def cancel(self) -> None:
        """Stop listening; the others hear on."""
        if self._listens and not self.done.triggered:
            self._sent_bits, self._queued_s = self.sent_bits(), self.queued_s()
            self._listens = False
            self._group.leave(self)

    def sent_bits(self) -> float:
        """Return how many bits this client has heard so far."""
        if not self._listens:
            return self._sent_bits
        transfer = self._group.transfer
        return 0.0 if transfer is None or self not in self._group.copies else transfer.sent_bits()

    def queued_s(self) -> float:
        """Return how long the message has waited for its turn."""
        if not self._listens:
            return self._queued_s
        return 0.0 if self._group.transfer is None else self._group.transfer.queued_s()

    def arrive(self, _event: Event | None = None) -> None:
        """Tell that the last bit is there, unless this client has stopped listening."""
        if self._listens:
            self.done.succeed()


def _call(event: Event, callback: Callable[[Event], None]) -> None:
    if event.callbacks is not None:
        event.callbacks.append(callback)
