"""HeteroFL: each client trains the first channels of every layer."""

from fedsim.learning.algorithms.widths import SubModels


class HeteroFL(SubModels):
    """Sub-models of the first channels (Diao, Ding and Tarokh, "HeteroFL", ICLR 2021, sections 3.1 and 3.2).

    A client of width r receives, trains and sends the first ``ceil(r n)`` of the n channels of each hidden layer, with
    their biases and batch normalisation. The server averages each parameter over the clients that hold it, by their
    weights; one that none holds stays as it is. Widths fall by halves, as the paper's levels a to e do.

    Taken: the widths and the averaging. Not taken: the scaler between a layer and its normalisation, so that a narrower
    perceptron has smaller activations; static batch normalisation, as statistics are averaged like other numbers; and
    the masked loss, which leaves classes out that a client does not have.

    Examples
    --------
    >>> given = HeteroFL(widths=(1.0, 0.5), client_widths=(1.0, 0.5, 0.5))
    >>> given.given_widths, HeteroFL().ratios
    ((1.0, 0.5, 0.5), (1.0, 0.5, 0.25, 0.125, 0.0625))
    >>> given.shift(version=3)  # the channels are always the first ones
    0
    """
