"""adapow-d: the number of questions by hand."""

from fedsim.selectors.adaptive.adapow_d import AdaPowD
from tests.support.views import answers_of, rng, view_of


def asked(selector, rounds, clients=10):
    questions = [selector.probe(view_of(clients, round=number), rng()) for number in rounds]
    return [0 if question is None else question.client.size for question in questions]


def test_d_falls_linearly_or_geometrically_to_m_and_then_no_client_is_asked():
    # From 10 to 2 in four equal steps, and from 8 to 2 by factors of a half.
    assert asked(AdaPowD(2, until=5), range(1, 8)) == [10, 8, 6, 4, 0, 0, 0]
    assert asked(AdaPowD(2, first=6, until=3), range(1, 4)) == [6, 4, 0]
    assert asked(AdaPowD(2, first=8, until=3, decay="geometric"), range(1, 4), 20) == [8, 4, 0]


def test_the_largest_losses_are_selected():
    selector, view = AdaPowD(2, until=5), view_of(4)
    selector.probe(view, rng())
    heard = view_of(4, answers=answers_of([0, 1, 2, 3], loss=[1.0, 4.0, 2.0, 3.0]))
    assert selector.select(heard, rng()).client.tolist() == [1, 3]
