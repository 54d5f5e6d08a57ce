"""The FLASH sample: what is published of it, and crowds seen as its users were."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.devices.availability.on_off import Renewal
from validation import PUBLISHED, FloatArray

DAY_S: Final = 86400.0
_FLASH: Final = PUBLISHED["flash"]
LISTED: Final = {name: dict(of) for name, of in _FLASH["facts"].items()}
FACTS: Final = {name.format(key): value for name, of in LISTED.items() for key, value in of.items()}
"""Published statistics of the sample, by name."""
BY_HOUR: Final = LISTED["share online at {} h"]


class Seen(NamedTuple):
    """Sessions of users in their order, each user seen through one window; times from the window's start."""

    owner: NDArray[np.int64]
    start_s: FloatArray
    end_s: FloatArray
    span_s: FloatArray
    clock_s: FloatArray


def watch(law: Renewal, users: int, seed: int) -> Seen:
    """Return what is seen of a crowd through windows as long as the sample's, from any hour of the first day on."""
    rng = np.random.default_rng(seed)
    span_s = DAY_S * rng.choice(np.arange(1, 7), users, p=np.array(_FLASH["seen_days"]) / sum(_FLASH["seen_days"]))
    clock_s = DAY_S * rng.random(users)
    sessions = law.sessions(np.arange(users), clock_s, clock_s + span_s)
    from_s = clock_s[sessions.owner]
    return Seen(sessions.owner, sessions.start_s - from_s, sessions.end_s - from_s, span_s, clock_s)
