"""What becomes of a cohort of FedSUV's section 6.3, without training.

A client's duration is log-normal and such that it stays within the deadline with a probability of exactly its validity
(equation 2 of the paper); an update that was delivered has a utility drawn from a beta law around the client's own. The
paper gives neither law. What happens to a client in a round does not depend on which others are selected, so that
all selectors meet the same draws.
"""

from typing import Final

import numpy as np
from fig6_crowd import Crowd
from scipy.special import betaincinv, ndtri

from fedsim.arrays import FloatArray, IntArray
from fedsim.selectors import Reports
from fedsim.streams import Streams

DEADLINE_S: Final = 100.0  # section 6.1
DURATION_SIGMA: Final = 0.3  # of the logarithm; MobiPerf's throughput varies by some 0.1 to 0.4
UTILITY_SIZE: Final = 24.0  # of the beta law: standard deviation sqrt(u (1 - u) / 25), at most 0.1


def declared(crowd: Crowd) -> FloatArray:
    """Return what clients declare to other methods, as in any run: mean seconds, all of them for work, and samples."""
    work_s = DEADLINE_S * np.exp(DURATION_SIGMA**2 / 2 - DURATION_SIGMA * ndtri(crowd.validity))
    return np.stack([0.0 * work_s, work_s, 0.0 * work_s, np.ones_like(work_s)], axis=1)


def reports_of(crowd: Crowd, streams: Streams, number: int, client: IntArray) -> Reports:
    """Return what became of a cohort; with one sample and a gain of 1 the utility L * Delta is the loss reported."""
    luck = ndtri(streams.uniform("fig6-duration", client, number))
    duration_s = DEADLINE_S * np.exp(DURATION_SIGMA * (luck - ndtri(crowd.validity[client])))
    delivered = duration_s <= DEADLINE_S
    mean = crowd.utility[client]
    drawn = betaincinv(UTILITY_SIZE * mean, UTILITY_SIZE * (1 - mean), streams.uniform("fig6-utility", client, number))
    loss = np.where(delivered, drawn, np.nan)
    return Reports(
        round=number,
        time_s=number * DEADLINE_S,
        client=client,
        delivered=delivered,
        duration_s=np.minimum(duration_s, DEADLINE_S),
        loss=loss,
        measured={"loss_rms": loss, "accuracy_gain": np.where(delivered, 1.0, np.nan)},
    )
