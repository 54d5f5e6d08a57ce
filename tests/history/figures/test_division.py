"""What the figure of a division draws: every client, and ticks at whole numbers."""

import numpy as np
import pytest

from fedsim.history.figures.division import draw_division


def test_few_clients_are_drawn_one_by_one() -> None:
    counts = np.array([[3, 0], [1, 4], [0, 2]])
    above, below, _ = draw_division(counts).axes
    assert np.array_equal(below.images[0].get_array(), counts.T)
    assert [(bar.get_center()[0], bar.get_height()) for bar in above.patches] == [(0, 3), (1, 5), (2, 2)]
    assert below.get_xlabel() == "client"


@pytest.mark.parametrize("clients", [pytest.param(4_000, marks=pytest.mark.slow), 1_801])
def test_a_client_among_many_is_seen_wherever_it_stands(clients: int) -> None:
    """Each of some clients has the one sample of its label; none of them may fall between two columns of pixels."""
    chosen = np.array([0, 25, 777, 1234, clients - 1])
    counts = np.zeros((clients, chosen.size), dtype=np.int64)
    counts[chosen, np.arange(chosen.size)] = 1
    figure = draw_division(counts)
    above, below, _ = figure.axes
    drawn = np.asarray(below.images[0].get_array())
    assert drawn.sum(axis=1).tolist() == [1] * chosen.size
    left, right = below.images[0].get_extent()[:2]
    width = (right - left) / drawn.shape[1]
    assert ((chosen - left) // width).tolist() == drawn.argmax(axis=1).tolist()
    figure.canvas.draw()
    assert drawn.shape[1] <= below.get_window_extent().width
    assert below.get_xlabel() == f"client (the greatest number of each {int(width)} in a row)"
    assert below.get_xlim() == (-0.5, clients - 0.5)
    assert sum(bar.get_height() for bar in above.patches) == chosen.size


@pytest.mark.parametrize("labels", [1, 2, 10])
def test_ticks_are_labels_that_there_are(labels: int) -> None:
    _, below, _ = draw_division(np.ones((4, labels), dtype=np.int64)).axes
    assert below.get_yticks().tolist() == list(range(labels))
    assert below.get_xticks().tolist() == [0, 1, 2, 3]
