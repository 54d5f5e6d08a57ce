"""Parts of a band with which transfers of unlike links end together, where a smaller part has more power in a hertz."""

import math
from typing import Final

import numpy as np

from fedsim.arrays import FloatArray
from fedsim.network.radio.channel import Channel
from fedsim.units import linear_to_db

_STEP_DB: Final = 0.1
_DENSEST_DB: Final = 120.0
_NEPERS: Final = np.log(10.0) / 10.0
_TURNS: Final = 60
_CLOSE: Final = 1e-12
_LEAST_SLOPE: Final = 0.02
_LONGEST_STEP: Final = 2.0


class MakespanSplit:
    """The split of least makespan for rates that are no multiples of the part of the band.

    A part x of the band carries ``x e(snr min(1 / x, densest))`` per hertz of the band, where e is the mean efficiency
    over fading. The parts with which all end together are those of least makespan, since a rate rises with its part.
    They are found by Newton's method on the logarithms of the parts and of the common time. The efficiency is computed
    at SNRs a tenth of a decibel apart, and a power law in between.
    """

    def __init__(self, channel: Channel) -> None:
        self.bandwidth_hz, self._snr, self._densest = channel.bandwidth_hz, channel.snr, channel.densest
        efficiency = channel.ergodic_rate_bps / channel.bandwidth_hz
        self._order = np.argsort(efficiency)
        self._known_efficiency = efficiency[self._order]
        alive = channel.snr[channel.snr > 0]
        low_db, high_db = (-30.0, 30.0) if not alive.size else linear_to_db([alive.min(), alive.max()]).tolist()
        reach_db = 0.0 if channel.densest is None else min(_DENSEST_DB, float(linear_to_db(channel.densest.max())))
        level_db = np.arange(np.floor(low_db), np.ceil(high_db + reach_db) + 2 * _STEP_DB, _STEP_DB)
        mean = channel.rate.mean_efficiency(10 ** (level_db / 10), channel.fading)
        carries = mean > 0
        if not carries.any():
            carries[-1], mean[-1] = True, 1.0
        self._level, self._log_mean = level_db[carries] * _NEPERS, np.log(mean[carries])
        self._edges = self._level[1:]
        self._slope = np.append(np.diff(self._log_mean) / np.diff(self._level), 0.0)

    def shares(self, bits: FloatArray, snr: FloatArray, densest: FloatArray) -> FloatArray:
        """Return the part of the band of each transfer, shape (n,); 1 in all."""
        return np.exp(self._log_parts(bits, snr, densest)[0])

    def _log_parts(self, bits: FloatArray, snr: FloatArray, densest: FloatArray) -> tuple[FloatArray, FloatArray]:
        wish, level, limit = np.log(bits), np.log(snr), np.log(np.minimum(densest, 10 ** (_DENSEST_DB / 10)))
        part = wish - self._log_efficiency(level)[0]
        part -= _log_sum(part)
        time: float | None = None
        for _ in range(_TURNS):
            density = -part
            denser = density < limit
            log_efficiency, slope = self._log_efficiency(level + np.minimum(density, limit))
            rise = np.maximum(np.where(denser, 1.0 - slope, 1.0), _LEAST_SLOPE)
            fall = 1.0 / rise
            aim = part + (wish - part - log_efficiency) * fall
            if time is None:
                time = float(np.median(aim * rise))
            time = _time_of_one(aim, fall, time)
            step = np.minimum(np.maximum(aim - time * fall - part, -_LONGEST_STEP), _LONGEST_STEP)
            part = part + step
            part -= _log_sum(part)
            if max(float(np.maximum.reduce(step)), -float(np.minimum.reduce(step))) < _CLOSE:
                break
        return part, self._log_efficiency(level + np.minimum(-part, limit))[0]

    def time_s(self, bits: FloatArray, snr: FloatArray, densest: FloatArray) -> float:
        part, log_efficiency = self._log_parts(bits, snr, densest)
        return float(np.mean(bits / np.exp(part + log_efficiency))) / self.bandwidth_hz

    def radio_of(self, efficiency: float) -> tuple[float, float]:
        """Return the SNR with the whole band and the greatest density of power of a client by its mean efficiency."""
        place = min(int(np.searchsorted(self._known_efficiency, efficiency * (1 - _CLOSE))), self._order.size - 1)
        client = self._order[place]
        return float(self._snr[client]), 1.0 if self._densest is None else float(self._densest[client])

    def _log_efficiency(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm of the mean efficiency at logarithms of SNRs, and its slope."""
        place = self._edges.searchsorted(level, side="right")
        slope = self._slope[place]
        return self._log_mean[place] + slope * (level - self._level[place]), slope


def _time_of_one(aim: FloatArray, fall: FloatArray, time: float) -> float:
    """Return the time for which parts of logarithm ``aim - time * fall`` are 1 in all; Newton's method from a guess."""
    for _ in range(_TURNS):
        weight = np.exp(np.minimum(aim - time * fall, 50.0))
        total = float(np.add.reduce(weight))
        change = math.log(total) * total / float(weight @ fall)
        time += change
        if abs(change) < _CLOSE:
            break
    return time


def _log_sum(part: FloatArray) -> float:
    top = float(np.maximum.reduce(part))
    return top + float(np.log(np.add.reduce(np.exp(part - top))))
