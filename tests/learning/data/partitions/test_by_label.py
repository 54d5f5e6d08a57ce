"""Shards, a few labels, Dirichlet mixtures and dominant labels against their laws, and by hand."""

import numpy as np
import pytest
from scipy.special import zeta

from fedsim.errors import ScenarioError
from fedsim.learning import PARTITIONS, DirichletPartition, QuantitySkewPartition
from fedsim.learning.data.partitions.by_label import LabelLimitedPartition, ShardsPartition
from fedsim.streams import Streams


def test_two_shards_of_300_have_at_most_two_labels_where_shards_divide_labels():
    """MNIST's case at a tenth: 6,000 samples, 20 clients, 40 shards of 150, four shards for each label."""
    labels = np.random.default_rng(0).permutation(np.arange(6000) % 10)
    parts = ShardsPartition().assign(labels, 10, 20, Streams(0))
    assert {part.size for part in parts} == {300}
    assert max(np.unique(labels[part]).size for part in parts) == 2
    assert np.sort(np.concatenate(parts)).tolist() == list(range(6000))


def test_shards_are_empty_where_there_are_more_than_samples():
    """Each shard has one sample or none, and clients without one are left empty."""
    parts = ShardsPartition(shards=2).assign(np.zeros(7, np.int64), 1, 30, Streams(0))
    assert np.sort(np.concatenate(parts)).tolist() == list(range(7))
    assert (min(map(len, parts)), max(map(len, parts)) <= 2) == (0, True)
    # What does not divide evenly is used too.
    parts = ShardsPartition(shards=3).assign(np.zeros(20, np.int64), 1, 2, Streams(0))
    assert sorted(part.size for part in parts) in ([9, 11], [10, 10])


LABELS = np.arange(5000) % 10


def table(split, clients, seed=0):
    """Return the samples of each client with each label, shape (K, 10)."""
    parts = split.assign(LABELS, 10, clients, Streams(seed))
    return np.array([np.bincount(LABELS[part], minlength=10) for part in parts])


@pytest.mark.parametrize("law", ["balanced", "uniform", "zipf"])
def test_each_client_has_the_share_of_labels_and_each_held_label_is_used_up(law):
    found = table(LabelLimitedPartition(share=0.4, law=law), 30)
    assert ((found > 0).sum(axis=1) <= 4).all()
    assert found.sum(axis=0).tolist() == [500] * 10
    if law == "balanced":
        assert ((found > 0).sum(axis=1) == 4).all()
        for label in range(10):
            held = found[:, label][found[:, label] > 0]
            assert held.max() - held.min() <= 1


def test_a_share_below_one_label_is_one_label_and_labels_without_a_client_are_left_over():
    found = table(LabelLimitedPartition(share=0.01), 4)
    assert ((found > 0).sum(axis=1) == 1).all()
    assert set(found.sum(axis=0)) == {0, 500}


@pytest.mark.statistical
def test_weights_follow_their_laws():
    """Two clients hold all labels: a share u / (u + v) has the mean 1/2, and Zipf weights are equal now and then."""
    shares = np.array([table(LabelLimitedPartition(share=1.0, law="uniform"), 2, seed)[0] / 500 for seed in range(40)])
    assert abs(shares.mean() - 0.5) < 4 * shares.std() / np.sqrt(shares.size) + 1 / 500
    # u / (u + v) is at most 1/3 where v is at least 2 u: a quarter of the square.
    below = (shares < 1 / 3 - 1 / 500).mean()
    assert abs(below - 0.25) < 4 * np.sqrt(0.25 * 0.75 / shares.size) + 0.01
    both = np.array([table(LabelLimitedPartition(share=1.0, law="zipf"), 2, seed)[0] for seed in range(40)]) == 250
    # Equal weights, sum of p_i^2 with p_i = i^-a / zeta(a): zeta(2 a) / zeta(a)^2.
    expected = float(zeta(2 * 1.95) / zeta(1.95) ** 2)
    assert abs(both.mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / both.size)


@pytest.mark.statistical
def test_sizes_of_balanced_labels_do_not_depend_on_the_number_of_the_client():
    """FedSUV's division; a correlation of K independent pairs has a standard error of 1 / sqrt(K)."""
    clients, labels = 3500, np.arange(50_000) % 10
    for seed in range(3):
        parts = LabelLimitedPartition(share=0.4).assign(labels, 10, clients, Streams(seed))
        found = np.corrcoef(np.arange(clients), [part.size for part in parts])[0, 1]
        assert abs(found) < 4 / np.sqrt(clients)


# A sample mean lies further than this many of its standard errors from theory once in 15,000 correct runs.
STANDARD_ERRORS = 4.0


def balanced(samples, classes=10):
    return np.arange(samples) % classes


def test_a_client_whose_labels_have_run_out_gets_a_sample_of_another():
    """One of 14 clients takes 112 of 182 samples here; of the labels planned for client 12 none is left."""
    labels = np.random.default_rng(1470).integers(0, 4, 14 * 13)
    sizes = [part.size for part in QuantitySkewPartition(concentration=0.1).assign(labels, 4, 14, Streams(1470))]
    assert sizes == [3, 28, 3, 3, 3, 4, 3, 3, 3, 3, 112, 1, 1, 1]


def test_numbers_of_a_class_are_within_one_of_their_shares():
    """The shares are drawn after the order of the samples, from the same stream."""
    clients, classes, samples = 12, 5, 205
    labels = balanced(samples, classes)
    rng = Streams(7).generator("split")
    for label in range(classes):
        rng.permutation(np.flatnonzero(labels == label))
    shares = np.array([rng.dirichlet(np.full(clients, 0.4)) for _ in range(classes)])
    parts = DirichletPartition(alpha=0.4, min_samples=0).assign(labels, classes, clients, Streams(7))
    counts = np.array([np.bincount(labels[part], minlength=classes) for part in parts]).T
    assert np.abs(counts - shares * 41).max() < 1
    assert counts.sum(axis=1).tolist() == [41] * classes
    cumulative = DirichletPartition(alpha=0.4, min_samples=0, rounding="cumulative")
    counts = [
        np.bincount(labels[part], minlength=classes) for part in cumulative.assign(labels, classes, clients, Streams(7))
    ]
    ends = np.floor(np.cumsum(shares, axis=1)[:, :-1] * 41)
    assert np.array_equal(np.array(counts).T, np.diff(ends, prepend=0, append=41))


@pytest.mark.statistical
def test_first_middle_and_last_client_have_alike_labels_and_sizes():
    """Clients are exchangeable, so differences of a pair have the mean 0 and the standard error of their spread."""
    clients, classes = 30, 10
    labels = balanced(1437, classes)
    split = DirichletPartition(alpha=0.3, min_samples=0)
    held, sizes = [], []
    for seed in range(200):
        parts = split.assign(labels, classes, clients, Streams(seed))
        chosen = [parts[client] for client in (0, clients // 2, clients - 1)]
        held.append([np.unique(labels[part]).size for part in chosen])
        sizes.append([part.size for part in chosen])
    for table in (np.array(held, float), np.array(sizes, float)):
        for one, two in ((0, 1), (1, 2), (0, 2)):
            apart = table[:, one] - table[:, two]
            assert abs(apart.mean()) < STANDARD_ERRORS * apart.std() / np.sqrt(len(apart))


@pytest.mark.statistical
def test_mixtures_of_clients_follow_the_dirichlet_distribution():
    alpha, classes, samples = 0.5, 10, 5_000
    labels = balanced(samples, classes)
    squares = []
    for seed in range(200):
        # With 25 clients the first one never empties a class: 200 samples of at least 500.
        hand = DirichletPartition(alpha=alpha, per="client").assign(labels, classes, 25, Streams(seed))[0]
        squares.append(((np.bincount(labels[hand], minlength=classes) / 200) ** 2).sum())
    # A multinomial sample of n from shares p has E sum (n_c / n)^2 = (1 - 1/n) sum p_c^2 + 1/n.
    expected = (1 - 1 / 200) * (1 + alpha) / (1 + classes * alpha) + 1 / 200
    assert abs(np.mean(squares) - expected) < STANDARD_ERRORS * np.std(squares) / np.sqrt(len(squares))


def test_quantity_skew_has_the_sizes_and_dominant_labels_of_the_paper_code():
    samples, clients = 50_000, 30
    labels = balanced(samples)
    split = QuantitySkewPartition(concentration=3.0)
    planned = split.sizes(samples, clients, np.random.default_rng(0))
    raw = np.maximum(samples // 90, np.floor(np.random.default_rng(0).dirichlet([3.0] * clients) * samples))
    assert planned.tolist() == np.floor(raw * samples / raw.sum()).tolist()
    # The floor of N/(3K) = 555 before scaling was 541 to 552 after it in the authors' logs.
    assert 535 <= planned.min() <= 555
    assert samples - clients <= planned.sum() <= samples
    rows = split.assign(labels, 10, clients, Streams(1))
    assert samples * 0.97 <= sum(hand.size for hand in rows) <= samples
    counts = np.array([np.bincount(labels[hand], minlength=10) for hand in rows])
    # Late clients may find their label used up; nobody before the 20th does here.
    assert np.bincount(counts[:20].argmax(axis=1)).max() <= 3
    for hand, mixture in list(zip(rows, counts, strict=True))[:20]:
        others = np.sort(mixture)[:-1]
        assert mixture.max() == round(0.25 * hand.size)
        assert others.max() - others.min() <= 1


@pytest.mark.parametrize("kind", ["equal", "dirichlet", "log-normal", "zipf"])
def test_too_few_samples_are_refused_with_both_numbers(kind):
    options = {"dirichlet": {"alpha": 1.0}, "log-normal": {"sigma": 1.0}}.get(kind, {})
    allowed = "crowd.clients of at most 9"
    if kind != "equal":
        allowed += r", or a lower learning\.split\.min_samples \(0 with learning\.allow_empty\)"
    with pytest.raises(ScenarioError, match=rf"9 training samples .* 10 clients at least 1; allowed: {allowed}$"):
        PARTITIONS.make({"kind": kind, **options}).assign(balanced(9), 10, 10, Streams(0))


@pytest.mark.parametrize(("samples", "clients"), [(200, 300), (9, 30)])
def test_quantity_skew_leaves_clients_empty_where_there_are_more_than_samples(samples, clients):
    """All shares of 9 samples are below one sample, and so is a third of 9 / 30: nobody has any."""
    parts = QuantitySkewPartition(concentration=2.0).assign(balanced(samples), 10, clients, Streams(0))
    sizes = np.array([part.size for part in parts])
    assert sizes.size == clients
    assert sizes.min() == 0
    assert sizes.sum() <= samples
    assert (sizes.sum() > 0) == (samples == 200)


def test_a_client_may_get_nothing_where_there_is_no_floor():
    split = QuantitySkewPartition(concentration=0.01, min_fraction=0.0)
    assert min(hand.size for hand in split.assign(balanced(400), 10, 40, Streams(0))) == 0
