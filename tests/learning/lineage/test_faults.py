"""What a part of the user's own that fails is told with: the one client, and the round that its work belongs to."""

import numpy as np
import pytest

from fedsim.errors import PartError
from fedsim.learning import Compressor, LocalAlgorithm, Schedule, Start, Supervised, TrainingRun
from fedsim.streams import Streams
from tests.support.asking import next_model
from tests.support.tiny_images import Tiny

COHORTS = ([4, 0, 5], [1, 3, 2])


class Failing(LocalAlgorithm):
    """Fails in a call of one of its members; a round of three clients has three calls of each."""

    member: str
    call: int = 5
    remembers = server_keeps = personal = True

    def model_post_init(self, context):
        self._calls = {}

    def _count(self, member):
        self._calls[member] = self._calls.get(member, 0) + 1
        if (member, self._calls[member]) == (self.member, self.call):
            raise ValueError("no more")

    def begin(self, task):
        self._count("begin")
        return Start(task.model)

    def end(self, task, difference):
        self._count("end")
        return {"n": np.zeros(1)}

    def drift_weight(self, steps, learning_rate):
        self._count("drift_weight")
        return 1.0

    def step(self, gathered):
        self._count("step")
        return super().step(gathered)

    def own_model(self, layout, model, memory):
        self._count("own_model")
        return model


class Negative(Schedule):
    """Its third step of round 2 has a negative factor."""

    def factors(self, version, steps):
        return np.where((np.arange(steps) == 2) & (version == 1), -1.0, 1.0)


class Losing(Compressor):
    """Fails in its fifth message."""

    keeps: bool = False

    def model_post_init(self, context):
        self._calls = 0

    @property
    def remembers(self):
        return self.keeps

    def bits(self, tensors):
        return 32.0

    def compress(self, update, tensors, rng):
        self._calls += 1
        if self._calls == 5:
            raise ValueError("no more")
        return update


def second_model(**table):
    """Return a learner and its model after two rounds, whose numbers are worked out when they are asked for."""
    local = {"steps": 4, "batch_size": 2, **table.pop("local", {})}
    whole = {"data": Tiny(), "model": {"hidden": [3]}, "local": local, **table}
    learner = Supervised.model_validate(whole).build(TrainingRun(6, Streams(3)))
    model = learner.initial()
    for cohort in COHORTS:
        model = next_model(learner, model, cohort)
    return learner, model


def numbers_of(**table):
    learner, model = second_model(**table)
    return learner.vector(model)


@pytest.mark.parametrize(
    ("table", "said", "client"),
    [
        *(
            ({"algorithm": Failing(member=one)}, f"{one} failed with ValueError: no more", 3)
            for one in ("begin", "end")
        ),
        ({"algorithm": Failing(member="drift_weight")}, "Failing.drift_weight failed with ValueError: no more", 3),
        ({"algorithm": Failing(member="step", call=2)}, "Failing.step failed with ValueError: no more", None),
        ({"local": {"schedule": Negative()}}, "Negative.factors returned -1.0", COHORTS[1][0]),
        *(({"compression": Losing(keeps=keeps)}, "Losing.compress failed", 3) for keeps in (False, True)),
    ],
    ids=["begin", "end", "drift weight", "step", "schedule", "compressor", "compressor with a memory"],
)
def test_a_part_that_fails_names_its_round_and_its_client_if_it_works_for_one(table, said, client):
    with pytest.raises(PartError) as failed:
        numbers_of(**table)
    assert said in failed.value.what
    assert (failed.value.client, failed.value.clients, failed.value.round) == (client, (), 2)


def test_a_model_of_a_client_names_it():
    learner, model = second_model(algorithm=Failing(member="own_model", call=2))
    with pytest.raises(PartError) as failed:
        learner.evaluate_clients(model)
    assert (failed.value.client, failed.value.clients) == (1, ())
