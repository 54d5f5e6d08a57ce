"""What a server draws: from the streams that its modules promise, with the keys that it promises."""

import numpy as np

from fedsim.rounds import WaitForAll
from fedsim.rounds.effects.selector import questions
from fedsim.rounds.policies.asynchronous import FedAsync
from fedsim.rounds.server import synchronous
from fedsim.selectors import Probe
from fedsim.streams import Draws, Streams
from tests.support.recorded_streams import RecordedStreams, promised
from tests.support.worlds import Everybody, serve


class Drawing(Everybody):
    """Draws a number in each question and selection, and selects every candidate."""

    def __init__(self):
        super().__init__()
        self.asked, self.chosen = [], []

    def probe(self, view, rng):
        self.asked.append(rng.random())
        return Probe(client=view.client[:1], asks="loss", up_bits=0.0)

    def select(self, view, rng):
        self.chosen.append(rng.random())
        return super().select(view, rng)


def drawn(*keys, seed=3):
    return Streams(seed).generator(*keys)


def test_each_round_draws_from_its_own_streams():
    _, selector, *_ = serve(WaitForAll(), [1] * 4, [1] * 4, [1] * 4, selector=Drawing(), streams=Streams(3), count=3)
    assert selector.asked == [drawn("probe-selection", number).random() for number in (1, 2, 3)]
    assert selector.chosen == [drawn("selection", number).random() for number in (1, 2, 3)]


def test_a_cohort_that_is_too_large_is_cut_at_random_and_later_draws_of_a_round_have_their_own_streams():
    """One of four clients at a time; the second selection of a round is its draw number 1."""
    streams, seconds = RecordedStreams(3), [1.0, 2.0, 3.0, 4.0]
    policy = FedAsync(concurrency=1)
    history, selector, *_ = serve(policy, seconds, seconds, seconds, selector=Drawing(), streams=streams, count=4)
    cut = sorted(key for key in streams.asked if key[0] == "selection-cut")
    shown = [view.client for view in selector.views]
    sent = [drawn(*key).choice(len(ids), 1, replace=False)[0] for key, ids in zip(cut, shown, strict=True)]
    assert [ids[place] for ids, place in zip(shown, sent, strict=True)][:4] == history.column(
        "participations", "client"
    ).tolist()[:4]
    assert selector.chosen == [drawn("selection", *key[1:]).random() for key in cut]
    assert streams.names == promised(synchronous) | promised(questions)
    assert np.all(np.diff([key[1] for key in cut]) >= 0)


def test_repeated_draws_of_a_round_are_counted_from_its_first():
    draws = Draws()
    assert [draws.keys(number) for number in (1, 1, 1, 2, 2)] == [(1,), (1, 1), (1, 2), (2,), (2, 1)]
