"""Models for texts; torch is imported when one is built.

Samples are tokens, of which the model learns vectors of its own, or vectors that the data set gives. Padding is a
vector of zeros and is not left out of the sums.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from fedsim.errors import ScenarioError
from fedsim.learning.data.shapes import Shape, TokenShape
from fedsim.learning.models.images import Dropout
from fedsim.learning.models.settings import Trains, in_words, of_text

if TYPE_CHECKING:
    from torch import nn

    from fedsim.learning.models.texts import Vectors

Width = Annotated[int, Field(ge=1, le=2**16)]
"""Numbers of a vector inside a model."""


class _OfWords(Trains):
    """What models for texts in words have in common.

    Attributes
    ----------
    embedding : numbers of a word's vector, where the data set gives none
    hidden : width of the two dense layers
    pooling : width of the network inside the attentive pooling; the paper does not give it
    dropout : float in [0, 1)
    """

    embedding: Width = 300
    hidden: Width = 256
    pooling: Width = 200
    dropout: Dropout = 0.2

    def _vectors(self, shape: Shape, kind: str) -> tuple["Vectors", int]:
        text = of_text(shape, kind)
        from fedsim.learning.models.texts import Vectors

        if isinstance(text, TokenShape):
            return Vectors(text.vocabulary, self.embedding, text.padding), self.embedding
        return Vectors(None, text[1]), text[1]


class TextCNN(_OfWords):
    """The Text-CNN of the FedSampling code: one convolution over the words, attentive pooling, dense layers.

    A convolution of three words to 400 numbers that keeps the length, without activation; dropout; attentive pooling;
    two dense layers to 256 with ReLU, and one onto the classes. 613,875 parameters with given vectors of
    300 numbers and 18 classes.

    Attributes
    ----------
    filters : numbers of a word behind the convolution
    window : words that it sees at once
    """

    filters: Width = 400
    window: Annotated[int, Field(ge=1, le=1000)] = 3

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        vectors, width = self._vectors(shape, "text-cnn")
        from fedsim.learning.models.texts import Convolution, DropoutByFilter, text_classifier

        layer, dropout = Convolution(width, self.filters, self.window), DropoutByFilter(self.dropout)
        more = {"hidden": self.hidden, "pooling": self.pooling}
        return text_classifier(vectors, layer, dropout, self.filters, classes, **more)


class TextAttention(_OfWords):
    """The self-attention network of the FedSampling code: one layer of 20 heads of 20, then as `TextCNN`.

    613,475 parameters with given vectors of 300 numbers and 18 classes.

    Attributes
    ----------
    heads : of the self-attention
    head_width : numbers of each head
    """

    heads: Annotated[int, Field(ge=1, le=1000)] = 20
    head_width: Annotated[int, Field(ge=1, le=1000)] = 20

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        vectors, width = self._vectors(shape, "text-attention")
        from torch import nn

        from fedsim.learning.models.texts import SelfAttention, text_classifier

        layer, dropout = SelfAttention(width, self.heads, self.head_width), nn.Dropout(self.dropout)
        more = {"hidden": self.hidden, "pooling": self.pooling}
        return text_classifier(vectors, layer, dropout, self.heads * self.head_width, classes, **more)


class CharLSTM(Trains):
    """LEAF's network for the next character: vectors of characters, an LSTM, a dense layer (Caldas et al. 2018).

    The default widths are LEAF's: vectors of 8 numbers, two layers of 256 units. 816,210 parameters on Tiny
    Shakespeare. The executor ``stacked`` refuses it, since torch maps no recurrent layer over
    clients.

    Attributes
    ----------
    embedding : numbers of a character's vector
    hidden : units of a layer
    layers : of the LSTM
    places : ``"last"`` or ``"each"``
        Whether it predicts what follows the last character of a sample, for labels, or what follows each one, for
        the task `NextToken`.
    """

    embedding: Width = 8
    hidden: Width = 256
    layers: Annotated[int, Field(ge=1, le=16)] = 2
    places: Literal["last", "each"] = "last"

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        if not isinstance(shape, TokenShape):
            raise ScenarioError(f"learning.model: char-lstm needs tokens, and these samples are {in_words(shape)}")
        from fedsim.learning.models.texts import NextCharacter

        sizes = self.embedding, self.hidden, self.layers
        more: dict[str, Any] = {"at_each": self.places == "each", "padding": shape.padding}
        return NextCharacter(shape.vocabulary, classes, *sizes, **more)
