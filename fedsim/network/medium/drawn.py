"""Spectrum that several transfers share while fading changes from block to block, on the clock.

The bits of a transfer are the integral of its rate over the fading blocks of its own client, the draws that a dedicated
bandwidth has too: alone on the medium it takes as long as there.
"""

import math
from typing import Final, cast

import numpy as np
from simpy import Environment, Event

from fedsim.arrays import FloatArray, IntArray
from fedsim.clock import call_after, call_next
from fedsim.network.medium.drawn_jobs import DrawnTransfer, Jobs, Rows
from fedsim.network.medium.drawn_plan import BlockPlan, BlocksPlan, Plan
from fedsim.network.medium.drawn_rules import BandRule, TimeRule
from fedsim.network.medium.queued import SAME_INSTANT_ULPS
from fedsim.network.radio.channel import LAST_BLOCK, MOST_BLOCKS, Channel
from fedsim.network.transfers import SpectrumBook

_ELEMENTS: Final = 2**13
"""Rates computed at once, few enough for a core's cache."""
_AT_LEAST: Final = 2**8
"""Rates that cost about as little as one."""
_AT_ONCE: Final = 400
"""Gains that are drawn in about the time of a fourth of them."""
_MANY: Final = 16
"""Transfers beyond which gains are drawn ahead of the first end."""
_FEW: Final = 3
"""Blocks that are looked at one after the other in less time than together."""


class DrawnSpectrum:
    """Bandwidth shared by transfers whose fading is drawn."""

    def __init__(self, env: Environment, channel: Channel, rule: BandRule | TimeRule) -> None:
        self.env, self.channel, self.rule = env, channel, rule
        self._band = rule if isinstance(rule, BandRule) else None
        self._turns = rule if isinstance(rule, TimeRule) else None
        self.bandwidth_hz = channel.bandwidth_hz
        self._efficiency: list[float] = (channel.ergodic_rate_bps / channel.bandwidth_hz).tolist()
        # The rate in a hertz is that in the whole band where time is divided, or power is spread and fading flat.
        self._jobs = Jobs(channel, rates=self._band is None or (channel.densest is None and channel.share_rates.flat))
        self._plan: Plan | None = None
        # The part of the band of each transfer, until one comes or goes.
        self._split: FloatArray | None = None
        self._timer: Event | None = None
        self._planning = self._due = False
        self._seen_s = self._changed_s = env.now
        self._carried = self._received = self._lost = self._most = 0.0
        self._presence_s = self._sojourn_s = self._came_s = 0.0

    def count_air(self) -> None:
        """Seconds on the air are those of the work, which is always counted."""

    @property
    def present(self) -> int:
        return self._jobs.n

    def send(self, client: int, bits: float, delay_s: float = 0.0) -> DrawnTransfer:
        transfer = self.make(client, bits, delay_s)
        self.start(transfer)
        return transfer

    def make(self, client: int, bits: float, delay_s: float = 0.0) -> DrawnTransfer:
        return DrawnTransfer(self, client, bits, delay_s)

    def start(self, transfer: DrawnTransfer) -> None:
        jobs, turns, client, bits = self._jobs, self._turns, transfer.client, transfer.bits
        transfer.came_s = now_s = self.env.now
        if bits > 0 and self._efficiency[client] > 0:
            self._count(now_s)
            if turns is None or not turns.waits(jobs):
                self._change(now_s)
            self._came_s += now_s
            self._split = None
            transfer.row = jobs.add(transfer, client, bits, self._efficiency[client])
        else:
            transfer.began_s = now_s
            if bits == 0:
                self._send_on(transfer)
            else:
                transfer.carries = False

    def forget(self, transfer: DrawnTransfer) -> None:
        """Remove a cancelled transfer; its share goes to the others at once."""
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
        row = transfer.row
        sent = float(self._jobs.bits[row] - self._jobs.left[row]) + self._planned(row)[0]
        return min(sent, transfer.bits)

    def work_done(self, transfer: DrawnTransfer) -> float:
        return float(self._jobs.work[transfer.row]) + self.bandwidth_hz * self._planned(transfer.row)[1]

    def _planned(self, row: int) -> tuple[float, float]:
        """Return the bits, and the seconds of the whole band, of a transfer by the present plan until now."""
        plan = self._plan
        if plan is not None:
            place = row if isinstance(plan.rows, slice) else _place(plan.rows, row)
            if place is not None and place < plan.rate_bps.shape[-1]:
                bits, seconds = plan.carried(self.env.now)
                return float(bits[place]), float(seconds[place])
        return 0.0, 0.0

    def book(self) -> SpectrumBook:
        now_s = self.env.now
        self._count(now_s)
        carried, under_way = self._carried, math.fsum(self._jobs.work[: self.present].tolist())
        if self._plan is not None:
            under_way += self.bandwidth_hz * math.fsum(self._plan.carried(now_s)[1].tolist())
            carried += self.bandwidth_hz * self._plan.busy_s(now_s)
        sojourn_s = self._sojourn_s + self.present * now_s - self._came_s
        return SpectrumBook(carried, self._received, self._lost, under_way, self._most, self._presence_s, sojourn_s)

    def _count(self, now_s: float) -> None:
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
        plan, jobs, turns = self._plan, self._jobs, self._turns
        if plan is None:
            return
        self._plan = None
        rows = plan.rows
        bits, seconds = plan.carried(now_s)
        left = jobs.left[rows] - bits
        if plan.ends(now_s):
            slack = plan.present_rate_bps(now_s) * (SAME_INSTANT_ULPS * math.ulp(now_s))
            slack += jobs.grain[rows]
            due = left <= slack
            if np.logical_or.reduce(due):
                left[due], self._due = 0.0, True
        jobs.left[rows] = left
        seconds *= self.bandwidth_hz
        jobs.work[rows] += seconds
        self._carried += self.bandwidth_hz * plan.busy_s(now_s)
        if turns is not None:
            turns.went_on(jobs, *plan.passed(now_s))

    def _go_on(self, now_s: float) -> None:
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

    def _look_ahead(self, now_s: float) -> Plan:
        jobs, channel, turns = self._jobs, self.channel, self._turns
        coherence_s = channel.fading.coherence_s
        block = 0 if math.isinf(coherence_s) else int(min(now_s / coherence_s, LAST_BLOCK))
        if (block + 1) * coherence_s - now_s <= SAME_INSTANT_ULPS * math.ulp(now_s):
            block += 1
        rows: Rows = slice(0, jobs.n) if turns is None else turns.rows(jobs)
        jobs.begin(rows, block, now_s)
        snr = jobs.snr[rows]
        if self._band is not None and self._split is None:
            self._split = self._band.split(jobs)
        split = self._split
        if split is not None and channel.densest is not None:
            snr = snr * np.minimum(1.0 / split, jobs.densest[rows])
        expected, blocks = self._horizon(rows, snr.size, split, now_s)
        blocks = max(1, min(blocks, MOST_BLOCKS - (block - jobs.oldest_block)))
        faded = None
        if block - jobs.oldest_block >= MOST_BLOCKS or block >= LAST_BLOCK:
            first = jobs.first_block[rows]
            faded = (block - first < MOST_BLOCKS) & (block < LAST_BLOCK)
            if not faded.any():
                coherence_s, blocks = math.inf, 1
            else:
                blocks = min(blocks, MOST_BLOCKS - (block - int(first[faded].min())))
        gain, known = jobs.gains(
            rows, block, blocks, max(min(expected, _AT_ONCE // snr.size), self._ahead(rows, block))
        )
        rate = channel.share_rates.rate_bps(snr, jobs.efficiency[rows], gain, split) if known is None else known
        first_s = coherence_s
        if coherence_s < math.inf:
            first_s = max((block + 1) * coherence_s - now_s, 2 * math.ulp(now_s))
        if faded is not None:
            rate = np.where(faded, rate, channel.bandwidth_hz * channel.rate.mean_efficiency(snr, channel.fading))
            gain = np.where(faded, gain, channel.share_rates.typical)
        if split is not None and len(rate) == 1:
            return BlockPlan(now_s, rows, rate[0] * split, split, first_s, 1.0)
        length_s = np.full(len(gain), coherence_s)
        length_s[0] = first_s
        whole = cast(FloatArray, split)
        parts = np.broadcast_to(whole, rate.shape) if turns is None else turns.turns(jobs, gain, rate, length_s)
        if len(rate) == 1:
            return _turn_plan(now_s, rows, rate[0], parts[0], first_s)
        return BlocksPlan.over(now_s, rows, rate * parts, parts, length_s)

    def _horizon(self, rows: Rows, count: int, split: FloatArray | None, now_s: float) -> tuple[int, int]:
        """Return in about how many blocks the first transfer ends, and for how many to look ahead."""
        few, jobs = self._few(count, now_s), self._jobs
        if few <= _FEW and count > _AT_ONCE // 2:
            # The first end does not count: one block is looked at, and its gains alone are drawn for it.
            return 1, 1
        expected = self._blocks_to_end(
            jobs.left[rows] / (jobs.efficiency[rows] * (1.0 / count if split is None else split))
        )
        return expected, self._blocks(expected, count, few)

    def _ahead(self, rows: Rows, block: int) -> int:
        """Return for how many blocks the gains of many transfers are drawn at once: few of them will have ended."""
        jobs = self._jobs
        if jobs.n <= _MANY or isinstance(rows, np.ndarray) or jobs.holds(block):
            return 1
        work = jobs.left[rows] / jobs.efficiency[rows]
        last = float(work.sum()) / (self.bandwidth_hz * self.channel.fading.coherence_s)
        return 1 + int(min(last / 2, _ELEMENTS // (2 * jobs.n)))

    def _blocks_to_end(self, work: FloatArray) -> int:
        blocks = float(work.min()) / (self.bandwidth_hz * self.channel.fading.coherence_s)
        return int(min(blocks, float(_ELEMENTS))) + 1

    def _few(self, rows: int, now_s: float) -> float:
        """Return the blocks until about the next change by others, or that cost little."""
        coherence_s = self.channel.fading.coherence_s
        if math.isinf(coherence_s):
            return 1.0
        quiet_s = max(self.env.peek() - now_s, 2 * (now_s - self._changed_s))
        return 1 + min(quiet_s / coherence_s, float(_ELEMENTS)) + _AT_LEAST // rows

    def _blocks(self, expected: int, rows: int, few: float) -> int:
        if math.isinf(self.channel.fading.coherence_s):
            return 1
        blocks = int(min(expected + 2 * math.sqrt(expected), few, _ELEMENTS // rows))
        return blocks if blocks > _FEW else 1

    def _let_go(self, transfer: DrawnTransfer, row: int, now_s: float) -> None:
        self._split = None
        moved = self._jobs.remove(row)
        if moved is not None:
            moved.row = row
        self._came_s -= transfer.came_s
        self._sojourn_s += now_s - transfer.came_s
        if not self._jobs.n:
            self._came_s = 0.0

    def _send_on(self, transfer: DrawnTransfer) -> None:
        transfer.leave(transfer.bits, transfer.work_done)
        transfer.send_on()


def _turn_plan(now_s: float, rows: Rows, rate_bps: FloatArray, part: FloatArray, length_s: float) -> BlockPlan:
    (served,) = part.nonzero()
    rows, part = served if isinstance(rows, slice) else rows[served], part[served]
    return BlockPlan(now_s, rows, rate_bps[served] * part, part, length_s, float(part.sum()))


def _place(rows: IntArray, row: int) -> int | None:
    found = np.flatnonzero(rows == row)
    return int(found[0]) if found.size else None
