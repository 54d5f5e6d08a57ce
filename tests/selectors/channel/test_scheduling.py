"""Best channel and proportional fair, by hand."""

import numpy as np
import pytest

from fedsim.selectors.channel.best_channel import BestChannel, ProportionalFair
from tests.support.views import check_shares, rng, view_of

MHZ = {"snr_hz": [1e6, 2e6, 3e6, 4e6], "fading_gain": [5.0, 1.0, 0.5, 1.1]}


def chosen(selector, **columns):
    return selector.select(view_of(4, **columns), rng()).client.tolist()


def test_the_best_channels_by_hand():
    # Now: 5, 2, 1.5 and 4.4 MHz.
    assert chosen(BestChannel(2), **MHZ) == [0, 3]
    assert chosen(BestChannel(2, "mean"), **MHZ) == [2, 3]
    assert chosen(BestChannel(2), snr_hz=MHZ["snr_hz"]) == [2, 3]
    assert chosen(BestChannel(2), snr_hz=[np.inf, 1.0, 2.0, 3.0], fading_gain=[0.0, 1.0, 1.0, 1.0]) == [0, 3]
    assert chosen(ProportionalFair(2), **MHZ) == [0, 3]
    assert chosen(ProportionalFair(2), snr_hz=[1.0, 1e9, 1.0, 1.0], fading_gain=[2.0, 1.0, 0.5, 1.5]) == [0, 3]


@pytest.mark.parametrize("selector", [BestChannel(1), ProportionalFair(1)])
def test_without_radio_the_draw_is_uniform(selector):
    draws = rng(3)
    check_shares(lambda: selector.select(view_of(4), draws).client, [0.25] * 4, 400)
