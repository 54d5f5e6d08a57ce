"""TCP's latency: a model that goes round trip by round trip, written here, and closed forms by hand."""

import math

import numpy as np
import pytest

from fedsim.network.transport.tcp import TcpPath
from tests.support.tcp_sender import Sender

LOSSLESS = TcpPath(0.0, 10.0, 2, 1.0)


def rounds_without_loss(segments, window, first=10.0, growth=1.5):
    """Return the round trips of a sender that sends its window in each, and the part of the last one that it needs."""
    trips, w = 0.0, min(first, window)
    while segments > w:
        segments, trips, w = segments - w, trips + 1, min(w * growth, window)
    return trips + segments / w


@pytest.mark.parametrize("window", [4.0, 10.0, 50.0, 1e9])
@pytest.mark.parametrize("segments", [1, 7, 10, 25, 100, 1000, 20_000])
def test_without_loss_it_is_within_a_round_trip_of_the_step_by_step_model(segments, window):
    took = float(LOSSLESS.latency_s(segments, window, 0.1)) / 0.1
    assert took == pytest.approx(rounds_without_loss(segments, window), abs=1.0)


def test_after_whole_round_trips_of_slow_start_it_is_exact():
    """10 (1.5^k - 1) / 0.5 segments are sent in k round trips."""
    for trips in range(1, 12):
        segments = 10 * (1.5**trips - 1) / 0.5
        assert rounds_without_loss(segments, math.inf) == pytest.approx(trips)
        assert LOSSLESS.latency_s(segments, 1e9, 0.25) == pytest.approx(trips * 0.25)


def test_a_full_window_goes_on_at_its_rate():
    """With a window of 10 from the start, d segments take d / 10 round trips."""
    np.testing.assert_allclose(LOSSLESS.latency_s([10, 35, 400], 10.0, 0.2), [0.2, 0.7, 8.0])
    np.testing.assert_allclose(LOSSLESS.latency_s([10_000, 20_000], 64.0, 0.2) @ [-1, 1], 10_000 / 64 * 0.2)


def sample_s(path, segments, window, rtt_s, runs, after=None):
    rng = np.random.default_rng(0)
    return np.array([Sender(rng, path, window, rtt_s, after).time_s(segments) for _ in range(runs)])


@pytest.mark.statistical
@pytest.mark.parametrize("window", [20.0, 1000.0])
@pytest.mark.parametrize("segments", [20, 100, 1000])
@pytest.mark.parametrize("loss", [0.01, 0.03, 0.1])
def test_with_losses_it_is_near_the_step_by_step_model(loss, segments, window):
    """Cardwell et al. find errors of this size; what is found here: at most 13 %, beside four standard errors."""
    path = TcpPath(loss, 10.0, 2, 1.0)
    took_s = sample_s(path, segments, window, 0.1, 60 if segments == 1000 else 200)
    found = float(path.latency_s(segments, window, 0.1))
    assert found == pytest.approx(took_s.mean(), abs=0.15 * found + 4 * took_s.std() / math.sqrt(took_s.size))


def test_where_losses_are_rare_the_closed_form_is_slow_because_it_forgets_the_window_of_slow_start():
    """Loss 0.1 %: slow start reaches some 300 segments, the steady window is 37; 40 messages of 10,000 segments."""
    path = TcpPath(1e-3, 10.0, 2, 1.0)
    steady = 2 / 3 + math.sqrt(8 * 0.999 / 0.006 + 4 / 9)
    found = float(path.latency_s(10_000, 1000.0, 0.1))
    kept, forgotten = (sample_s(path, 10_000, 1000.0, 0.1, 40, after).mean() for after in (None, steady / 2))
    assert found > 1.2 * kept
    assert found == pytest.approx(forgotten, rel=0.08)


def test_the_steady_rate_is_the_square_root_law_where_losses_are_few():
    """Mathis et al., 1997: ``sqrt(3 / (2 b p)) / RTT`` without timeouts and limits of the window."""
    path = TcpPath(1e-7, 10.0, 2, 1e-3)
    assert float(path.steady_rate(1e9, 0.1)) == pytest.approx(math.sqrt(3 / (2 * 2 * 1e-7)) / 0.1, rel=0.01)
    assert float(path.steady_rate(50.0, 0.1)) == pytest.approx(500.0, rel=0.01)


def test_timeouts_by_hand():
    """Six back-offs of a factor of two: G(p) = 1 + p + 2 p^2 + 4 p^3 + 8 p^4 + 16 p^5 + 32 p^6."""
    p = 0.5
    by_hand = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    assert TcpPath(p, 10.0, 2, 3.0).timeouts_s() == pytest.approx(by_hand * 3.0 / (1 - p))
    assert TcpPath(p, 10.0, 2, 3.0).timeout_share([1.0, 3.0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("loss", [0.0, 1e-4, 0.02, 0.3])
def test_more_segments_never_take_less_time(loss):
    path, sizes = TcpPath(loss, 10.0, 2, 1.0), np.geomspace(0.1, 1e6, 400)
    for window in (1.0, 10.0, 300.0):
        assert np.all(np.diff(path.latency_s(sizes, window, 0.1)) > 0)
