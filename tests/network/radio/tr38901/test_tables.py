"""TR 38.901 against its tables, written out here: every number comes from the tables, none from fedsim."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
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


def urban_macro(law, d, ground_m=1.0):
    """Return the losses with and without a line of sight, and the probability of one, d metres away."""
    f, up, bend = law.carrier_hz / 1e9, law.client_height_m, max(law.client_height_m - 13, 0) / 10
    seen = two_slopes(law, max(d, 10), 28.0, 22, 9, ground_m)
    unseen = 13.54 + 39.08 * lg(slant(law, max(d, 10))) + 20 * lg(f) - 0.6 * (up - 1.5)
    further = 1 + bend**1.5 * 5 / 4 * (d / 100) ** 3 * math.exp(-d / 150)
    return seen, max(seen, unseen), 1.0 if d <= 18 else (18 / d + math.exp(-d / 63) * (1 - 18 / d)) * further


def urban_micro(law, d):
    seen = two_slopes(law, max(d, 10), 32.4, 21, 9.5, 1.0)
    height = law.client_height_m - 1.5
    unseen = 35.3 * lg(slant(law, max(d, 10))) + 22.4 + 21.3 * lg(law.carrier_hz / 1e9) - 0.3 * height
    return seen, max(seen, unseen), 1.0 if d <= 18 else 18 / d + math.exp(-d / 36) * (1 - 18 / d)


def rural_macro(law, d):
    f, base, up = law.carrier_hz / 1e9, law.base_height_m, law.client_height_m
    h, far, bp = law.building_height_m, slant(law, max(d, 10)), 2 * math.pi * base * up * law.carrier_hz / 3e8

    def first(x):
        gain = min(0.03 * h**1.72, 10) * lg(x) - min(0.044 * h**1.72, 14.77) + 0.002 * lg(h) * x
        return 20 * lg(40 * math.pi * x * f / 3) + gain

    seen = first(far) if max(d, 10) <= bp else first(bp) + 40 * lg(far / bp)
    unseen = 161.04 - 7.1 * lg(law.street_width_m) + 7.5 * lg(h) - (24.37 - 3.7 * (h / base) ** 2) * lg(base)
    unseen += (43.42 - 3.1 * lg(base)) * (lg(far) - 3) + 20 * lg(f) - (3.2 * lg(11.75 * up) ** 2 - 4.97)
    return seen, max(seen, unseen), 1.0 if d <= 10 else math.exp(-(d - 10) / 1000)


def indoor_office(law, d):
    f, far = law.carrier_hz / 1e9, slant(law, max(d, 1))
    seen = 32.4 + 17.3 * lg(far) + 20 * lg(f)
    if law.office == "mixed":
        share = 1.0 if d <= 1.2 else math.exp(-(d - 1.2) / 4.7) if d < 6.5 else 0.32 * math.exp(-(d - 6.5) / 32.6)
    else:
        share = 1.0 if d <= 5 else math.exp(-(d - 5) / 70.8) if d <= 49 else 0.54 * math.exp(-(d - 49) / 211.7)
    return seen, max(seen, 38.3 * lg(far) + 17.3 + 24.9 * lg(f)), share


def indoor_factory(law, d):
    f, far, up = law.carrier_hz / 1e9, slant(law, max(d, 1)), law.client_height_m
    seen = 31.84 + 21.5 * lg(far) + 19 * lg(f)
    sparse = max(33 + 25.5 * lg(far) + 20 * lg(f), seen)
    unseen = {
        "sl": sparse,
        "dl": max(18.6 + 35.7 * lg(far) + 20 * lg(f), sparse),
        "sh": max(32.4 + 23 * lg(far) + 20 * lg(f), seen),
        "dh": max(33.63 + 21.9 * lg(far) + 20 * lg(f), seen),
        "hh": seen,
    }
    k = -law.clutter_size_m / math.log(1 - law.clutter_density)
    k *= (law.base_height_m - up) / (law.clutter_height_m - up) if law.hall in ("sh", "dh") else 1.0
    return seen, unseen[law.hall], 1.0 if law.hall == "hh" else math.exp(-d / k)


def slant(law, d):
    return math.sqrt(d**2 + (law.base_height_m - law.client_height_m) ** 2)


def two_slopes(law, d, constant_db, slope_db, knee_db, ground_m):
    """Return PL_1 up to d'_BP of note 1, and PL_2 beyond it."""
    bp = 4 * (law.base_height_m - ground_m) * (law.client_height_m - ground_m) * law.carrier_hz / 3e8
    shift = constant_db + 20 * lg(law.carrier_hz / 1e9)
    if d <= bp:
        return shift + slope_db * lg(slant(law, d))
    heights = law.base_height_m - law.client_height_m
    return shift + 40 * lg(slant(law, d)) - knee_db * lg(bp**2 + heights**2)


# Options of which a scenario has some, with heights of base stations that all of them allow.
RANGES = {
    "base_height_m": (22.5, 25.0),
    **dict.fromkeys(("building_height_m", "street_width_m"), (5.0, 50.0)),
    "clutter_height_m": (2.1, 10.0),
    "clutter_density": (0.1, 0.9),
    "clutter_size_m": (1.0, 20.0),
}
# Scenarios, formulas of tables 7.4.1-1 and 7.4.2-1, and the greatest height of a client.
TABLES = [
    (UrbanMacro, urban_macro, 22.5),
    (UrbanMicro, urban_micro, 22.5),
    (RuralMacro, rural_macro, 10.0),
    *((partial(IndoorOffice, office=office), indoor_office, 2.0) for office in ("mixed", "open")),
    *((partial(IndoorFactory, hall=hall), indoor_factory, 2.0) for hall in ("sl", "dl", "sh", "dh", "hh")),
]


@pytest.mark.parametrize(("scenario", "formulas", "highest_m"), TABLES)
@given(seed=st.integers(0, 2**32 - 1))
def test_losses_and_lines_of_sight_are_those_of_the_tables(scenario, formulas, highest_m, seed):
    """At random distances, and at the edges of branches."""
    rng = np.random.default_rng(seed)
    options = {name: rng.uniform(*RANGES[name]) for name in RANGES if name in type(scenario()).model_fields}
    law = scenario(carrier_hz=5e8 * 60 ** rng.random(), client_height_m=rng.uniform(1.5, highest_m), **options)
    edges = [0.0, 1.2, 5.0, 6.5, 10.0, 18.0, 49.0]
    if hasattr(law, "breakpoint_m"):
        edges += [float(law.breakpoint_m()) * by for by in (1 - 1e-12, 1 + 1e-12)]
    distance = np.concatenate([edges, 10 ** rng.uniform(-1, 4, 20)])
    seen, unseen, share = np.array([formulas(law, d) for d in distance]).T
    np.testing.assert_allclose(law.los_loss_db(distance), seen, rtol=1e-12)
    np.testing.assert_allclose(law.nlos_loss_db(distance), unseen, rtol=1e-12)
    np.testing.assert_allclose(law.los_probability(distance), share, rtol=1e-12)
    np.testing.assert_allclose(law.loss_db(distance), share * seen + (1 - share) * unseen, rtol=1e-12)
    if scenario is UrbanMacro and law.client_height_m > 13.5:
        high = np.array([urban_macro(law, d, 12.0)[:2] for d in distance]).T
        np.testing.assert_allclose([law.los_loss_db(distance, 12.0), law.nlos_loss_db(distance, 12.0)], high)


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
