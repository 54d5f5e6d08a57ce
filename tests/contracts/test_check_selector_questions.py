"""`check_selector` refuses selectors that ask badly or know too much, and shows the others all that they may see."""
# ruff: noqa: ARG005 (a selector takes what the contract gives)

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.measurements import MEASUREMENTS
from fedsim.selectors import Probe
from fedsim.testing import check_selector
from tests.support.checks import refuses
from tests.support.lies import stating


class Sound:
    """Takes up to three candidates by luck; the others differ from it in one thing each."""

    def select(self, view, rng):
        return np.sort(rng.permutation(view.client)[:3])

    def observe(self, reports):
        pass


class Asking(Sound):
    """Asks two candidates for their losses and takes whoever answers, or else the first."""

    air = "a model down and a number up for two"

    def probe(self, view, rng):
        return Probe(client=rng.permutation(view.client)[:2], asks="loss", up_bits=32.0)

    def select(self, view, rng):
        if view.answers is None or not view.answers.client.size:
            return view.client[:1]
        return view.answers.client

    def observe(self, reports):
        if reports.measured:
            raise RuntimeError("nothing was asked for")


class Measuring(Sound):
    needs = MEASUREMENTS

    def observe(self, reports):
        told = {name: column.shape for name, column in reports.measured.items()}
        size = reports.client.size
        expected = dict.fromkeys(MEASUREMENTS, (size,)) | {"update": (size, reports.measured["update"].shape[1])}
        if told != expected:
            raise RuntimeError(f"{told}")
        if not np.all(np.isnan(reports.measured["update"][~reports.delivered])):
            raise RuntimeError("an update that did not arrive cannot be measured")


def foresee(self, view, rng):
    coming_s = view.coming_duration_s()
    stays = view.stays(np.zeros(coming_s.size), coming_s)
    return view.client[np.lexsort((coming_s, ~stays))[:3]]


class AsksByOwnLuck(Asking):
    def probe(self, view, rng):
        return super().probe(view, np.random.default_rng())

    def select(self, view, rng):
        return view.client[:1]


def count_on_answers(self, view, rng):
    return view.answers.client[[int(np.argmax(view.answers.loss))]] if view.client.size else view.client


@pytest.mark.parametrize("sound", [Asking, Measuring, stating(Sound, oracle=True, select=foresee)])
def test_sound_selectors_pass(sound):
    check_selector(sound(), rounds=9)
    check_selector(sound, clients=2, rounds=9, seed=4)


test_broken_selectors_are_refused = refuses(
    lambda broken: check_selector(broken()),
    [
        (
            stating(
                Asking, probe=lambda self, view, rng: Probe(client=np.arange(view.clients), asks="loss", up_bits=32.0)
            ),
            r"Lie\.probe returned clients that are no candidates.*come and go",
        ),
        (AsksByOwnLuck, r"AsksByOwnLuck\.probe: the question's client differs between two fresh copies"),
        (
            stating(Asking, probe=lambda self, view, rng: Asking.probe(self, view, np.random)),
            r"Lie\.probe drew from a global random generator",
        ),
        (stating(Asking, select=count_on_answers), r"Lie\.select failed"),
        (stating(Sound, probe="loss"), r"Lie\.probe: .* is not allowed"),
        (stating(Sound, communication=3), r"Lie\.communication: 3 is not allowed"),
        (
            stating(Sound, oracle=True, select=lambda self, view, rng: view.client[view.stays(0.0, 1.0)]),
            "stays takes two arrays",
        ),
        (
            stating(Sound, select=lambda self, view, rng: view.client[np.argsort(view.coming_duration_s())[:3]]),
            "only a selector with oracle = True has coming_duration_s in its views",
        ),
        (
            stating(Sound, select=lambda self, view, rng: view.client[:0]),
            r"Lie\.select returned an empty cohort, though there are \d+ candidates",
        ),
    ],
    SelectorError,
)
