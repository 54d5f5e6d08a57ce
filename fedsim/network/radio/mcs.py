"""Modulation and coding schemes, block errors and retransmissions.

A sender knows the SNR of the block of fading (the receiver reports it) and takes the highest scheme whose block
error rate is at most 10 %. A transport block that fails is sent again, up to a limit; the layer above sends the bits
that are lost then again.
"""

import math
from typing import Annotated, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fedsim.arrays import FloatArray
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.spectral_efficiency import mean_over_fading
from fedsim.registry import Component
from fedsim.units import LONGEST_S, Bound, Decibels, NonNegative, PerDecibel, Positive, Seconds, linear_to_db

Table = Literal["64qam", "256qam", "wifi"]
Gap = Literal["flat", "nr-ldpc"]

TARGET_ERROR_RATE: Final = 0.1
"""Block error rate at a scheme's threshold: TS 38.214, clause 5.2.2.1."""

_SAME_DB: Final = 1e-9
"""Levels that differ by less are the same: rounding does not decide whether a level on a threshold reaches it."""

_SURE: Final = 36.0
"""Steepness times margin from which on the odds of an error are below ``exp(-36) / 9``."""

NR_LDPC_GAP_DB: Final[dict[int, float]] = {2: 1.0, 4: 2.0, 6: 3.0, 8: 3.0}
"""Distance of NR's codes from Shannon's limit by bits per symbol, at 10 % block errors in white noise.

Part of it is that of the constellation: the limit of bit-interleaved modulation with Gray labels lies up to 0.3 dB
(QPSK), 0.6 dB (16-QAM), 1.8 dB (64-QAM) and 1.7 dB (256-QAM) above Shannon's at the efficiencies of the tables, so that
256-QAM has the gap of 64-QAM. The rest is that of codes of finite length.
"""

# Bits per symbol and code rate times 1024.
SCHEMES: Final[dict[Table, tuple[tuple[int, float], ...]]] = {
    "64qam": (
        *((2, rate) for rate in (78, 120, 193, 308, 449, 602)),
        *((4, rate) for rate in (378, 490, 616)),
        *((6, rate) for rate in (466, 567, 666, 772, 873, 948)),
    ),
    "256qam": (
        *((2, rate) for rate in (78, 193, 449)),
        *((4, rate) for rate in (378, 490, 616)),
        *((6, rate) for rate in (466, 567, 666, 772, 873)),
        *((8, rate) for rate in (711, 797, 885, 948)),
    ),
    "wifi": (
        (1, 1024 / 2),
        (2, 1024 / 2),
        (2, 1024 * 3 / 4),
        (4, 1024 / 2),
        (4, 1024 * 3 / 4),
        *((6, 1024 * rate) for rate in (2 / 3, 3 / 4, 5 / 6)),
        *((8, 1024 * rate) for rate in (3 / 4, 5 / 6)),
    ),
}


def scheme_efficiencies(table: Table) -> FloatArray:
    return np.array([bits * rate / 1024 for bits, rate in SCHEMES[table]])


class ModulationAndCoding(Component):
    """A table of schemes, chosen by SNR, with block errors and retransmissions.

    Attributes
    ----------
    table : str
        ``"64qam"`` and ``"256qam"``: the CQI tables of 3GPP TS 38.214, tables 5.2.2.1-2 and 5.2.2.1-3. ``"wifi"``: the
        schemes 0 to 9 of IEEE 802.11ac, section 21.5, per stream.
    schemes : int or None
        Number of schemes used, from the lowest; all if left out.
    gap : ``"flat"``, or ``"nr-ldpc"``
        Distance of the schemes from Shannon's limit: `gap_db` for each, or that of NR's codes by modulation, from 1 dB
        for QPSK to 3 dB for 64-QAM (`NR_LDPC_GAP_DB`), for the tables of TS 38.214.
    gap_db : float
        With the flat gap a scheme of efficiency e has 10 % block errors at an SNR of ``2^e - 1`` plus this gap, the
        distance of real codes from Shannon's limit. 3GPP gives no thresholds; a mapping much used for LTE with one
        antenna, from -6.7 dB (CQI 1) over 10.3 dB (CQI 9) to 22.7 dB (CQI 15), lies 2.8, 4.0 and 6.1 dB above the
        limit. The least sensitivities of 802.11 (-82 to -57 dBm in 20 MHz, which allow for a noise figure of 10 dB and
        for 5 dB of implementation) lie 6.4 to 9 dB above it, and real receivers do better.
    steepness_per_db : float
        The block error rate is logistic in the SNR: its odds, 1/9 at the threshold, fall by ``exp(-steepness)`` per dB.
        4.8 takes it from 10 % to 1 % in half a decibel.
    attempts : int
        Greatest number of transmissions of a transport block, the first included.
    combining : bool
        Whether the receiver adds up the attempts (Chase combining): the n-th is decoded at n times the SNR.
    block_s : float
        Duration of a transport block.
    backoff_s : float
        Idle time of the link before each retransmission. 0 where other transport blocks fill the gap (the parallel
        HARQ processes of LTE and NR), more where sender and receiver stop and wait.
    overhead : float
        Share of time and spectrum that carries no data; 0.14 is that of a downlink below 6 GHz in TS 38.306, clause
        4.1.2.

    Notes
    -----
    Below the threshold of the lowest scheme a block of fading is an outage and carries nothing.

    Examples
    --------
    >>> lowest = ModulationAndCoding(schemes=1, overhead=0.0)
    >>> lowest.thresholds_db().round(1).tolist()  # 10 log10(2**0.1523 - 1) + 3
    [-6.5]
    >>> lowest.efficiency(np.array([0.1, 10.0])).round(4).tolist()  # an outage, and no block errors
    [0.0, 0.1523]
    """

    table: Table = "64qam"
    schemes: Annotated[int, Field(ge=1)] | None = None
    gap: Gap = "flat"
    gap_db: Annotated[Decibels, Field(ge=0, le=30)] = 3.0
    steepness_per_db: Positive[PerDecibel] = 4.8
    attempts: Annotated[int, Field(ge=1, le=32)] = 4
    combining: bool = True
    block_s: Annotated[Positive[Seconds], Bound(1e-6, LONGEST_S)] = 1e-3
    backoff_s: NonNegative[Seconds] = 0.0
    overhead: Annotated[float, Field(ge=0, lt=1)] = 0.14

    @model_validator(mode="after")
    def _schemes_are_there(self) -> Self:
        if self.schemes is not None and self.schemes > len(SCHEMES[self.table]):
            raise ValueError(
                f"schemes = {self.schemes} is not allowed; the table {self.table!r} has {len(SCHEMES[self.table])}"
            )
        return self

    @model_validator(mode="after")
    def _gap_is_known(self) -> Self:
        if self.gap == "nr-ldpc" and self.table == "wifi":
            raise ValueError("gap = 'nr-ldpc' is not allowed with table = 'wifi'; allowed: 'flat'")
        return self

    def efficiencies(self) -> FloatArray:
        return scheme_efficiencies(self.table)[: self.schemes]

    def thresholds_db(self) -> FloatArray:
        limit_db = linear_to_db(np.exp2(self.efficiencies()) - 1.0)
        if self.gap == "flat":
            return limit_db + self.gap_db
        gap_db = [NR_LDPC_GAP_DB[bits] for bits, _ in SCHEMES[self.table][: self.schemes]]
        return np.asarray(limit_db + np.array(gap_db))

    def scheme(self, snr: FloatArray) -> FloatArray:
        """Return the index of the scheme taken at each linear SNR; -1 in an outage."""
        with np.errstate(divide="ignore"):
            level = linear_to_db(snr)
        return np.asarray(np.searchsorted(self.thresholds_db() - _SAME_DB, level, side="right") - 1)

    def error_rate(self, margin_db: FloatArray) -> FloatArray:
        """Return the block error rate at distances in dB of the SNR above a scheme's threshold."""
        odds = np.exp(np.clip(-self.steepness_per_db * margin_db, -700.0, 700.0)) * (
            TARGET_ERROR_RATE / (1.0 - TARGET_ERROR_RATE)
        )
        return np.asarray(odds / (1.0 + odds))

    def attempts_and_residual(self, margin_db: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected transmissions of a block, and the probability that all fail."""
        failed = np.ones_like(margin_db)
        expected = np.zeros_like(margin_db)
        for attempt in range(1, self.attempts + 1):
            expected = expected + failed
            gain_db = 10 * math.log10(attempt) if self.combining else 0.0
            failed = failed * self.error_rate(margin_db + gain_db)
        return expected, failed

    def efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the expected goodput in bit/s/Hz, without retransmissions and overhead."""
        thresholds_db = self.thresholds_db()
        with np.errstate(divide="ignore"):
            level_db = linear_to_db(snr)
        index = np.searchsorted(thresholds_db - _SAME_DB, level_db, side="right") - 1
        served, index = index >= 0, np.maximum(index, 0)
        margin = np.asarray(level_db - thresholds_db[index])
        # Elsewhere the error rate is below 2^-54, and 1 plus or minus it is 1.
        fallible = served & (margin < _SURE / self.steepness_per_db)
        expected, residual = np.ones_like(margin), np.zeros_like(margin)
        expected[fallible], residual[fallible] = self.attempts_and_residual(margin[fallible])
        airtime = expected + (expected - 1.0) * self.backoff_s / self.block_s
        net = self.efficiencies()[index] * (1.0 - residual) / airtime
        return np.where(served, (1.0 - self.overhead) * net, 0.0)

    def mean_efficiency(self, snr: FloatArray, fading: Fading) -> FloatArray:
        return mean_over_fading(self, snr, fading)
