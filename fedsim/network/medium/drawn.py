"""Spectrum that several transfers share while fading changes from block to block, on the clock.

The bits of a transfer are the integral of its rate over the fading blocks of its own client, the draws that a dedicated
bandwidth has too: alone on the medium it takes as long as there. Between two changes of the transfers present, rates are
known for as many blocks ahead as are computed, as arrays of (transfers, blocks), and one timer waits for the next end,
or for the end of these blocks.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import call_after, call_next, process_now
from fedsim.network.contracts import SpectrumBook, Transfer
from fedsim.network.medium.drawn_jobs import Jobs, Rows
from fedsim.network.medium.drawn_rules import BandRule, TimeRule
from fedsim.network.radio.channel import LAST_BLOCK, MOST_BLOCKS, Channel

_SAME_INSTANT_ULPS: Final = 4
_SAME_BITS_ULPS: Final = 8
_ELEMENTS: Final = 2**13
"""Rates computed at once, few enough that they stay in a core's cache."""
_AT_LEAST: Final = 2**8
"""Rates that cost about as little as one."""


class DrawnTransfer(Transfer):
    """One transfer over a `DrawnSpectrum`.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived
    bits : its size
    client : its id
    delay_s : propagation delay
    came_s : instant of its start
    began_s : instant at which its service began; None before
    row : among the transfers present; -1 if it is not among them
    work_done : hertz times seconds that it had when it left the medium
    cancelled, arrived : whether it was cancelled, or is complete at the receiver
    """

    __slots__ = (
        "_medium",
        "_sent_bits",
        "arrived",
        "began_s",
        "bits",
        "came_s",
        "cancelled",
        "client",
        "delay_s",
        "done",
        "row",
        "work_done",
    )

    def __init__(self, medium: "DrawnSpectrum", client: int, bits: float, delay_s: float) -> None:
        self._medium, self.client, self.bits, self.delay_s = medium, client, bits, delay_s
        self.done = Event(medium.env)
        self.came_s: float = medium.env.now
        self.began_s: float | None = None
        self.row, self.work_done, self._sent_bits = -1, 0.0, 0.0
        self.cancelled = self.arrived = False

    def cancel(self) -> None:
        """End the transfer now and free its share; nothing if it has arrived."""
        if not (self.cancelled or self.arrived):
            self.cancelled = True
            self._medium.forget(self)

    def sent_bits(self) -> float:
        """Return the number of bits carried so far."""
        return self._sent_bits if self.row < 0 else self._medium.sent_bits(self)

    def queued_s(self) -> float:
        """Return the seconds between the start of the transfer and the begin of its service, or now."""
        return (self._medium.env.now if self.began_s is None else self.began_s) - self.came_s

    def leave(self, sent_bits: float, work_done: float) -> None:
        """Keep what was carried when the transfer left the medium."""
        self.row, self._sent_bits, self.work_done = -1, sent_bits, work_done

    def arrive(self, _event: Event) -> None:
        """Trigger `done` as part of this event, unless the transfer was cancelled during its propagation delay."""
        if not self.cancelled:
            self.arrived = True
            process_now(self.done)


@dataclass(frozen=True)
class Plan:
    """Rates for some blocks ahead, while the transfers present stay the same.

    Attributes
    ----------
    since_s : instant from which it holds
    rows : transfers that have any share, m of them
    rate_bps : of each in each block, shape (m, blocks)
    part : of the band or the time that each has, shape (m, blocks) or (m, 1)
    ends_s : end of each block in seconds from `since_s`, shape (blocks,)
    sent_bits : of each by the end of each block, shape (m, blocks)
    """

    since_s: float
    rows: Rows
    rate_bps: FloatArray
    part: FloatArray
    ends_s: FloatArray
    sent_bits: FloatArray

    def passed(self, now_s: float) -> tuple[int, float]:
        """Return the number of whole blocks until an instant, and the seconds of the next one."""
        passed_s = now_s - self.since_s
        block = min(int(np.searchsorted(self.ends_s, passed_s, side="right")), self.ends_s.size - 1)
        return block, passed_s - (float(self.ends_s[block - 1]) if block else 0.0)

    def carried(self, now_s: float) -> tuple[FloatArray, FloatArray]:
        """Return the bits and the seconds of the whole band that each transfer has had, shapes (m,)."""
        block, rest_s = self.passed(now_s)
        bits = self.rate_bps[:, block] * rest_s
        if block:
            bits += self.sent_bits[:, block - 1]
        if self.part.shape[1] == 1:
            return bits, self.part[:, 0] * (now_s - self.since_s)
        length_s = np.diff(self.ends_s[:block], prepend=0.0)
        return bits, self.part[:, :block] @ length_s + self.part[:, block] * rest_s

    def busy_s(self, now_s: float) -> float:
        """Return the seconds for which the whole band was in use."""
        block, rest_s = self.passed(now_s)
        used = self.part.sum(axis=0)
        if used.size == 1:
            return float(used[0]) * (now_s - self.since_s)
        length_s = np.diff(self.ends_s[:block], prepend=0.0)
        return float(used[:block] @ length_s + used[block] * rest_s)

    def next_end(self, left: FloatArray) -> float:
        """Return the seconds from `since_s` until the first end; `inf` if none ends within the blocks.

        Parameters
        ----------
        left : bits that are left of each transfer, shape (m,)
        """
        ending = np.flatnonzero(self.sent_bits[:, -1] >= left)
        if not ending.size:
            return math.inf
        sent, wanted = self.sent_bits[ending], left[ending]
        block = np.argmax(sent >= wanted[:, None], axis=1)
        each = np.arange(ending.size)
        before = np.where(block > 0, sent[each, block - 1], 0.0)
        begins_s = np.where(block > 0, self.ends_s[block - 1], 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            ends_s = begins_s + (wanted - before) / self.rate_bps[ending, block]
        return float(np.minimum(ends_s, self.ends_s[block]).min())


class DrawnSpectrum:
    """Bandwidth shared by transfers whose fading is drawn.

    A transfer goes on at its client's ergodic rate after `MOST_BLOCKS` blocks, as with dedicated bandwidth
    (`Channel.transfer_s`).

    Parameters
    ----------
    env : Environment
    channel : radio of the clients, with the whole band
    rule : without memory of other transfers, and of this medium alone
    """

    def __init__(self, env: Environment, channel: Channel, rule: BandRule | TimeRule) -> None:
        self.env, self.channel, self.rule = env, channel, rule
        self.bandwidth_hz = channel.bandwidth_hz
        self._efficiency: list[float] = (channel.ergodic_rate_bps / channel.bandwidth_hz).tolist()
        self._jobs = Jobs(channel)
        self._plan: Plan | None = None
        self._timer: Event | None = None
        self._planning = False
        self._seen_s = self._changed_s = env.now
        self._carried = self._received = self._lost = self._most = 0.0
        self._presence_s = self._sojourn_s = self._came_s = 0.0

    @property
    def present(self) -> int:
        """Number of transfers on the medium, in service or waiting."""
        return self._jobs.n

    def send(self, client: int, bits: float, delay_s: float = 0.0) -> DrawnTransfer:
        """Start a transfer now.

        Parameters
        ----------
        client : id
        bits : size, >= 0; where the client's link carries nothing, bits never end and take nothing from the others
        delay_s : propagation delay, >= 0
        """
        transfer = DrawnTransfer(self, client, bits, delay_s)
        jobs, rule = self._jobs, self.rule
        if bits > 0 and self._efficiency[client] > 0:
            self._count(transfer.came_s)
            if isinstance(rule, BandRule) or not rule.waits(jobs):
                self._change(transfer.came_s)
            self._came_s += transfer.came_s
            transfer.row = jobs.add(transfer, client, bits, self._efficiency[client])
        else:
            transfer.began_s = transfer.came_s
            if bits == 0:
                self._send_on(transfer)
        return transfer

    def forget(self, transfer: DrawnTransfer) -> None:
        """Remove a cancelled transfer from the medium; its share goes to the others at once."""
        row, jobs = transfer.row, self._jobs
        if row >= 0:
            now_s = self.env.now
            self._count(now_s)
            self._change(now_s)
            transfer.leave(float(jobs.bits[row] - jobs.left[row]), float(jobs.work[row]))
            self._lost += transfer.work_done
            self._let_go(transfer, row, now_s)
        elif transfer.work_done:
            self._received -= transfer.work_done
            self._lost += transfer.work_done

    def sent_bits(self, transfer: DrawnTransfer) -> float:
        """Return the bits carried so far of a transfer that is present."""
        jobs, plan, row = self._jobs, self._plan, transfer.row
        sent = float(jobs.bits[row] - jobs.left[row])
        if plan is not None:
            place = row if isinstance(plan.rows, slice) else _place(plan.rows, row)
            if place is not None and place < len(plan.rate_bps):
                sent += float(plan.carried(self.env.now)[0][place])
        return min(sent, transfer.bits)

    def book(self) -> SpectrumBook:
        """Return the work done up to now."""
        now_s = self.env.now
        self._count(now_s)
        carried, under_way = self._carried, math.fsum(self._jobs.work[: self.present].tolist())
        if self._plan is not None:
            under_way += self.bandwidth_hz * math.fsum(self._plan.carried(now_s)[1].tolist())
            carried += self.bandwidth_hz * self._plan.busy_s(now_s)
        sojourn_s = self._sojourn_s + self.present * now_s - self._came_s
        return SpectrumBook(carried, self._received, self._lost, under_way, self._most, self._presence_s, sojourn_s)

    def _count(self, now_s: float) -> None:
        """Count the time since the last call."""
        elapsed_s = now_s - self._seen_s
        if elapsed_s > 0:
            self._seen_s = now_s
            self._presence_s += self._jobs.n * elapsed_s
            self._most += self.bandwidth_hz * elapsed_s

    def _change(self, now_s: float) -> None:
        """Do what was planned until now, and plan anew after what happens in this event."""
        self._carry_out(now_s)
        self._changed_s, self._timer = now_s, None
        if not self._planning:
            self._planning = True
            call_next(self.env, self._plan_next)

    def _plan_next(self, _event: Event) -> None:
        self._planning = False
        self._go_on(self.env.now)

    def _on_time(self, event: Event) -> None:
        if event is self._timer:
            self._timer = None
            now_s = self.env.now
            self._count(now_s)
            self._carry_out(now_s)
            self._go_on(now_s)

    def _carry_out(self, now_s: float) -> None:
        """Give the transfers what they have had of the plan until now."""
        plan, jobs, rule = self._plan, self._jobs, self.rule
        if plan is None:
            return
        self._plan = None
        block, rest_s = plan.passed(now_s)
        bits, seconds = plan.carried(now_s)
        left = jobs.left[plan.rows] - bits
        slack = _SAME_INSTANT_ULPS * math.ulp(now_s) * plan.rate_bps[:, block]
        slack += _SAME_BITS_ULPS * np.spacing(jobs.bits[plan.rows])
        jobs.left[plan.rows] = np.where(left <= slack, 0.0, left)
        jobs.work[plan.rows] += self.bandwidth_hz * seconds
        self._carried += self.bandwidth_hz * plan.busy_s(now_s)
        if isinstance(rule, TimeRule):
            rule.went_on(jobs, block, rest_s)

    def _go_on(self, now_s: float) -> None:
        """End the transfers whose bits are sent, and plan for the others."""
        jobs = self._jobs
        ended = np.flatnonzero(jobs.left[: jobs.n] == 0.0)
        if ended.size:
            self._changed_s = now_s
            for transfer in [jobs.owner[row] for row in ended[np.argsort(jobs.order[ended])].tolist()]:
                work = float(jobs.work[transfer.row])
                row = transfer.row
                transfer.leave(transfer.bits, work)
                self._received += work
                self._let_go(transfer, row, now_s)
                self._send_on(transfer)
        if not jobs.n:
            self._timer = None
            return
        self._plan = plan = self._look_ahead(now_s)
        delay_s = min(plan.next_end(jobs.left[plan.rows]), float(plan.ends_s[-1]))
        if delay_s < math.inf:
            self._timer = call_after(self.env, delay_s, self._on_time)

    def _look_ahead(self, now_s: float) -> Plan:
        """Return the rates of the next blocks."""
        jobs, channel, rule = self._jobs, self.channel, self.rule
        coherence_s = channel.fading.coherence_s
        rows: Rows = slice(0, jobs.n) if isinstance(rule, BandRule) else rule.rows(jobs)
        self._begin(rows, now_s)
        snr = jobs.snr[rows]
        part = np.full((snr.size, 1), 1.0 / snr.size)
        if isinstance(rule, BandRule):
            part = rule.split(jobs)[:, None]
            snr = snr * np.minimum(1.0 / part[:, 0], jobs.densest[rows])
        block = 0 if math.isinf(coherence_s) else int(min(now_s / coherence_s, LAST_BLOCK))
        first = jobs.first_block[rows]
        first[first < 0] = block
        jobs.first_block[rows] = first
        faded = (block - first < MOST_BLOCKS) & (block < LAST_BLOCK)
        if faded.any() and coherence_s < math.inf:
            limit = min(self._blocks(rows, part, now_s), MOST_BLOCKS - (block - int(first[faded].min())))
            gain = jobs.gains(rows, block, limit)
            length_s = np.full(gain.shape[1], coherence_s)
            length_s[0] = min(max((block + 1) * coherence_s - now_s, 0.0), coherence_s)
        else:
            gain, length_s = jobs.gains(rows, 0, 1), np.array([math.inf])
        rate = channel.bandwidth_hz * channel.rate.efficiency(snr[:, None] * gain)
        if not faded.all():
            mean = channel.rate.mean_efficiency(snr[~faded], channel.fading)
            rate[~faded], gain = channel.bandwidth_hz * mean[:, None], np.where(faded[:, None], gain, 1.0)
        if isinstance(rule, TimeRule):
            part = rule.turns(jobs, gain, rate, length_s)
        rate = part * rate
        sent = np.where(rate > 0, math.inf, 0.0) if math.isinf(length_s[0]) else np.cumsum(rate * length_s, axis=1)
        return Plan(now_s, rows, rate, part, np.cumsum(length_s), sent)

    def _blocks(self, rows: Rows, part: FloatArray, now_s: float) -> int:
        """Return for how many blocks to look ahead: about until the next end, or the next change by others."""
        jobs, coherence_s = self._jobs, self.channel.fading.coherence_s
        rate_bps = part[:, 0] * jobs.efficiency[rows] * self.bandwidth_hz
        blocks = min(float((jobs.left[rows] / rate_bps).min()) / coherence_s, float(_ELEMENTS))
        quiet_s = max(self.env.peek() - now_s, 2 * (now_s - self._changed_s))
        few = 1 + min(quiet_s / coherence_s, float(_ELEMENTS)) + _AT_LEAST // len(part)
        return int(max(1.0, min(blocks + 2 * math.sqrt(blocks) + 2, few, _ELEMENTS // len(part))))

    def _begin(self, rows: Rows, now_s: float) -> None:
        """Stamp the transfers whose service begins now."""
        jobs = self._jobs
        for row in np.flatnonzero(jobs.first_block[: jobs.n] < 0) if isinstance(rows, slice) else rows:
            transfer = jobs.owner[row]
            if transfer.began_s is None:
                transfer.began_s = now_s

    def _let_go(self, transfer: DrawnTransfer, row: int, now_s: float) -> None:
        moved = self._jobs.remove(row)
        if moved is not None:
            moved.row = row
        self._came_s -= transfer.came_s
        self._sojourn_s += now_s - transfer.came_s
        if not self._jobs.n:
            self._came_s = 0.0

    def _send_on(self, transfer: DrawnTransfer) -> None:
        transfer.leave(transfer.bits, transfer.work_done)
        if transfer.delay_s > 0:
            call_after(self.env, transfer.delay_s, transfer.arrive)
        else:
            # Not as part of this event: the medium is busy with it.
            transfer.arrived = True
            transfer.done.succeed()


def _place(rows: IntArray, row: int) -> int | None:
    """Return the place of a row among some; None if it is not there."""
    found = np.flatnonzero(rows == row)
    return int(found[0]) if found.size else None
