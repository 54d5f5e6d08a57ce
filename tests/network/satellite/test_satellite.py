"""Satellites: windows by stepping through time, Kepler's orbit and slant ranges by hand, files."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from fedsim.errors import DataError
from fedsim.network import NETWORKS
from fedsim.network.satellite.satellite import EARTH_M, Constellation, FileContacts, SatelliteLinks, WindowFile, Windows
from fedsim.testing import check_network
from tests.support.media import built, of_crowd
from tests.support.step_by_step import bits_within, pieces_from, seconds_of

ONLY = np.array([0])


def over_windows(tmp_path, rows, clients, **network):
    """Return links over windows of a file, in periods of 100 s."""
    (tmp_path / "windows.csv").write_text(f"client,start_s,end_s,note\n{rows}")
    passes = {"kind": "file", "path": str(tmp_path / "windows.csv"), "period_s": 100.0, **network.pop("passes", {})}
    return built(NETWORKS.make({"kind": "satellite", "passes": passes, **network}), np.zeros((clients, 2)))


@st.composite
def some_windows(draw):
    edges = sorted(draw(st.lists(st.integers(0, 60), min_size=2, max_size=8, unique=True)))
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    return [(first, end - first) for first, end in pairs]


@given(
    windows=some_windows(),
    start=st.integers(0, 500),
    bits=st.integers(1, 200),
    after=st.sampled_from(["repeat", "none"]),
)
def test_a_message_goes_on_from_window_to_window(windows, start, bits, after):
    """At 1 bit/s in windows and 0 between them; asked in the middle of a second."""
    start_s, length_s = (np.array([column], dtype=float) for column in zip(*windows, strict=True))
    contacts = FileContacts(Windows(start_s, length_s, 60.0, after == "none"), 0.25)
    links, asked_s = SatelliteLinks(contacts, 1.0, 1.0), np.array([start + 0.5])
    edges_s = [0.0, *np.stack([start_s, start_s + length_s], axis=-1).ravel().tolist(), 60.0]

    def pieces():
        return pieces_from(start + 0.5, edges_s, [*[0.0, 1.0] * len(windows), 0.0], after)

    found_s = links.uplink_s(ONLY, 1, asked_s, bits - 0.25)[0]
    assert found_s == pytest.approx(seconds_of(bits - 0.25, pieces()) + 0.25, abs=1e-9)
    sent = links.carried_bits(ONLY, 1, asked_s, np.array([bits - 0.25]), bits / 2, up=False)[0]
    assert sent == pytest.approx(min(bits / 2, bits_within(bits - 0.25, pieces())), abs=1e-9)


@given(windows=some_windows(), contact=st.floats(0.01, 200.0))
def test_the_mean_is_that_over_all_starts(windows, contact):
    start_s, length_s = (np.array([column], dtype=float) for column in zip(*windows, strict=True))
    found = Windows(start_s, length_s, 60.0)
    starts_s = (np.arange(6000) + 0.5) / 100
    took_s = found.until_s(np.zeros(6000, dtype=np.int64), starts_s, contact)
    # The midpoint rule errs by at most a step at each jump: as many as windows, each of at most a period.
    assert found.mean_until_s(contact)[0] == pytest.approx(took_s.mean(), abs=0.02 * len(windows) + 0.01)


def test_waits_for_a_window_by_hand():
    """A window of 20 s in 60: two thirds of all starts wait, for 20 s on average."""
    windows = Windows(np.array([[10.0]]), np.array([[20.0]]), 60.0)
    assert windows.mean_until_s(1e-9)[0] == pytest.approx(2 / 3 * 20, abs=1e-6)
    windows = Windows(np.array([[60.0]]), np.array([[0.0]]), 60.0)
    assert windows.until_s(ONLY, np.zeros(1), 1.0)[0] == windows.mean_until_s(1.0)[0] == np.inf


def test_an_orbit_by_hand():
    """550 km: 95.5 min by Kepler; at 25 degrees the range is sqrt(R^2 sin^2 + h^2 + 2 R h) - R sin = 1,123 km."""
    orbit = Constellation()
    assert orbit.orbit_s == pytest.approx(2 * np.pi * np.sqrt(6_921_000.0**3 / 3.986004418e14), rel=1e-9)
    contacts = of_crowd(Constellation(off_track=0.0), 3)
    sine = np.sin(np.radians(25.0))
    edge_m = np.sqrt((EARTH_M * sine) ** 2 + 550e3**2 + 2 * EARTH_M * 550e3) - EARTH_M * sine
    half_s = contacts.windows.total_s / 2
    np.testing.assert_allclose(contacts.range_m(np.arange(3), half_s), edge_m, rtol=1e-9)
    np.testing.assert_allclose(contacts.range_m(np.arange(3), np.zeros(3)), 550e3, rtol=1e-9)
    # Overhead, a pass lasts for twice the widest angle of the orbit.
    np.testing.assert_allclose(contacts.windows.total_s, orbit.orbit_s * orbit.widest / np.pi)
    # The delay at the very middle of a pass, some periods later.
    later_s = contacts.middle_s + 7 * contacts.windows.period_s
    np.testing.assert_allclose(contacts.delay_s(np.arange(3), later_s) * 299_792_458, 550e3, rtol=1e-6)


def test_passes_off_the_track_are_shorter_and_farther_and_many_leave_no_gap():
    contacts = of_crowd(Constellation(off_track=0.9), 50, 1)
    order = np.argsort(contacts.nearest)
    assert np.all(np.diff(contacts.windows.total_s[order]) < 0)
    assert np.all(np.diff(contacts.range_m(order, np.zeros(50))) > 0)
    contacts = of_crowd(Constellation(satellites=60, off_track=0.5), 20, 1)
    np.testing.assert_allclose(contacts.windows.total_s, contacts.windows.period_s)


def test_rates_may_differ_and_are_described(tmp_path):
    """10 s of contact in 100: a tenth of the rates on average; 5 Mbit take 5 s at 1 Mbit/s and 2.5 s at 2 Mbit/s."""
    options = {"uplink_bps": [1e6, 2e6], "downlink_bps": 4e6, "passes": {"delay_s": 0.0}}
    links, both = over_windows(tmp_path, "0,0,10,\n1,0,10,\n", 2, **options), np.arange(2)
    assert links.uplink_s(both, 1, np.zeros(2), 5e6).tolist() == pytest.approx([5.0, 2.5])
    assert links.uplink_s(both[1:], 1, np.zeros(1), 5e6).tolist() == pytest.approx([2.5])
    np.testing.assert_allclose(links.describe().rate_bps, [[4e5, 4e5], [1e5, 2e5]])
    # The mean over all starts, on a grid.
    starts_s = (np.arange(10_000) + 0.5) / 100
    for client in both:
        took_s = links.uplink_s(np.full(10_000, client), 1, starts_s, 5e6)
        assert links.expected_uplink_s(5e6)[client] == pytest.approx(took_s.mean(), abs=0.02)
    found = links.carried_bits(both, 1, np.zeros(2), np.full(2, 2.0), 5e6, up=True)
    assert found.tolist() == pytest.approx([2e6, 4e6])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("client,start_s\n0,1\n", "no column 'end_s'"),
        ("client,start_s,end_s\n0,1,x\n", "end_s, row 1: 'x' is not allowed"),
        ("client,start_s,end_s\n0,5,4\n", "end_s, row 1: '4' is not allowed; allowed: ends of at least 5 s"),
        ("client,start_s,end_s\n9,1,4\n", "the ids in it are 9, and the clients are 0, 1, 2"),
        ("client,start_s,end_s\n", "it has no row"),
        ("client,start_s,end_s\n0,1,1\n", "must have windows"),
        ("client,start_s,end_s\n0,1,inf\n", "end_s, row 1: 'inf' is not allowed"),
        ("client,start_s,end_s\n0,1,\n", "end_s, row 1: nothing is not allowed"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, why):
    path = tmp_path / "windows.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=why):
        of_crowd(WindowFile(path=str(path), after="none"), 3)


def test_what_follows_the_last_window_is_stated(tmp_path):
    path = tmp_path / "windows.csv"
    path.write_text("client,start_s,end_s\n0,0,1\n")
    for options in ({}, {"period_s": 10.0, "after": "none"}, {"after": "repeat"}):
        with pytest.raises(ValidationError, match=r"period_s is .*given.*; allowed: period_s"):
            WindowFile(path=str(path), **options)
    contacts = of_crowd(WindowFile(path=str(path), after="none"), 1)
    assert (contacts.windows.period_s, contacts.windows.ends) == (1.0, True)
    assert not of_crowd(WindowFile(path=str(path), period_s=10.0), 1).windows.ends


def test_windows_go_over_the_end_of_the_period_and_overlap(tmp_path):
    """From 22:00 to 06:00, in rows that overlap: contact for 8 of 24 hours."""
    path = tmp_path / "windows.csv"
    path.write_text("client;start;end\n0;23:00;06:00\n0;22:00;23:30:00\n")
    windows = of_crowd(WindowFile(path=str(path), period_s=86400.0), 1).windows
    assert windows.start_s.tolist() == [[0.0, 79200.0]]
    assert windows.length_s.tolist() == [[21600.0, 7200.0]]


@pytest.mark.parametrize("satellites", [1, 40])
def test_the_contract_is_kept(satellites):
    check_network({"kind": "satellite", "passes": {"kind": "constellation", "satellites": satellites}}, draws=200)
