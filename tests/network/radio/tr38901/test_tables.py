"""TR 38.901 against its tables, worked out by hand: every number here comes from the tables, none from fedsim."""

import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from fedsim.network import (
    PATH_LOSSES,
    Cell,
    IndoorFactory,
    IndoorOffice,
    RandomPathLoss,
    RuralMacro,
    UrbanMacro,
    UrbanMicro,
)
from fedsim.network.radio.tr38901.outdoor import floor_height_m, indoor_loss_db, material_loss_db, wall_loss_db
from fedsim.streams import Streams

CLIENTS = 20_000


def lg(x):
    return math.log10(x)


# d_3D of 100 m and 23.5 m of height difference is sqrt(10552.25) = 102.7241 m, log10 of it 2.011673.
UMA_100 = 2.011673


@pytest.mark.parametrize(
    ("law", "distance_m", "loss_db"),
    [
        # d'_BP = 4 * 24 * 0.5 * 2e9 / 3e8 = 320 m; 28 + 22 * 2.011673 + 6.020600
        (UrbanMacro(carrier_hz=2e9), 100.0, 78.27741),
        # 28 + 40 lg d_3D + 20 lg 2 - 9 lg(d'_BP^2 + 23.5^2) = 28 + 120.00480 + 6.02060 - 45.11372
        (UrbanMacro(carrier_hz=2e9), 1000.0, 28 + 20 * lg(1000552.25) + 20 * lg(2) - 9 * lg(102400 + 552.25)),
        (UrbanMacro(carrier_hz=6e9), 500.0, 28 + 11 * lg(250000 + 552.25) + 20 * lg(6)),  # d'_BP = 960 m
        # d'_BP = 4 * 9 * 0.5 * 2e9 / 3e8 = 120 m; 32.4 + 10.5 lg(10000 + 72.25) + 6.0206
        (UrbanMicro(carrier_hz=2e9), 100.0, 80.45347),
        # 32.4 + 20 lg(90000 + 72.25) + 6.0206 - 9.5 lg(14400 + 72.25) = 32.4 + 99.09182 + 6.0206 - 39.52502
        (UrbanMicro(carrier_hz=2e9), 300.0, 97.98740),
        # d_BP = 2 pi 35 * 1.5 * 0.7e9 / 3e8 = 769.69 m; 5^1.72 = 15.9303, times 0.03 0.477909, times 0.044 0.700933
        (
            RuralMacro(carrier_hz=0.7e9),
            500.0,
            20 * lg(40 * math.pi * math.sqrt(251122.25) * 0.7 / 3)
            + 0.477909 * lg(math.sqrt(251122.25))
            - 0.700933
            + 0.002 * 0.69897 * math.sqrt(251122.25),
        ),
        (
            RuralMacro(carrier_hz=0.7e9),
            3000.0,
            20 * lg(40 * math.pi * 769.6902 * 0.7 / 3)
            + 0.477909 * lg(769.6902)
            - 0.700933
            + 0.002 * 0.69897 * 769.6902
            + 40 * lg(math.sqrt(9001122.25) / 769.6902),
        ),
        # d_3D = sqrt(20^2 + 2^2) = 20.09975; 32.4 + 17.3 * 1.303191 + 10.881361
        (IndoorOffice(carrier_hz=3.5e9), 20.0, 65.82657),
        (IndoorOffice(carrier_hz=30e9), 100.0, 32.4 + 8.65 * lg(10004) + 20 * lg(30)),
        # d_3D = sqrt(50^2 + 6.5^2) = 50.42073; 31.84 + 21.5 * 1.702609 + 19 * 0.544068
        (IndoorFactory(carrier_hz=3.5e9), 50.0, 78.78339),
    ],
)
def test_loss_with_a_line_of_sight_by_hand(law, distance_m, loss_db):
    assert float(law.los_loss_db(distance_m)) == pytest.approx(loss_db, abs=1e-4)


@pytest.mark.parametrize(
    ("law", "distance_m", "loss_db"),
    [
        (UrbanMacro(carrier_hz=2e9), 100.0, 13.54 + 39.08 * UMA_100 + 6.0206),
        (
            UrbanMacro(carrier_hz=2e9, client_height_m=10.0),
            700.0,
            13.54 + 19.54 * lg(490000 + 225) + 6.0206 - 0.6 * 8.5,
        ),
        # 35.3 * 2.001563 + 22.4 + 21.3 * 0.30103
        (UrbanMicro(carrier_hz=2e9), 100.0, 99.46710),
        (UrbanMicro(carrier_hz=28e9, client_height_m=4.5), 200.0, 17.65 * lg(40030.25) + 22.4 + 21.3 * lg(28) - 0.9),
        (
            RuralMacro(carrier_hz=0.7e9),
            1000.0,
            161.04
            - 7.1 * lg(20)
            + 7.5 * lg(5)
            - (24.37 - 3.7 / 49) * lg(35)
            + (43.42 - 3.1 * lg(35)) * (0.5 * lg(1001122.25) - 3)
            + 20 * lg(0.7)
            - (3.2 * lg(17.625) ** 2 - 4.97),
        ),
        (IndoorOffice(carrier_hz=3.5e9), 20.0, 38.3 * 1.303191 + 17.3 + 24.9 * 0.544068),
        (IndoorFactory(carrier_hz=3.5e9, hall="sh"), 50.0, 32.4 + 23 * 1.702609 + 10.88136),
        (IndoorFactory(carrier_hz=3.5e9, hall="dh"), 50.0, 33.63 + 21.9 * 1.702609 + 10.88136),
        (IndoorFactory(carrier_hz=3.5e9, hall="sl", base_height_m=1.5), 50.0, 33 + 25.5 * 1.69897 + 10.88136),
        (IndoorFactory(carrier_hz=3.5e9, hall="dl", base_height_m=1.5), 50.0, 18.6 + 35.7 * 1.69897 + 10.88136),
        # Nearer than 25.7 m the formula of DL lies below that of SL, which is then taken.
        (IndoorFactory(carrier_hz=3.5e9, hall="dl", base_height_m=1.5), 10.0, 33 + 25.5 + 10.88136),
        (IndoorFactory(carrier_hz=3.5e9, hall="hh"), 50.0, 78.78339),
    ],
)
def test_loss_without_a_line_of_sight_by_hand(law, distance_m, loss_db):
    assert float(law.nlos_loss_db(distance_m)) == pytest.approx(loss_db, abs=1e-4)


@pytest.mark.parametrize(
    ("law", "distance_m", "probability"),
    [
        (UrbanMacro(), 18.0, 1.0),
        (UrbanMacro(), 100.0, 0.18 + math.exp(-100 / 63) * 0.82),  # 0.347671
        (UrbanMacro(client_height_m=13.0), 500.0, 0.036 + math.exp(-500 / 63) * 0.964),
        # C' = ((18 - 13) / 10)^1.5 = 0.353553; bend 1.25 * 2^3 * exp(-200 / 150) = 2.635971
        (UrbanMacro(client_height_m=18.0), 200.0, (0.09 + math.exp(-200 / 63) * 0.91) * (1 + 0.353553 * 2.635971)),
        (UrbanMicro(), 10.0, 1.0),
        (UrbanMicro(), 100.0, 0.18 + math.exp(-100 / 36) * 0.82),  # 0.230984
        (RuralMacro(), 10.0, 1.0),
        (RuralMacro(), 1010.0, math.exp(-1)),
        (IndoorOffice(), 1.2, 1.0),
        (IndoorOffice(), 5.9, math.exp(-1)),
        (IndoorOffice(), 39.1, 0.32 * math.exp(-1)),
        (IndoorOffice(office="open"), 5.0, 1.0),
        (IndoorOffice(office="open"), 40.4, math.exp(-0.5)),
        (IndoorOffice(office="open"), 260.7, 0.54 * math.exp(-1)),
        # k = -10 / ln 0.8 = 44.81420
        (IndoorFactory(hall="sl"), 44.81420, math.exp(-1)),
        # k = 44.81420 * (8 - 1.5) / (4 - 1.5) = 116.51692
        (IndoorFactory(hall="sh", clutter_height_m=4.0), 116.51692, math.exp(-1)),
        (IndoorFactory(hall="dl", clutter_density=0.6, clutter_size_m=2.0), 10.0, 0.4**5),
        (
            IndoorFactory(hall="dh", clutter_density=0.6, clutter_size_m=2.0, clutter_height_m=6.0),
            13.0,
            0.4 ** (6.5 * 4.5 / 6.5),
        ),
        (IndoorFactory(hall="hh"), 500.0, 1.0),
    ],
)
def test_probability_of_a_line_of_sight_by_hand(law, distance_m, probability):
    assert float(law.los_probability(distance_m)) == pytest.approx(probability, rel=1e-5)


@pytest.mark.parametrize(
    ("law", "seen_db", "unseen_db"),
    [
        (UrbanMacro(), 4.0, 6.0),
        (UrbanMicro(), 4.0, 7.82),
        (RuralMacro(), 4.0, 8.0),
        (IndoorOffice(), 3.0, 8.03),
        (IndoorFactory(hall="sl"), 4.3, 5.7),
        (IndoorFactory(hall="dl"), 4.3, 7.2),
        (IndoorFactory(hall="sh"), 4.3, 5.9),
        (IndoorFactory(hall="dh"), 4.3, 4.0),
    ],
)
def test_sigmas_of_the_table(law, seen_db, unseen_db):
    np.testing.assert_array_equal(law.sigma_db([True, False]), [seen_db, unseen_db])
    drawn = law.draw(np.full(400, 60.0), 0, Streams(1))
    np.testing.assert_array_equal(drawn.sigma_db, np.where(drawn.los, seen_db, unseen_db))
    assert isinstance(law, RandomPathLoss)


def test_rural_shadowing_is_wider_beyond_the_breakpoint():
    drawn = RuralMacro(carrier_hz=0.7e9).draw(np.tile([760.0, 780.0], 200), 0, Streams(0))
    np.testing.assert_array_equal(drawn.sigma_db[drawn.los], np.where(np.tile([True, False], 200), 4, 6)[drawn.los])


@pytest.mark.parametrize("law", [UrbanMacro(), UrbanMicro(), RuralMacro()], ids=["uma", "umi", "rma"])
def test_loss_is_continuous_at_the_breakpoint(law):
    knee = float(law.breakpoint_m())
    step = float(law.los_loss_db(knee + 1e-6) - law.los_loss_db(knee - 1e-6))
    # The slopes meet where d_3D, and not d_2D, is the breakpoint: rural macro cells have a step of 0.02 dB.
    assert abs(step) < 0.03


@pytest.mark.parametrize("kind", ["uma", "umi", "rma", "inh", "inf"])
def test_nearer_than_the_least_distance_the_loss_stays(kind):
    law = PATH_LOSSES.make(kind)
    least = 1.0 if kind in ("inh", "inf") else 10.0
    np.testing.assert_array_equal(law.los_loss_db([0.0, least / 2]), law.los_loss_db([least, least]))
    far = np.geomspace(least, 2e4, 400)
    assert np.all(law.nlos_loss_db(far) >= law.los_loss_db(far))
    assert np.all(np.isfinite(law.loss_db(np.array([0.0, 1e6]))))


@pytest.mark.statistical
@pytest.mark.parametrize("law", [UrbanMacro(), IndoorOffice()], ids=["uma", "inh"])
def test_lines_of_sight_are_as_frequent_as_the_table_says(law):
    distance = np.full(CLIENTS, 30.0)
    los = law.draw(distance, 0, Streams(3)).los
    share = 18 / 30 + math.exp(-30 / 63) * 0.4 if isinstance(law, UrbanMacro) else 0.32 * math.exp(-23.5 / 32.6)
    assert abs(los.mean() - share) < 5 * math.sqrt(share * (1 - share) / CLIENTS)
    np.testing.assert_array_equal(law.draw(distance[:7], 0, Streams(3)).los, los[:7])
    assert np.any(law.draw(distance, 1, Streams(3)).los != los)


@pytest.mark.parametrize(
    ("material", "loss_db"), [("glass", 2.7), ("irr-glass", 24.05), ("concrete", 19.0), ("wood", 5.27)]
)
def test_materials_by_hand(material, loss_db):
    assert material_loss_db(material, 3.5e9) == pytest.approx(loss_db, abs=1e-12)


def test_walls_by_hand():
    # 5 - 10 lg(0.3 * 10^-0.27 + 0.7 * 10^-1.9) = 5 - 10 lg(0.161109 + 0.008812)
    assert wall_loss_db("low", 3.5e9) == pytest.approx(12.69752, abs=1e-4)
    # 5 - 10 lg(0.7 * 10^-2.405 + 0.3 * 10^-1.9) = 5 - 10 lg(0.0027549 + 0.0037768)
    assert wall_loss_db("high", 3.5e9) == pytest.approx(26.84974, abs=1e-4)
    np.testing.assert_array_equal(indoor_loss_db([0.0, 10.0]), [0.0, 5.0])


@pytest.mark.statistical
@pytest.mark.parametrize(("share", "wall_db", "sigma"), [(0.0, 12.69752, 4.4), (1.0, 26.84974, 6.5)])
def test_clients_indoors_lose_what_the_wall_and_the_way_inside_cost(share, wall_db, sigma):
    # So far out that hardly anybody has a line of sight, and where 25 m more or less hardly matter.
    distance = np.full(CLIENTS, 4000.0)
    options = {"carrier_hz": 3.5e9, "high_loss_share": share}
    inside, outside = (
        UrbanMicro(indoor_share=indoor, **options).draw(distance, 0, Streams(5)) for indoor in (1.0, 0.0)
    )
    both_unseen = ~inside.los & ~outside.los
    more = (inside.loss_db - outside.loss_db)[both_unseen]
    # The lesser of two numbers uniform up to 25 m has mean 25/3 and variance 25^2/18.
    deviation = math.hypot(sigma, 0.5 * 25 / math.sqrt(18))
    assert more.mean() == pytest.approx(wall_db + 0.5 * 25 / 3, abs=5 * deviation / math.sqrt(more.size))
    # Normal but for the small share of the way inside: the fourth moment is at most 3 sigma^4.
    assert more.std() == pytest.approx(deviation, rel=5 / math.sqrt(2 * more.size))
    np.testing.assert_array_equal(inside.sigma_db, 7.0)
    # A cell adds its shadowing indoors.
    place = np.column_stack([distance, np.zeros(CLIENTS)])
    _, loss = Cell(path_loss=UrbanMicro(indoor_share=1.0, **options)).losses(place, np.zeros((1, 2)), Streams(5))
    more = loss[both_unseen, 0] - outside.loss_db[both_unseen]
    assert more.std() == pytest.approx(math.hypot(deviation, 7.0), rel=5 / math.sqrt(2 * more.size))


@pytest.mark.statistical
def test_the_building_of_single_frequency_studies_is_that_of_table_7433():
    distance, options = np.full(CLIENTS, 4000.0), {"carrier_hz": 3.5e9, "penetration": "single-frequency"}
    inside, again, outside = (
        UrbanMacro(indoor_share=indoor, **options).draw(distance, site, Streams(5))
        for indoor, site in ((1.0, 0), (1.0, 1), (0.0, 0))
    )
    unseen = ~inside.los & ~outside.los
    more = (inside.loss_db - outside.loss_db)[unseen]
    # 20 dB and half a decibel for each of up to 25 m, all equally likely: deviation 12.5 / sqrt(12).
    assert more.min() > 20.0
    assert more.max() < 32.5
    assert more.mean() == pytest.approx(26.25, abs=5 * 12.5 / math.sqrt(12 * more.size))
    assert stats.kstest((more - 20.0) / 12.5, stats.uniform.cdf).pvalue > 1e-6
    # Another number for each link.
    both = unseen & ~again.los
    assert abs(np.corrcoef(inside.loss_db[both], again.loss_db[both])[0, 1]) < 5 / math.sqrt(both.sum())
    np.testing.assert_array_equal(inside.sigma_db, 7.0)


def test_rural_buildings_are_low_loss():
    distance = np.full(2000, 4000.0)
    drawn, outside = (RuralMacro(indoor_share=share).draw(distance, 0, Streams(5)) for share in (1.0, 0.0))
    np.testing.assert_array_equal(drawn.sigma_db, 8.0)
    # At 0.7 GHz: 5 - 10 lg(0.3 * 10^-0.214 + 0.7 * 10^-0.78); inside half a decibel a metre over a mean of 10/3 m.
    wall = 5 - 10 * lg(0.3 * 10**-0.214 + 0.7 * 10**-0.78)
    more = (drawn.loss_db - outside.loss_db)[~drawn.los & ~outside.los]
    deviation = math.hypot(4.4, 0.5 * 10 / math.sqrt(18))
    assert more.mean() == pytest.approx(wall + 5 / 3, abs=5 * deviation / math.sqrt(more.size))


def test_some_clients_are_indoors_and_a_further_client_changes_nobody():
    law = UrbanMacro(indoor_share=0.4, high_loss_share=0.5)
    many, few = (law.draw(np.linspace(50, 400, 900)[:k], 2, Streams(1)) for k in (900, 30))
    np.testing.assert_array_equal(many.loss_db[:30], few.loss_db)
    indoors = np.count_nonzero(many.sigma_db == 7.0)
    assert abs(indoors - 360) < 5 * math.sqrt(900 * 0.4 * 0.6)


@pytest.mark.statistical
def test_high_clients_stand_over_an_environment_of_drawn_height():
    law = UrbanMacro(client_height_m=20.0)
    u = Streams(0).uniform("test", np.arange(CLIENTS))
    heights = law.environment_height_m(np.full(CLIENTS, 200.0), u)
    # C = 0.7^1.5 * 1.25 * 2^3 * exp(-4/3) = 1.543794; 12, 15 and 18 m share the rest.
    low = 1 / 2.543794
    counts = [np.count_nonzero(heights == h) for h in (1.0, 12.0, 15.0, 18.0)]
    expected = CLIENTS * np.array([low, *[(1 - low) / 3] * 3])
    assert stats.chisquare(counts, expected).pvalue > 1e-6
    np.testing.assert_array_equal(law.environment_height_m([10.0, 18.0], [0.1, 0.999]), [1.0, 1.0])
    # d'_BP = 4 (25 - 12) (20 - 12) 2e9 / 3e8
    assert float(law.breakpoint_m(12.0)) == pytest.approx(2773.333333, abs=1e-6)
    # Over an environment of 18 m the breakpoint lies at 4 * 7 * 2 * 2e9 / 3e8 = 373 m, before the clients; over one of
    # 15 m and less beyond them, at 1333 m and more: two losses in all.
    drawn = law.draw(np.full(CLIENTS, 400.0), 0, Streams(0))
    near = 28 + 11 * lg(160025) + 20 * lg(2)
    far = 28 + 20 * lg(160025) + 20 * lg(2) - 9 * lg((4 * 7 * 2 * 20 / 3) ** 2 + 25)
    np.testing.assert_allclose(np.unique(drawn.loss_db[drawn.los]), sorted([near, far]), rtol=1e-9)


def test_the_environment_is_drawn_for_each_link():
    # Note 1 of table 7.4.1-1: "independently determined for every link between BS sites and UTs".
    law, distance = UrbanMacro(client_height_m=20.0), np.full(CLIENTS, 400.0)
    one, other = (law.draw(distance, site, Streams(0)) for site in (0, 1))
    both = one.los & other.los
    # The loss in sight has two values; it is the higher one over an environment of 18 m.
    high = [drawn.loss_db[both] > drawn.loss_db[both].min() + 1e-6 for drawn in (one, other)]
    # C = 0.7^1.5 * 1.25 * 4^3 * exp(-400/150); 18 m is one of three heights.
    c = 0.7**1.5 * 1.25 * 64 * math.exp(-400 / 150)
    share = c / (1 + c) / 3
    for each in high:
        assert abs(each.mean() - share) < 5 * math.sqrt(share * (1 - share) / both.sum())
    assert abs(np.corrcoef(*high)[0, 1]) < 5 / math.sqrt(both.sum())


@pytest.mark.statistical
def test_floors_are_those_of_table_72_1():
    height_m = floor_height_m(np.arange(CLIENTS), Streams(2))
    # n_fl uniform in 1..N, N uniform in 4..8: P(n_fl = k) is the mean of 1/N over the N >= k.
    share = [sum(1 / n for n in range(max(4, k), 9)) / 5 for k in range(1, 9)]
    counts = [np.count_nonzero(height_m == 3 * (k - 1) + 1.5) for k in range(1, 9)]
    assert sum(counts) == CLIENTS
    assert stats.chisquare(counts, CLIENTS * np.array(share)).pvalue > 1e-6


@pytest.mark.parametrize("law", [UrbanMacro, UrbanMicro], ids=["uma", "umi"])
def test_each_floor_has_the_loss_of_its_height(law):
    distance = np.linspace(50, 600, 2000)
    drawn = law(indoor_share=0.6, indoor_height="by-floor").draw(distance, 1, Streams(3))
    height_m = np.where(drawn.indoor, floor_height_m(np.arange(2000), Streams(3)), 1.5)
    for height in np.unique(height_m).tolist():
        here = height_m == height
        alike = law(indoor_share=0.6, client_height_m=height).draw(distance, 1, Streams(3))
        np.testing.assert_array_equal(drawn.loss_db[here], alike.loss_db[here])
        np.testing.assert_array_equal(drawn.los[here], alike.los[here])
        np.testing.assert_array_equal(drawn.sigma_db[here], alike.sigma_db[here])
    named = np.array([1999, 3, 3, 70])
    again = law(indoor_share=0.6, indoor_height="by-floor").draw(distance[named], 1, Streams(3), named)
    np.testing.assert_array_equal(again.loss_db, drawn.loss_db[named])
    np.testing.assert_array_equal(again.indoor, drawn.indoor[named])


def test_mean_loss_is_the_mean_over_the_states():
    seen, unseen, share = 65.82657, 38.3 * 1.303191 + 17.3 + 24.9 * 0.544068, 0.32 * math.exp(-13.5 / 32.6)
    mean = share * seen + (1 - share) * unseen
    assert float(IndoorOffice(carrier_hz=3.5e9).loss_db(20.0)) == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "uma", "carrier_hz": 0.4e9},
        {"kind": "uma", "client_height_m": 1.0},
        {"kind": "umi", "carrier_hz": 2.0},
        {"kind": "rma", "carrier_hz": 40e9},
        {"kind": "rma", "street_width_m": 60.0},
        {"kind": "rma", "indoor_share": 0.5, "high_loss_share": 0.1},
        {"kind": "rma", "penetration": "single-frequency"},
        {"kind": "umi", "carrier_hz": 6e9, "penetration": "single-frequency"},
        {"kind": "inh", "office": "closed"},
        {"kind": "inf", "hall": "xl"},
        {"kind": "inf", "hall": "sh", "clutter_height_m": 9.0},
        {"kind": "inf", "clutter_density": 1.0},
    ],
)
def test_what_the_tables_do_not_cover_is_refused(table):
    with pytest.raises(ValidationError):
        PATH_LOSSES.make(table)
