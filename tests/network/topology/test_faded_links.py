"""Ratios of the links in use: drawn once for each link and block, and the mean after many blocks."""

import numpy as np

from fedsim.network.topology.faded_links import FadedLinks


class Counted:
    """Even links fade: their ratio says link and block. It notes what it was asked for."""

    coherence_s = 1.0

    def __init__(self, most_blocks=1000, last_block=10**6):
        self.most_blocks, self.last_block = most_blocks, last_block
        self.asked = []

    def fades(self, link):
        return link % 2 == 0

    def ratios(self, link, block):
        self.asked.append((link.tolist(), block.tolist()))
        return link + block[:, None] / 100


def test_each_link_and_block_is_drawn_once():
    fading = Counted()
    links = FadedLinks(fading)
    links.add(0, 4)
    links.add(1, 5)
    assert links.present == 1
    assert links.begin(10) == 1000
    np.testing.assert_allclose(links.ahead(10, 2, 4, np.array([0, 1])), [[4.10, 1.0], [4.11, 1.0]])
    links.add(2, 8)
    links.begin(12)
    np.testing.assert_allclose(links.ahead(12, 2, 4, np.arange(3)), [[4.12, 1.0, 8.12], [4.13, 1.0, 8.13]])
    assert fading.asked == [([4], [10, 11, 12, 13]), ([8], [12, 13])]
    # Another fading is drawn from the present block on; the next window from its first block.
    links.changed(0)
    links.changed(1)
    np.testing.assert_allclose(links.ahead(13, 3, 1, np.arange(3)), [[4.13, 1.0, 8.13]])
    links.ahead(14, 2, 1, np.array([2, 0]))
    assert fading.asked[2:] == [([4], [13]), ([8, 4], [14, 15])]
    links.remove(0)
    links.remove(1)
    assert links.present == 1
    np.testing.assert_allclose(links.ahead(15, 1, 1, np.array([1, 2])), [[1.0, 8.15]])


def test_numbers_are_used_again_and_grow():
    links = FadedLinks(Counted())
    for number in range(40):
        links.add(number, 2 * number)
    links.begin(0)
    np.testing.assert_allclose(links.ahead(0, 1, 1, np.arange(40))[0], 2.0 * np.arange(40))
    links.remove(7)
    links.add(7, 3)
    links.remove(8)
    links.add(8, 100)
    links.begin(0)
    np.testing.assert_allclose(links.ahead(0, 1, 1, np.array([7, 8, 9]))[0], [1.0, 100.0, 18.0])


def test_links_that_join_a_long_window_are_drawn_only_for_the_blocks_that_are_wanted():
    fading = Counted()
    links = FadedLinks(fading)
    links.add(0, 2)
    links.begin(0)
    links.ahead(0, 3000, 1, np.array([0]))
    for number in range(1, 9):
        links.add(number, 2 * number)
    links.begin(1)
    assert links.ahead(1, 5, 1, np.arange(9)).shape == (5, 9)
    assert [(len(link), len(block)) for link, block in fading.asked] == [(1, 3000), (9, 5)]


def test_after_many_blocks_in_a_row_the_mean_counts():
    links = FadedLinks(Counted(most_blocks=5))
    links.add(0, 2)
    assert links.begin(10) == 5
    links.add(1, 4)
    assert links.begin(13) == 5
    found = links.ahead(13, 4, 1, np.arange(2))
    np.testing.assert_allclose(found, [[2.13, 4.13], [2.14, 4.14], [1.0, 4.15], [1.0, 4.16]])
    assert links.begin(17) == 1
    assert links.begin(30) == 0
    links = FadedLinks(Counted(last_block=20))
    links.add(0, 2)
    assert links.begin(18) == 2
    links.remove(0)
    assert links.begin(18) == 0
