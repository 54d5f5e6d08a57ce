"""How far TCP's closed form is from a sender that goes round trip by round trip, and why.

    python -m tests.benchmarks.tcp_latency

prints for each loss, largest window and size of a message by how much the closed form's time is above the sender's mean
(known to 2 %, or that of 4,000 messages). A second figure is against a sender whose first loss leaves the half of the
steady window, as the closed form has it, and not the half of what slow start had reached. A minute and a half.
"""

import math
from collections.abc import Callable

import numpy as np

from fedsim.network.transport.tcp import TcpPath
from tests.support.tcp_sender import Sender

LOSSES = (1e-4, 1e-3, 1e-2, 3e-2)
WINDOWS = (20.0, 100.0, 1000.0)
SIZES = (100, 1000, 10_000)
RTT_S, CLOSE, MOST = 0.1, 0.02, 4000


def mean_s(sent_s: Callable[[np.random.Generator], float]) -> float:
    """Return the mean time, known to its standard error or that of the largest number of messages."""
    rng, took_s = np.random.default_rng(0), []
    while len(took_s) < MOST:
        took_s += [sent_s(rng) for _ in range(40)]
        if np.std(took_s) / math.sqrt(len(took_s)) < CLOSE * np.mean(took_s):
            break
    return float(np.mean(took_s))


def steady_window(path: TcpPath) -> float:
    """Return Padhye's expected window, equation 23, written anew."""
    b, p = path.per_ack, path.loss
    offset = (2 + b) / (3 * b)
    return offset + math.sqrt(8 * (1 - p) / (3 * b * p) + offset**2)


def main() -> None:
    print("| loss | largest window | " + " | ".join(f"{size:,} segments" for size in SIZES) + " |")
    print("|---|---" + "|---:" * len(SIZES) + "|")
    for loss in LOSSES:
        path = TcpPath(loss, 10.0, 2, 1.0)
        for window in WINDOWS:
            cells, steady = [], min(steady_window(path), window)
            for size in SIZES:
                found_s = float(path.latency_s(size, window, RTT_S))
                real_s = mean_s(lambda rng: Sender(rng, path, window, RTT_S).time_s(size))  # noqa: B023
                alike_s = mean_s(lambda rng: Sender(rng, path, window, RTT_S, steady / 2).time_s(size))  # noqa: B023
                cells.append(f"{found_s / real_s - 1:+.0%} ({found_s / alike_s - 1:+.0%})")
            print(f"| {loss:.2%} | {window:.0f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
