"""Instants within blocks of constant rates that follow one another: how many have passed, and when bits are sent."""

import math

import numpy as np

from fedsim.arrays import FloatArray


def passed_blocks(ends_s: FloatArray, passed_s: float) -> tuple[int, float]:
    """Return the number of whole blocks in some seconds, all but the last at most, and the seconds of the next one."""
    block = min(int(np.searchsorted(ends_s, passed_s, side="right")), ends_s.size - 1)
    return block, passed_s - (float(ends_s[block - 1]) if block else 0.0)


def sent_after_s(ends_s: FloatArray, sent_bits: FloatArray, rate_bps: FloatArray, bits: FloatArray) -> FloatArray:
    """Return the seconds until each sender has sent its bits, shape (m,); `inf` if that is after the last block."""
    after_s = np.full(bits.size, math.inf)
    ending = np.flatnonzero(sent_bits[-1] >= bits)
    if ending.size:
        sent, wanted = sent_bits[:, ending], bits[ending]
        block = np.argmax(sent >= wanted, axis=0)
        before = np.where(block > 0, sent[block - 1, np.arange(ending.size)], 0.0)
        begins_s = np.where(block > 0, ends_s[block - 1], 0.0)
        rate = rate_bps[block, ending]
        took_s = np.divide(wanted - before, rate, out=np.zeros(ending.size), where=rate > 0)
        after_s[ending] = np.minimum(begins_s + took_s, ends_s[block])
    return after_s
