"""What a protocol of secure aggregation sends: the bits of each message, and how many clients it needs.

Only costs are simulated. The sum that a server learns is the exact one: masks cancel, and the rounding of numbers to
the protocol's whole numbers is not part of a run.
"""

import math
from abc import ABC, abstractmethod
from typing import Annotated, Final

from pydantic import Field

from fedsim.answers import Contract, Number
from fedsim.per_client import ClientValues, PerClient
from fedsim.registry import Component, Registry
from fedsim.units import BITS_PER_FLOAT32, SECONDS, Bits, NonNegative, Positive, Seconds

_MOST_BITS: Final = 1e300


class SecureAggregation(Component, ABC):
    """A protocol in four steps, all of the same kind: a message down to each client, its work, and a message up.

    Clients that do not respond in a step are not part of the following ones. The masked update is sent as the upload of
    the participation, between the third step and the last one.

    Attributes
    ----------
    wait_s : longest time for which the server waits in a step; None until each client has responded or is lost,
        which the server notices on an open connection
    mask_s : seconds in which a client expands one mask of the length of its update, a number or one for each client
    server_mask_s : seconds in which the server expands one mask
    """

    wait_s: Positive[Seconds] | None = None
    mask_s: Annotated[ClientValues, PerClient(ge=0), SECONDS] = 0.0
    server_mask_s: NonNegative[Seconds] = 0.0

    @abstractmethod
    def masked_bits(self, update_bits: float, clients: int) -> float:
        """Return the bits of a masked update.

        Parameters
        ----------
        update_bits : of an update in clear, 32 for each of its numbers
        clients : most clients of a cohort, >= 1
        """

    @abstractmethod
    def least_clients(self, clients: int) -> int:
        """Return how many clients of a cohort of some size are needed up to the end."""

    @abstractmethod
    def keys_up_bits(self) -> float:
        """Return the bits of the public keys of a client."""

    @abstractmethod
    def keys_down_bits(self, clients: int) -> float:
        """Return the bits of the keys of the others, for each of the clients that have sent theirs."""

    @abstractmethod
    def shares_up_bits(self, clients: int) -> float:
        """Return the bits of a client's encrypted shares for the others, of the clients that have sent keys."""

    @abstractmethod
    def shares_down_bits(self, clients: int) -> float:
        """Return the bits of the others' shares for a client, of the clients that have sent shares."""

    @abstractmethod
    def masks(self, clients: int) -> int:
        """Return how many masks a client expands, of the clients that have sent shares."""

    @abstractmethod
    def reveal_bits(self, clients: int) -> float:
        """Return the bits of the shares by which a client lets the server take masks away.

        Parameters
        ----------
        clients : that have sent shares
        """

    @abstractmethod
    def server_masks(self, delivered: int, lost: int) -> int:
        """Return how many masks the server expands.

        Parameters
        ----------
        delivered : clients whose masked updates have arrived
        lost : clients that have sent shares, and whose masked updates have not arrived
        """


_BITS: Final = Number(least=0, most=_MOST_BITS)
_COUNT: Final = Number(least=0, most=10**18, whole=True)
SECURE_AGGREGATION: Final = Contract(
    "protocol of secure aggregation",
    SecureAggregation,
    {
        "masked_bits": _BITS,
        "least_clients": _COUNT,
        "keys_up_bits": _BITS,
        "keys_down_bits": _BITS,
        "shares_up_bits": _BITS,
        "shares_down_bits": _BITS,
        "masks": _COUNT,
        "reveal_bits": _BITS,
        "server_masks": _COUNT,
    },
)


class Bonawitz(SecureAggregation):
    """Pairwise masks with shares of their seeds: n clients send and receive O(n) keys and shares each.

    Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning", CCS 2017, in the setting of
    a server that follows the protocol, without the consistency check. By section 7.1 a client has ``2 n`` public keys,
    ``5 n - 4`` shares and ``m ceil(log2 R)`` bits of masked update on its links, for updates of m numbers below
    ``R_U`` and ``R = n (R_U - 1) + 1``. R is agreed on before the first round, for the largest cohort. Lists of ids are
    not counted, as in the paper.

    Attributes
    ----------
    value_bits : bits to which each number of an update is rounded, log2 of R_U
    key_bits : of a public key (the paper's a_K)
    share_bits : of a share (the paper's a_S)
    threshold : share of the cohort, rounded up, that must stay up to the end; with fewer the server learns nothing
    wait_s, mask_s, server_mask_s : as in `SecureAggregation`
    """

    value_bits: Annotated[int, Field(ge=1, le=64)] = 16
    key_bits: Positive[Bits] = 256.0
    share_bits: Positive[Bits] = 256.0
    threshold: Annotated[float, Field(gt=0, le=1)] = 2 / 3

    def masked_bits(self, update_bits: float, clients: int) -> float:
        """Return ``m ceil(log2(n (R_U - 1) + 1))``."""
        # The bit length of R - 1 is the logarithm of R rounded up, without rounding of floats.
        largest_sum: int = clients * (2**self.value_bits - 1)
        return update_bits / BITS_PER_FLOAT32 * largest_sum.bit_length()

    def least_clients(self, clients: int) -> int:
        return max(1, math.ceil(round(self.threshold * clients, 9)))

    def keys_up_bits(self) -> float:
        """Return the bits of two keys: one to encrypt shares, one to agree on masks."""
        return 2.0 * self.key_bits

    def keys_down_bits(self, clients: int) -> float:
        return 2.0 * (clients - 1) * self.key_bits

    def shares_up_bits(self, clients: int) -> float:
        """Return the bits of two shares for each other client: of the key for masks, and of the seed of its own."""
        return 2.0 * (clients - 1) * self.share_bits

    def shares_down_bits(self, clients: int) -> float:
        return 2.0 * (clients - 1) * self.share_bits

    def masks(self, clients: int) -> int:
        return clients

    def reveal_bits(self, clients: int) -> float:
        """Return the bits of one share of each client: of its seed if it has delivered, of its key if it was lost."""
        return clients * self.share_bits

    def server_masks(self, delivered: int, lost: int) -> int:
        """Return the own masks of those that have delivered, and their masks with each client that was lost."""
        return delivered + lost * delivered


SECURE_AGGREGATIONS: Final = Registry(
    "secure aggregation",
    "fedsim.secure_aggregations",
    ("masked_bits", "least_clients"),
    {"bonawitz": "fedsim.rounds.secure.protocols:Bonawitz"},
)
