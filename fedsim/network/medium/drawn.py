"""Spectrum that several transfers share while fading changes from block to block, on the clock.

The bits of a transfer are the integral of its rate over the fading blocks of its own client, the draws that a dedicated
bandwidth has too: alone on the medium it takes as long as there. Between two changes of the transfers present, rates
are known for as many blocks ahead as are computed, as arrays of (blocks, transfers), and one timer waits for the next
end, or for the end of these blocks.
"""

import math
from typing import Final

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import call_after, call_next, process_now
from fedsim.network.medium.drawn_jobs import Jobs, Rows
from fedsim.network.medium.drawn_plan import BlockPlan, BlocksPlan
from fedsim.network.medium.drawn_rules import BandRule, TimeRule
from fedsim.network.radio.channel import LAST_BLOCK, MOST_BLOCKS, Channel
from fedsim.network.transfers import SpectrumBook, Transfer

_SAME_INSTANT_ULPS: Final = 4
_ELEMENTS: Final = 2**13
"""Rates computed at once, few enough that they stay in a core's cache."""
_AT_LEAST: Final = 2**8
"""Rates that cost about as little as one."""
_AT_ONCE: Final = 400
"""Gains that are drawn in about the time of a fourth of them."""
_FEW: Final = 3
"""Blocks that are looked at one after the other in less time than together."""


class DrawnTransfer(Transfer):
    """One transfer over a `DrawnSpectrum`.

    Attributes
    ----------
    done : event that triggers when the last bit has arrived
    bits : its size
    client : its id
    delay_s : propagation delay
    came_s : instant of its start; `inf` before
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
        self.came_s = math.inf
        self.began_s: float | None = None
        self.row, self.work_done, self._sent_bits = -1, 0.0, 0.0
        self.cancelled = self.arrived = False

    def begin(self) -> None:
        """Start now, unless the transfer has been cancelled."""
        if not self.cancelled:
            self._medium.start(self)

    def cancel(self) -> None:
        """End the transfer now and free its share; nothing if it has arrived."""
        if not (self.cancelled or self.arrived):
            self.cancelled = True
            self._medium.forget(self)

    def sent_bits(self) -> float:
        """Return the number of bits carried so far."""
        return self._sent_bits if self.row < 0 else self._medium.sent_bits(self)

    def queued_s(self) -> float:
        """Return the seconds between the start of the transfer and the begin of its service, or now; 0 before both."""
        if self.began_s is not None:
            return self.began_s - self.came_s
        return 0.0 if self.came_s == math.inf else self._medium.env.now - self.came_s

    def leave(self, sent_bits: float, work_done: float) -> None:
        """Keep what was carried when the transfer left the medium."""
        self.row, self._sent_bits, self.work_done = -1, sent_bits, work_done

    def arrive(self, _event: Event) -> None:
        """Trigger `done` as part of this event, unless the transfer was cancelled during its propagation delay."""
        if not self.cancelled:
            self.arrived = True
            process_now(self.done)


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
        self._plan: BlockPlan | BlocksPlan | None = None
        self._timer: Event | None = None
        self._planning = self._due = False
        self._seen_s = self._changed_s = env.now
        self._carried = self._received = self._lost = self._most = 0.0
        self._presence_s = self._sojourn_s = self._came_s = 0.0

    @property
    def present(self) -> int:
        """Number of transfers on the medium, in service or waiting."""
        return self._jobs.n

    def send(self, client: int, bits: float, delay_s: float = 0.0) -> DrawnTransfer:
        """Start a transfer now; parameters as in `make`."""
        transfer = self.make(client, bits, delay_s)
        self.start(transfer)
        return transfer

    def make(self, client: int, bits: float, delay_s: float = 0.0) -> DrawnTransfer:
        """Return a transfer that has not started.

        Parameters
        ----------
        client : id
        bits : size, >= 0; where the client's link carries nothing, bits never end and take nothing from the others
        delay_s : propagation delay, >= 0
        """
        return DrawnTransfer(self, client, bits, delay_s)

    def start(self, transfer: DrawnTransfer) -> None:
        """Start a transfer now that this medium has made."""
        jobs, rule, client, bits = self._jobs, self.rule, transfer.client, transfer.bits
        transfer.came_s = now_s = self.env.now
        if bits > 0 and self._efficiency[client] > 0:
            self._count(now_s)
            if isinstance(rule, BandRule) or not rule.waits(jobs):
                self._change(now_s)
            self._came_s += now_s
            transfer.row = jobs.add(transfer, client, bits, self._efficiency[client])
        else:
            transfer.began_s = now_s
            if bits == 0:
                self._send_on(transfer)

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
        slack = plan.present_rate_bps(now_s) * (_SAME_INSTANT_ULPS * math.ulp(now_s)) + jobs.grain[plan.rows]
        due = left <= slack
        if due.any():
            left[due], self._due = 0.0, True
        jobs.left[plan.rows] = left
        jobs.work[plan.rows] += self.bandwidth_hz * seconds
        self._carried += self.bandwidth_hz * plan.busy_s(now_s)
        if isinstance(rule, TimeRule):
            rule.went_on(jobs, block, rest_s)

    def _go_on(self, now_s: float) -> None:
        """End the transfers whose bits are sent, and plan for the others."""
        jobs = self._jobs
        if self._due:
            self._due, self._changed_s = False, now_s
            ended = np.flatnonzero(jobs.left[: jobs.n] == 0.0)
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
        delay_s = min(plan.next_end(jobs.left[plan.rows]), plan.length_s)
        if delay_s < math.inf:
            self._timer = call_after(self.env, delay_s, self._on_time)

    def _look_ahead(self, now_s: float) -> BlockPlan | BlocksPlan:
        """Return the rates of the next blocks."""
        jobs, channel, rule = self._jobs, self.channel, self.rule
        coherence_s = channel.fading.coherence_s
        block = 0 if math.isinf(coherence_s) else int(min(now_s / coherence_s, LAST_BLOCK))
        if (block + 1) * coherence_s - now_s <= _SAME_INSTANT_ULPS * math.ulp(now_s):
            block += 1
        rows: Rows = slice(0, jobs.n) if isinstance(rule, BandRule) else rule.rows(jobs)
        jobs.begin(rows, block, now_s)
        snr = jobs.snr[rows]
        split = np.full(snr.size, 1.0 / snr.size)
        if isinstance(rule, BandRule):
            split = rule.split(jobs)
            snr = snr * np.minimum(1.0 / split, jobs.densest[rows])
        expected = self._blocks_to_end(jobs.left[rows] / (jobs.efficiency[rows] * split))
        blocks = self._blocks(expected, snr.size, now_s)
        blocks = max(1, min(blocks, MOST_BLOCKS - (block - jobs.oldest_block)))
        faded = None
        if block - jobs.oldest_block >= MOST_BLOCKS or block >= LAST_BLOCK:
            first = jobs.first_block[rows]
            faded = (block - first < MOST_BLOCKS) & (block < LAST_BLOCK)
            if not faded.any():
                coherence_s, blocks = math.inf, 1
            else:
                blocks = min(blocks, MOST_BLOCKS - (block - int(first[faded].min())))
        gain = jobs.gains(rows, block, blocks, min(expected, _AT_ONCE // snr.size))
        length_s = np.full(len(gain), coherence_s)
        if coherence_s < math.inf:
            length_s[0] = max((block + 1) * coherence_s - now_s, 2 * math.ulp(now_s))
        of_band = split if isinstance(rule, BandRule) else None
        rate = channel.share_rates.rate_bps(snr, jobs.efficiency[rows], gain, of_band)
        if faded is not None:
            rate[:, ~faded] = channel.bandwidth_hz * channel.rate.mean_efficiency(snr[~faded], channel.fading)
            gain = np.where(faded, gain, channel.share_rates.typical)
        parts = rule.turns(jobs, gain, rate, length_s) if isinstance(rule, TimeRule) else split[None]
        rate = rate * parts
        if len(rate) == 1:
            return BlockPlan(now_s, rows, rate[0], parts[0], float(length_s[0]))
        if len(parts) == 1:
            parts = np.broadcast_to(parts, rate.shape)
        sent = np.cumsum(rate * length_s[:, None], axis=0)
        return BlocksPlan(now_s, rows, rate, parts, np.cumsum(length_s), sent)

    def _blocks_to_end(self, work: FloatArray) -> int:
        """Return in about how many blocks the first transfer ends.

        Parameters
        ----------
        work : bits that are left over the mean efficiency and the part that each transfer has, shape (m,)
        """
        blocks = float(work.min()) / (self.bandwidth_hz * self.channel.fading.coherence_s)
        return int(min(blocks, float(_ELEMENTS))) + 1

    def _blocks(self, expected: int, rows: int, now_s: float) -> int:
        """Return for how many blocks to look ahead: about until the next end, or the next change by others."""
        if math.isinf(self.channel.fading.coherence_s):
            return 1
        quiet_s = max(self.env.peek() - now_s, 2 * (now_s - self._changed_s))
        quiet = min(quiet_s / self.channel.fading.coherence_s, float(_ELEMENTS))
        few = 1 + quiet + _AT_LEAST // rows
        blocks = int(min(expected + 2 * math.sqrt(expected), few, _ELEMENTS // rows))
        return blocks if blocks > _FEW else 1

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
