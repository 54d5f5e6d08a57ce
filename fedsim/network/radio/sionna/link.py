"""The link abstraction of Sionna: block error rates from its tables of simulated NR links, and EESM over a band."""

from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from fedsim.arrays import FloatArray
from fedsim.network.radio.contracts import Fading
from fedsim.network.radio.sionna.loading import own_draws, part_of_sionna, require_sionna
from fedsim.network.radio.spectral_efficiency import mean_over_fading
from fedsim.registry import Component
from fedsim.units import db_to_linear, linear_to_db

Channel = Literal["PUSCH", "PDSCH"]
_CATEGORIES: Final[dict[Channel, int]] = {"PUSCH": 0, "PDSCH": 1}
_LOWEST_DB: Final = -15.0
_HIGHEST_DB: Final = 30.0
_STEP_DB: Final = 0.1
_STATES: Final = 512
_TABLE: Final = 1
_SCHEMES: Final = 29
"""Of the table of TS 38.214, without the reserved ones."""


class SionnaLink(Component):
    """NR's schemes with the block error rates of Sionna's link-level simulations (`sionna.sys.PHYAbstraction`).

    A sender takes the scheme of the highest index whose transport blocks fail at most with `target`, as Sionna's inner
    loop of link adaptation does; without one the block is an outage and carries nothing. A band whose parts fade
    apart has one scheme: its effective SNR is that of EESM (`sionna.sys.EESM`), and not the SNR of each part.

    Attributes
    ----------
    table : number of the table of schemes of TS 38.214, clause 5.1.3.1 or 6.1.4.1: 1, up to 64-QAM
    channel : ``"PUSCH"`` or ``"PDSCH"``, of which the tables are
    target : greatest error rate of a transport block
    resource_elements : of a transport block in a slot, which with the scheme make its size
    overhead : share of time and spectrum that carries no data
    """

    table: int = 1
    channel: Channel = "PUSCH"
    target: Annotated[float, Field(gt=0, lt=1)] = 0.1
    resource_elements: Annotated[int, Field(ge=24, le=3_000_000)] = 1200
    overhead: Annotated[float, Field(ge=0, lt=1)] = 0.14

    @field_validator("table")
    @classmethod
    def _has_error_rates(cls, value: int) -> int:
        if value != 1:
            raise ValueError(
                "Sionna's block error tables for it are those of transform precoding, and its schemes those without: "
                "rates are 1.5 to 3 times the bound of Shannon; allowed: 1"
            )
        return value

    @model_validator(mode="after")
    def _sionna_is_there(self) -> Self:
        require_sionna("sionna-phy")
        return self

    def thresholds_db(self) -> FloatArray:
        """Return the SNR from which each scheme fails at most with `target`; `inf` without a simulated table."""
        _, error = self._tables()
        fails = ~(error <= self.target)
        # The last of the grid at which it fails; the next one is the threshold.
        last = fails.shape[1] - 1 - np.argmax(fails[:, ::-1], axis=1)
        found = np.append(_grid_db(), np.inf)[np.where(fails.any(axis=1), last + 1, 0)]
        return np.asarray(found)

    def efficiency(self, snr: FloatArray) -> FloatArray:
        bits, error = self._tables()
        place = _place(snr)
        return self._best(bits, error[:, place], place)

    def mean_efficiency(self, snr: FloatArray, fading: Fading) -> FloatArray:
        return mean_over_fading(self, snr, fading)

    def efficiency_over_band(self, snr: FloatArray) -> FloatArray:
        bits, error = self._tables()
        goodput = np.empty(len(snr))
        for first in range(0, len(snr), _STATES):
            part = np.maximum(snr[first : first + _STATES], 1e-9)
            place = np.stack([_place(effective) for effective in _effective_snr(part)])
            goodput[first : first + _STATES] = self._best(bits, np.take_along_axis(error, place, axis=1), place[0])
        return goodput

    def _best(self, bits: FloatArray, error: FloatArray, place: Any) -> FloatArray:
        good = (error <= self.target) & (place > 0)
        last = len(bits) - 1 - np.argmax(good[::-1], axis=0)
        rate = bits[last] * (1.0 - np.take_along_axis(error, last[None], axis=0)[0])
        return np.where(good.any(axis=0), (1.0 - self.overhead) * rate, 0.0)

    def _tables(self) -> tuple[FloatArray, FloatArray]:
        return _tables(_CATEGORIES[self.channel], self.resource_elements)


def _grid_db() -> FloatArray:
    return np.arange(_LOWEST_DB, _HIGHEST_DB + _STEP_DB / 2, _STEP_DB)


def _place(snr: FloatArray) -> Any:
    with np.errstate(divide="ignore"):
        level_db = np.maximum(linear_to_db(snr), _LOWEST_DB)
    last = _grid_db().size - 1
    return np.clip(np.floor((level_db - _LOWEST_DB) / _STEP_DB + 1e-6).astype(np.int64), 0, last)


@lru_cache(maxsize=8)
def _tables(category: int, resource_elements: int) -> tuple[FloatArray, FloatArray]:
    """Return bits per resource element of each scheme, shape (schemes,), and error rates on the grid, (schemes, n)."""
    abstraction = _abstraction()
    decoder = part_of_sionna("phy.nr.utils", "MCSDecoderNR")(device="cpu")
    blocks = part_of_sionna("phy.nr.utils", "TransportBlockNR")(device="cpu")
    snr = _tensor(db_to_linear(_grid_db()))
    bits, errors = [], []
    for scheme in range(_SCHEMES):
        index = _tensor(np.full(snr.shape, scheme)).int()
        elements = _tensor(np.full(snr.shape, resource_elements)).int()
        order, rate = decoder(index, _TABLE, category)
        size = blocks.transport_block_size(order, rate, order * elements)[0]
        with own_draws():
            error = abstraction(
                index, sinr_eff=snr, num_allocated_re=elements, mcs_table_index=_TABLE, mcs_category=category
            )[3]
        bits.append(float(size[0]) / resource_elements)
        errors.append(error.cpu().numpy().astype(np.float64))
    return np.array(bits), np.stack(errors)


def _effective_snr(snr: FloatArray) -> FloatArray:
    """Return the effective SNR of bands for each scheme, shape (schemes, n)."""
    mapping, given = _mapping(), _tensor(snr[:, None, :, None, None])
    found = []
    for scheme in range(_SCHEMES):
        index = _tensor(np.full((len(snr), 1), scheme)).int()
        found.append(mapping(given, index, mcs_table_index=_TABLE)[:, 0].cpu().numpy().astype(np.float64))
    return np.stack(found)


def _tensor(values: Any) -> Any:
    return _abstraction().bler_table_interp.new_tensor(np.asarray(values, dtype=np.float32))


@lru_cache(maxsize=1)
def _abstraction() -> Any:
    return part_of_sionna("sys", "PHYAbstraction")(device="cpu")


@lru_cache(maxsize=1)
def _mapping() -> Any:
    return part_of_sionna("sys", "EESM")(device="cpu")
