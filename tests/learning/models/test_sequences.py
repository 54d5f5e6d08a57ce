"""Networks for texts: sizes, padding, vectors that are given, executors."""

import numpy as np
import pytest
import torch

from fedsim.errors import FedsimError
from fedsim.learning import MODELS, Dataset, EvaluationJob, LocalTraining, TrainingJob, TrainingSetup
from fedsim.learning.data.shapes import TokenShape
from fedsim.learning.executors.processes import ProcessesExecutor
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.learning.executors.stacked.executor import StackedExecutor
from fedsim.learning.models.flat_module import build_flat
from fedsim.learning.models.texts import Convolution

WORDS = 20
SMALL = {
    "text-cnn": {"kind": "text-cnn", "embedding": 5, "filters": 4, "hidden": 6, "pooling": 3},
    "text-attention": {"kind": "text-attention", "embedding": 5, "heads": 2, "hidden": 6, "pooling": 3},
    "char-lstm": {"kind": "char-lstm", "embedding": 5, "hidden": 6},
}


def texts(*, vectors=False, fill=0):
    """Return 12 texts of 4 words each for training and for testing, many of which end in padding."""
    rng = np.random.default_rng(0)
    samples, labels = rng.integers(0, WORDS, (12, 4)), rng.integers(0, 3, 12)
    samples[::2, 2:] = 0
    given = rng.normal(size=(WORDS, 5)).astype(np.float32) if vectors else None
    more = {"vocabulary": WORDS, "vectors": given, "token_fill": fill}
    return Dataset(samples, labels, samples.copy(), labels.copy(), classes=3, **more)


def learned(executor, setup):
    """Return what two clients of six samples learn, and the loss of the first model."""
    made, base = executor(setup), SequentialExecutor(setup).flat.layout.initial
    jobs = [TrainingJob(base, np.arange(6 * i, 6 * i + 6), 1.0, np.random.default_rng(i)) for i in range(2)]
    found = np.stack([one.difference for one in made.train(jobs)])
    return found, made.evaluate([EvaluationJob(base)])[0].loss


@pytest.mark.parametrize(
    ("kind", "vectors"),
    [
        ("text-cnn", False),
        ("text-attention", True),
        pytest.param("text-cnn", True, marks=pytest.mark.slow),
        pytest.param("text-attention", False, marks=pytest.mark.slow),
    ],
)
def test_a_stack_learns_the_same(kind, vectors):
    setup = TrainingSetup(MODELS.make(SMALL[kind]), texts(vectors=vectors), LocalTraining(batch_size=4), 3)
    (one, loss), (other, same) = learned(SequentialExecutor, setup), learned(StackedExecutor, setup)
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert loss == pytest.approx(same, abs=1e-6)
    assert np.abs(one).max() > 1e-3


@pytest.mark.parametrize(("fill", "learns"), [(0, False), (None, True), (3, True)])
def test_the_vector_of_what_fills_texts_up_alone_stays_out_of_them(fill, learns):
    setup = TrainingSetup(MODELS.make(SMALL["text-cnn"]), texts(fill=fill), LocalTraining(batch_size=4), 3)
    difference, _ = learned(StackedExecutor, setup)
    table = next(entry for entry in SequentialExecutor(setup).flat.layout.entries if entry.shape == (WORDS, 5))
    assert difference[:, table.offset : table.offset + 5].any() == learns


@pytest.mark.slow
def test_given_vectors_are_no_part_of_the_model_and_reach_worker_processes():
    model, local = MODELS.make(SMALL["text-cnn"]), LocalTraining(batch_size=4)
    setups = [TrainingSetup(model, texts(vectors=vectors), local, 3) for vectors in (False, True)]
    sizes = [SequentialExecutor(setup).flat.layout.initial.size for setup in setups]
    assert sizes[0] - sizes[1] == WORDS * 5
    for setup in setups:
        (one, loss), (other, same) = learned(SequentialExecutor, setup), learned(ProcessesExecutor, setup)
        np.testing.assert_array_equal(one, other)
        assert loss == same


def test_a_recurrent_network_learns_one_by_one_and_is_refused_in_a_stack():
    setup = TrainingSetup(MODELS.make(SMALL["char-lstm"]), texts(), LocalTraining(batch_size=4, learning_rate=1.0), 3)
    difference, loss = learned(SequentialExecutor, setup)
    assert np.abs(difference).max() > 1e-3
    assert loss == pytest.approx(np.log(3), abs=0.3)
    with pytest.raises(FedsimError, match=r"learning\.model: torch cannot map this module .*'sequential'"):
        StackedExecutor(setup)


def test_a_text_is_scored_after_its_last_token_not_after_what_fills_it_up():
    model = MODELS.make(SMALL["char-lstm"]).build(TokenShape(4, WORDS, 7), 3)
    short, full = torch.tensor([[3, 0, 5]]), torch.tensor([[3, 0, 5, 7]])
    torch.testing.assert_close(model(full), model(short))
    unmarked = MODELS.make(SMALL["char-lstm"]).build(TokenShape(4, WORDS, None), 3)
    assert not torch.allclose(unmarked(full), unmarked(short))


def test_the_scores_of_each_place_are_those_of_the_text_up_to_it():
    """What a network with one score for a text says of each beginning of it, with the same numbers."""
    shape = TokenShape(4, WORDS, None)
    each, last = (MODELS.make({**SMALL["char-lstm"], "places": one}).build(shape, 3) for one in ("each", "last"))
    last.load_state_dict(each.state_dict())
    text = torch.from_numpy(texts().train_x[1::2].copy())
    scores = each(text)
    assert scores.shape == (6, 4, 3)
    for place in range(4):
        torch.testing.assert_close(scores[:, place], last(text[:, : place + 1]))


def test_attention_is_the_mean_of_values_by_the_softmax_of_products():
    """Against a plain loop over heads and words."""
    from fedsim.learning.models.texts import SelfAttention

    torch.manual_seed(0)
    layer, words = SelfAttention(5, 2, 3), torch.randn(1, 4, 5)
    query, key, value = (one(words)[0].detach() for one in (layer.query, layer.key, layer.value))
    for head in range(2):
        own = slice(3 * head, 3 * head + 3)
        for i in range(4):
            scores = np.array([float(query[i, own] @ key[j, own]) / 3**0.5 for j in range(4)])
            shares = np.exp(scores) / np.exp(scores).sum()
            expected = sum(share * value[j, own].numpy() for j, share in enumerate(shares))
            np.testing.assert_allclose(layer(words)[0, i, own].detach(), expected, atol=1e-6)


@pytest.mark.parametrize("window", [3, 4])
def test_a_convolution_sees_its_window_around_a_word_and_zeros_beyond_the_text(window):
    layer, words = Convolution(2, 3, window), torch.randn(1, 5, 2)
    weight, bias = layer.layer.weight, layer.layer.bias
    places = [range(word - (window - 1) // 2, word - (window - 1) // 2 + window) for word in range(5)]
    by_hand = [
        bias + sum(weight[:, :, step] @ words[0, place] for step, place in enumerate(around) if 0 <= place < 5)
        for around in places
    ]
    torch.testing.assert_close(layer(words)[0], torch.stack(by_hand))


def test_text_cnn_drops_what_lies_in_the_order_of_its_filters():
    """The mask is that of the convolution's own output, which recorded results have."""
    module = build_flat(MODELS.make({**SMALL["text-cnn"], "dropout": 0.5}), (7, 5), 3, 0).module
    torch.manual_seed(1)
    found = module[2].train()(torch.ones(2, 7, 4))
    torch.manual_seed(1)
    assert torch.equal(found.transpose(1, 2), torch.nn.functional.dropout(torch.ones(2, 4, 7), 0.5))
