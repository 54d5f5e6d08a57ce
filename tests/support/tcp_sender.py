"""A TCP sender that goes round trip by round trip, written without a look at the closed form."""

import math

import numpy as np

from fedsim.network.transport.tcp import TcpPath


class Sender:
    """Losses come at the end of a round, and three later segments tell of a loss.

    The first loss of all leaves `window_after_loss`, by default half of what slow start had reached.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        path: TcpPath,
        window: float,
        rtt_s: float,
        window_after_loss: float | None = None,
    ) -> None:
        self.rng, self.path, self.most, self.rtt_s = rng, path, window, rtt_s
        self.window, self.slow, self.clock_s, self.sent = min(path.first_window, window), True, 0.0, 0.0
        self.window_after_loss = window_after_loss

    def lossless(self, segments: float) -> float:
        """Return how many of the segments of a round arrive: all before the first that is lost."""
        if self.path.loss == 0:
            return segments
        return min(segments, int(self.rng.geometric(self.path.loss)) - 1)

    def round_trip(self, wanted: float) -> None:
        """Send a window, or what is left; after a loss the rest of the window, recovery, and half of the window."""
        sends = min(math.floor(self.window + self.rng.random()), wanted - self.sent)
        arrived = self.lossless(sends)
        self.clock_s += self.rtt_s * (sends / self.window if self.sent + arrived >= wanted else 1.0)
        self.sent += arrived
        if arrived == sends:
            grown = self.window * self.path.growth if self.slow else self.window + 1 / self.path.per_ack
            self.window = min(grown, self.most)
            return
        # The segments that arrived let as many more be sent, of which three must arrive to tell of the loss.
        later = self.lossless(arrived)
        self.sent = min(wanted, self.sent + 1 + later)
        if later >= 3:
            self.clock_s += self.rtt_s
        else:
            timeout_s, tries = self.path.timeout_s, 0
            self.clock_s += timeout_s
            while self.rng.random() < self.path.loss:
                tries += 1
                self.clock_s += timeout_s * 2 ** min(tries, 6)
        left = self.window_after_loss if self.slow and self.window_after_loss is not None else self.window / 2
        self.window, self.slow = max(1.0, left), False

    def time_s(self, segments: float) -> float:
        while self.sent < segments:
            self.round_trip(segments)
        return self.clock_s
