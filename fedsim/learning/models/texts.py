"""Networks for texts: convolution or attention over the vectors of words, a recurrent network over characters."""

import torch
from torch import Tensor, nn


class Vectors(nn.Module):
    """Vectors of tokens: learned ones, or those of the data set; zeros for the token that fills texts up."""

    def __init__(self, vocabulary: int | None, width: int, padding: int | None = None) -> None:
        super().__init__()
        self._padding = padding
        self.layer = None if vocabulary is None else nn.Embedding(vocabulary, width)

    def forward(self, samples: Tensor) -> Tensor:
        if self.layer is None:
            return samples
        found: Tensor = self.layer(samples)
        # Instead of ``padding_idx``, whose gradient torch maps wrongly over clients.
        return found if self._padding is None else found * (samples != self._padding).unsqueeze(-1)


class Convolution(nn.Module):
    """A convolution over the words of a text, without an activation."""

    def __init__(self, width: int, filters: int, window: int) -> None:
        super().__init__()
        self._right = 1 - window % 2
        self.layer = nn.Conv1d(width, filters, window, padding=(window - 1) // 2)

    def forward(self, vectors: Tensor) -> Tensor:
        # An even window has one more zero to the right; torch's ``padding="same"`` does so too, with a warning.
        found: Tensor = self.layer(nn.functional.pad(vectors.transpose(1, 2), (0, self._right)))
        return found.transpose(1, 2)


class DropoutByFilter(nn.Module):
    """Dropout behind a convolution, drawn for one filter of a text after the other."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.layer = nn.Dropout(share)

    def forward(self, vectors: Tensor) -> Tensor:
        found: Tensor = self.layer(vectors.transpose(1, 2))
        return found.transpose(1, 2)


class SelfAttention(nn.Module):
    """One layer of self-attention with heads; queries, keys and values are products without a bias."""

    def __init__(self, width: int, heads: int, head_width: int) -> None:
        super().__init__()
        self._heads, self._head_width = heads, head_width
        self.query, self.key, self.value = (nn.Linear(width, heads * head_width, bias=False) for _ in range(3))

    def forward(self, vectors: Tensor) -> Tensor:
        shape = (*vectors.shape[:2], self._heads, self._head_width)
        query, key, value = (layer(vectors).view(shape).transpose(1, 2) for layer in (self.query, self.key, self.value))
        shares = torch.softmax(query @ key.transpose(2, 3) / self._head_width**0.5, dim=3)
        heads: Tensor = shares @ value
        return heads.transpose(1, 2).flatten(2)


class AttentivePooling(nn.Module):
    """The mean of the words' vectors, with weights from a small network."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden, self.score = nn.Linear(width, hidden), nn.Linear(hidden, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        shares = torch.softmax(self.score(torch.tanh(self.hidden(vectors))), dim=1)
        return (shares * vectors).sum(dim=1)


def text_classifier(
    vectors: Vectors, over_words: nn.Module, dropout: nn.Module, width: int, classes: int, *, hidden: int, pooling: int
) -> nn.Module:
    """Return a network for texts: vectors, a layer over the words, pooling, two dense layers, the classes."""
    return nn.Sequential(
        vectors,
        over_words,
        dropout,
        AttentivePooling(width, pooling),
        *(nn.Linear(width, hidden), nn.ReLU()),
        *(nn.Linear(hidden, hidden), nn.ReLU()),
        nn.Linear(hidden, classes),
    )


class NextCharacter(nn.Module):
    """A recurrent network over a text, and a dense layer on its state after the last token or on each."""

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        embedding: int,
        hidden: int,
        layers: int,
        *,
        at_each: bool,
        padding: int | None = None,
    ) -> None:
        super().__init__()
        self.at_each, self._padding = at_each, padding
        self.vectors = Vectors(vocabulary, embedding, padding)
        self.recurrent = nn.LSTM(embedding, hidden, layers, batch_first=True)
        self.scores = nn.Linear(hidden, classes)

    def forward(self, samples: Tensor) -> Tensor:
        """Return the scores of each text, shape (n, classes), or of each of its places, shape (n, length, classes)."""
        states, _ = self.recurrent(self.vectors(samples))
        found: Tensor = self.scores(states if self.at_each else self._last(states, samples))
        return found

    def _last(self, states: Tensor, samples: Tensor) -> Tensor:
        if self._padding is None:
            return states[:, -1]
        places = torch.arange(samples.shape[1], device=samples.device)
        last = (places * (samples != self._padding)).amax(1)
        return states[torch.arange(len(samples), device=samples.device), last]
