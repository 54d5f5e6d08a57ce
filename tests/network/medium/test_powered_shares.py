"""Bands that are divided among clients with more power for a hertz in a smaller part, against rates solved anew."""

import numpy as np
import pytest
from scipy.optimize import brentq
from simpy import Environment

from fedsim.network import NoFading, Shannon
from fedsim.network.medium.disciplines import MakespanWithPower
from fedsim.network.medium.gain_sharing import EqualWithPower
from fedsim.network.medium.spectrum import SharedSpectrum
from fedsim.network.radio.channel import Channel
from fedsim.streams import Streams

BAND_HZ = 1e6


class Literal:
    """Transfers (start, client, bits, cancelled at), played from one change of who is present to the next."""

    def __init__(self, channel, together):
        self.channel, self.together = channel, together

    def rate_bps(self, client, part):
        snr, densest = self.channel.snr[client], self.channel.densest[client]
        return BAND_HZ * part * np.log2(1 + snr * min(1 / part, densest) / 10**0.3)

    def part(self, client, bits, time_s):
        """Return the part of the band that carries some bits in a time; above 1 where the whole band does not."""

        def missing(log_part):
            return self.rate_bps(client, np.exp(log_part)) * time_s - bits

        return np.exp(brentq(missing, -60.0, 0.0, xtol=1e-13)) if missing(0.0) > 0 else 2.0

    def rates(self, left):
        if not self.together:
            return {client: self.rate_bps(client, 1 / len(left)) for client in left}
        alone_s = sum(bits / self.rate_bps(client, 1.0) for client, bits in left.items())
        log_s = brentq(
            lambda log_s: sum(self.part(*one, np.exp(log_s)) for one in left.items()) - 1.0,
            np.log(alone_s / len(left)) - 0.1,
            np.log(alone_s) + 0.1,
            xtol=1e-13,
        )
        return {client: bits / np.exp(log_s) for client, bits in left.items()}

    def play(self, transfers):
        """Return the instant at which each client is done, and the bits of those that are cancelled."""
        changes = sorted(
            (time_s, client, bits)
            for start_s, client, bits, cancel_s in transfers
            for time_s, bits in ((start_s, bits), (cancel_s, 0.0))
        )
        left, size, now_s, ends_s, sent = {}, {one[1]: one[2] for one in transfers}, 0.0, {}, {}
        for time_s, client, bits in changes:
            while left:
                rates = self.rates(left)
                step_s = min(left[one] / rates[one] for one in left)
                if now_s + step_s > time_s:
                    left = {one: left[one] - rates[one] * (time_s - now_s) for one in left}
                    break
                now_s += step_s
                left = {one: left[one] - rates[one] * step_s for one in left}
                done = [one for one in left if left[one] <= 1e-9 * size[one]]
                ends_s |= dict.fromkeys(done, now_s)
                left = {one: bits for one, bits in left.items() if one not in done}
            now_s = time_s
            if bits:
                left[client] = bits
            elif client in left:
                sent[client] = size[client] - left.pop(client)
        return ends_s, sent


def played(channel, discipline, transfers):
    env, ends_s, sent = Environment(), {}, {}
    discipline.prepare(channel)
    medium, efficiency = SharedSpectrum(env, BAND_HZ, discipline), channel.ergodic_rate_bps / BAND_HZ

    def upload(start_s, client, bits, cancel_s):
        yield env.timeout(start_s)
        transfer = medium.send(bits, efficiency[client])
        yield transfer.done | env.timeout(cancel_s - start_s)
        if transfer.done.triggered:
            ends_s[client] = env.now
        else:
            sent[client] = transfer.sent_bits()
            transfer.cancel()

    for one in transfers:
        env.process(upload(*one))
    env.run()
    return ends_s, sent


@pytest.mark.parametrize(("rule", "together"), [(EqualWithPower, False), (MakespanWithPower, True)])
def test_clients_of_unlike_powers_join_and_leave_as_rates_solved_anew_say(rule, together):
    """Clients of about one SNR, 0.05 dB, are of one kind, which is 0.6 % of a rate at most."""
    draw = np.random.default_rng(5)
    for _ in range(15):
        count = draw.integers(1, 7)
        snr, densest = 10 ** draw.uniform(-0.5, 3.0, count), draw.choice([1.0, 1.5, 4.0, np.inf], count)
        densest[0] = 4.0
        channel = Channel(snr, BAND_HZ, NoFading(), "fading", Streams(0), Shannon(ceiling="none"), densest)
        starts_s = draw.choice([0.0, 0.3, 1.1], count)
        cancels_s = np.where(draw.random(count) < 0.3, starts_s + draw.uniform(0.01, 1.0, count), 1e6)
        transfers = list(zip(starts_s, range(count), 10 ** draw.uniform(4, 7, count), cancels_s, strict=True))
        expected_s, expected_bits = Literal(channel, together).play(transfers)
        ends_s, sent = played(channel, rule(), transfers)
        assert ends_s == pytest.approx(expected_s, rel=6e-3)
        assert sent == pytest.approx(expected_bits, rel=6e-3)
