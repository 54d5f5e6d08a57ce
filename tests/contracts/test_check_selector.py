"""`check_selector` refuses selectors that are broken or ask badly, each for its own fault, and no others."""
# ruff: noqa: ARG005 (a selector takes what the contract gives)

import random
import threading

import numpy as np
import pytest

from fedsim.errors import SelectorError
from fedsim.measurements import MEASUREMENTS
from fedsim.selectors import Cohort, Probe
from fedsim.testing import check_selector
from tests.support.checks import refuses
from tests.support.lies import lying, stating


class Sound:
    """Takes up to three candidates by luck; the broken ones differ from it in one thing each."""

    def select(self, view, rng):
        return np.sort(rng.permutation(view.client)[:3])

    def observe(self, reports):
        pass


def selecting(answer):
    """Return a class of selectors that answer with a function of view and generator."""
    return lying(Sound, "select", lambda self, view, rng: answer(view, rng))


class Learning(Sound):
    """Prefers who was fast before: has memory, and a lawful one."""

    def __init__(self):
        self.best = {}

    def select(self, view, rng):
        score = np.array([self.best.get(int(k), 0.0) for k in view.client])
        return view.client[np.lexsort((rng.random(view.client.size), score))[:3]]

    def observe(self, reports):
        for client, duration_s in zip(reports.client.tolist(), reports.duration_s.tolist(), strict=True):
            self.best[client] = duration_s


class Weighting(Sound):
    """Returns a whole cohort with all its columns."""

    def select(self, view, rng):
        client = view.client[:2]
        ones = np.ones(client.size)
        return Cohort(client, draws=np.ones(client.size, dtype=np.int64), weights=ones, work=ones / 2)


class LossHungry(Sound):
    needs = ("loss",)

    def select(self, view, rng):
        return view.client[np.argsort(np.nan_to_num(view.last_loss, nan=9.0), kind="stable")[:3]]

    def observe(self, reports):
        heard = ~np.isnan(reports.loss[reports.delivered])
        if heard.any() and not heard.all():
            raise RuntimeError("a delivered update comes with its loss")


class Measuring(Sound):
    """Is given what it asks for, of those that delivered, and nothing else."""

    needs = ("accuracy_gain", "loss_rms", "update")

    def observe(self, reports):
        if set(reports.measured) != set(self.needs) or reports.measured["update"].ndim != 2:
            raise RuntimeError("not what was asked for")
        for column in reports.measured.values():
            known = ~np.isnan(column if column.ndim == 1 else column.sum(axis=1))
            # A run about timing only has nothing to measure.
            something = column.size and known.any()
            if something and (not np.array_equal(known, reports.delivered) or column.flags.writeable):
                raise RuntimeError("known of those that delivered, and read-only")


def sorts_the_view(view, rng):
    view.samples[:] = np.sort(view.samples)
    return view.client[:3]


def unlocks_the_view(view, rng):
    view.client.flags.writeable = True
    view.client[:] = 0
    return view.client[:1]


def change_reports(self, reports):
    reports.duration_s *= 2


class RemembersOnTheClass(Sound):
    rounds_seen = 0

    def select(self, view, rng):
        type(self).rounds_seen += 1
        return view.client[: 1 + self.rounds_seen % 7]


class SharesFeedback(Sound):
    """Resets its class-level memory whenever a new run starts, so that only copies side by side give it away."""

    told: dict[int, float] = {}  # noqa: RUF012 - the fault itself

    def select(self, view, rng):
        if view.round == 1:
            self.told.clear()
        slow = np.array([self.told.get(int(k), 0.0) for k in view.client])
        return view.client[np.argsort(slow, kind="stable")[:3]]

    def observe(self, reports):
        for client, duration_s in zip(reports.client.tolist(), reports.duration_s.tolist(), strict=True):
            self.told[client] = duration_s


CRASHES_ON_EMPTY = selecting(lambda view, rng: view.client[: 1 + int(np.argmax(view.samples)) % 2])


def crash_on_failure(self, reports):
    if reports.client.size:
        reports.duration_s[reports.delivered].min()


def think_reports_are_distinct(self, reports):
    if np.unique(reports.client).size < reports.client.size:
        raise ValueError("twice")


class ThinksItsCohortIsBack(Sound):
    """Takes reports for those of its last cohort, as at a synchronous server."""

    def select(self, view, rng):
        self.last = super().select(view, rng)
        return self.last

    def observe(self, reports):
        _ = reports.duration_s + np.zeros(self.last.size)


class Uncopyable(Sound):
    def __init__(self):
        self.lock = threading.Lock()


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


class MeasuringAll(Sound):
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


@pytest.mark.parametrize(
    "sound",
    [
        Sound,
        Learning,
        Weighting,
        selecting(lambda view, rng: view.client[:3].tolist()),
        LossHungry,
        Measuring,
        stating(selecting(lambda view, rng: view.client[np.argsort(view.expected_duration_s)[:3]]), oracle=True),
        Asking,
        MeasuringAll,
        stating(Sound, oracle=True, select=foresee),
    ],
)
def test_sound_selectors_pass(sound):
    check_selector(sound(), clients=12, rounds=4)


@pytest.mark.parametrize(
    "sound",
    [Sound, *(pytest.param(one, marks=pytest.mark.slow) for one in (Measuring, Weighting, Asking, MeasuringAll))],
)
def test_classes_of_sound_selectors_pass_in_a_crowd_of_two(sound):
    check_selector(sound, clients=2, rounds=6, seed=4)


test_broken_selectors_are_refused = refuses(
    lambda broken: check_selector(broken(), clients=12, rounds=6),
    [
        (selecting(lambda view, rng: np.repeat(view.client[:1], 2)), r"Lie\.select returned a client twice.*round 1\)"),
        (
            selecting(lambda view, rng: np.arange(min(3, view.clients))),
            r"returned clients that are no candidates.*come and go",
        ),
        (selecting(lambda view, rng: view.client.size), "one-dimensional array of client ids"),
        (selecting(lambda view, rng: np.random.permutation(view.client)[:3]), "drew from a global random generator"),  # noqa: NPY002
        (
            selecting(lambda view, rng: random.sample(view.client.tolist(), min(3, view.client.size))),
            "drew from a global random generator",
        ),
        (
            selecting(lambda view, rng: np.random.default_rng().permutation(view.client)[:3]),
            "differs between two fresh copies",
        ),
        (selecting(sorts_the_view), "must not change them"),
        (selecting(unlocks_the_view), r"Lie\.select failed"),
        (stating(Sound, observe=change_reports), r"Lie\.observe failed.*cannot assign|must not change them"),
        (RemembersOnTheClass, "differs between two fresh copies"),
        (SharesFeedback, "same or a later round|the reports to another copy"),
        (CRASHES_ON_EMPTY, r"Lie\.select failed.*come and go"),
        (stating(Sound, observe=crash_on_failure), r"Lie\.observe failed"),
        (stating(Sound, observe=think_reports_are_distinct), "twice .*an asynchronous server"),
        (ThinksItsCohortIsBack, "could not be broadcast .*an asynchronous server"),
        (selecting(lambda view, rng: rng.choice(view.client, 3, replace=False)), r"Lie\.select failed"),
        (
            selecting(lambda view, rng: view.client[np.argsort(view.expected_duration_s)[:3]]),
            "only a selector with oracle = True",
        ),
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
        (lambda: 7, "no method select"),
        (lambda: dict, "no method select"),
    ],
    SelectorError,
)


def test_a_selector_that_cannot_be_copied_needs_a_factory():
    with pytest.raises(SelectorError, match="cannot be deep-copied"):
        check_selector(Uncopyable())
    check_selector(Uncopyable, rounds=4)


def test_the_selector_handed_over_is_not_used_up():
    selector = Learning()
    check_selector(selector, rounds=4)
    assert selector.best == {}


def test_messages_are_paragraphs_without_the_selector_s_own_traceback():
    with pytest.raises(SelectorError) as caught:
        check_selector(CRASHES_ON_EMPTY())
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
