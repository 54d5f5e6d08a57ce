"""A function of tensors as a list of torch's operations, made cheaper, and alike in every slot.

torch's own tracer imports its compiler, which takes longer than many runs.
"""

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

Run = Callable[..., Sequence[Tensor]]
"""A function of arrays in a row."""

_SAME: Final = frozenset(("view", "_unsafe_view", "expand", "permute", "alias", "detach", "clone"))
"""Operations that return their argument if shape and strides stay."""
_CALLED: Final = frozenset([
    "_log_softmax", "_log_softmax_backward_data", "add", "amax", "bmm", "cat", "convolution", "div", "exp", "gather",
    "log", "mm", "mul", "neg", "permute", "relu", "relu_", "sigmoid", "squeeze", "sub", "sum", "tanh", "transpose",
    "unsqueeze", "where",
])  # fmt: skip
"""Torch's own functions that take the arguments of the operators of their names, at half the cost of a call."""
_VECTOR: Final = 16
"""Numbers of a processor's widest vector."""


@dataclass(eq=False)
class _Node:
    """A value of the list: the operation that gives it, its arguments, and the shape and strides of a tensor."""

    function: Any = None
    given: Any = ()
    layout: Any = None

    @property
    def first(self) -> Any:
        return self.given[0][0] if self.given and self.given[0] else None

    @property
    def name(self) -> str:
        return self.function._opname if isinstance(self.function, OpOverload) else ""

    @property
    def writes(self) -> bool:
        return isinstance(self.function, OpOverload) and self.function._schema.is_mutable

    @property
    def views(self) -> bool:
        return isinstance(self.function, OpOverload) and self.function.is_view

    @property
    def draws(self) -> bool:
        return isinstance(self.function, OpOverload) and torch.Tag.nondeterministic_seeded in self.function.tags

    @property
    def turns(self) -> bool:
        """Whether it transposes matrices of all slots."""
        return self.name == "transpose" and {int(axis) % 3 for axis in self.given[0][1:]} == {1, 2}

    def needs(self) -> list["_Node"]:
        found: list[Any] = []
        _each(self.given, found.append)
        return [one for one in found if isinstance(one, _Node)]


class _Recorder(TorchDispatchMode):
    """Writes down operations as they are called, below the mapping over clients and the gradients."""

    def __init__(self, given: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.listed: list[_Node] = []
        self._nodes, self._alive = dict[int, _Node](), list[Tensor]()
        self.given = [self._note(one, _Node()) for one in given]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        node = _Node(func, _each((args, tuple((kwargs or {}).items())), self.node_of))
        self.listed.append(node)
        if isinstance(found, Tensor):
            self._note(found, node)
        for i, one in enumerate(found) if isinstance(found, tuple | list) else ():
            if isinstance(one, Tensor):
                self.listed.append(self._note(one, _Node(operator.getitem, ((node, i), ()))))
        return found

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: else the first operation imports torch's compiler."""
        return False

    def node_of(self, one: Any) -> Any:
        """Return what made a tensor; one that nothing here has made is a constant."""
        return self._nodes.get(id(one), one) if isinstance(one, Tensor) else one

    def _note(self, one: Tensor, node: _Node) -> _Node:
        self._nodes[id(one)] = node
        self._alive.append(one)  # so that no other tensor gets its id
        node.layout = tuple(one.shape), one.stride()
        return node


def recorded(
    compute: Callable[..., list[Tensor]],
    lasting: Sequence[Tensor],
    example: Sequence[Tensor],
    drawing: Callable[[OpOverload], Callable[..., Any]],
) -> tuple[Run, bool]:
    """Return the operations that a function calls for arrays like the example, and whether one of them draws at random.

    The lasting arrays are arguments too, and the same at each call. Operations that draw are exchanged by ``drawing``.
    """
    recorder = _Recorder([*lasting, *example])
    with recorder:
        found = compute(*lasting, *example)
    listed, results = _without_needless(recorder.listed, _each(found, recorder.node_of))
    listed, results = _without_needless(*_without_turns(listed, results))
    constant: dict[Any, Any] = dict(zip(recorder.given, lasting, strict=False))
    for node in listed:
        if node.views and all(one in constant for one in node.needs()):
            constant[node] = node.function(*_replaced(node.given[0], constant))
    for node in listed:
        node.given = _replaced(node.given, constant)
    called = [
        (node, drawing(node.function) if node.draws else _called(node)) for node in listed if node not in constant
    ]
    run = _written(recorder.given[len(lasting) :], called, _replaced(results, constant))
    return run, any(node.draws for node in listed)


def _each(one: Any, change: Callable[[Any], Any]) -> Any:
    """Return an argument with all that is in its lists changed."""
    if isinstance(one, list | tuple):
        return tuple([_each(inner, change) for inner in one]) if type(one) is tuple else [_each(i, change) for i in one]
    return change(one)


def _replaced(one: Any, instead: Mapping[Any, Any]) -> Any:
    return _each(one, lambda inner: instead.get(inner, inner) if isinstance(inner, _Node) else inner)


def _without_needless(listed: Sequence[_Node], results: Any) -> tuple[list[_Node], Any]:
    """Return list and results without operations that change nothing, and without those that nobody needs."""
    changed: set[_Node] = set()  # in place, by a later operation, itself or through a view
    for node in reversed(listed):
        if node.writes or (node in changed and node.views):
            changed.update(node.needs())
    instead: dict[_Node, _Node] = {}
    for node in listed:
        node.given = _replaced(node.given, instead)
        first = node.first
        if isinstance(first, _Node):
            copied = node.name == "clone" and (node in changed or first in changed)
            factor = node.given[0][1] if node.name == "mul" and node not in changed else None
            same = node.name in _SAME and node.layout == first.layout and not copied
            if same or (isinstance(factor, int | float) and factor == 1):
                instead[node] = first
            elif node.turns and first.turns:
                instead[node] = first.first
    results = _replaced(results, instead)
    needed, found = {one for one in results if isinstance(one, _Node)}, list[_Node]()
    for node in reversed(listed):
        if node in needed or node.writes or node.draws:
            needed.update(node.needs())
            found.append(node)
    return found[::-1], results


def _without_turns(listed: Sequence[_Node], results: Any) -> tuple[list[_Node], Any]:
    """Write the transpose of a product as the product of the transposes, which copies nothing."""
    users = Counter([one for node in listed for one in node.needs()])
    users.update(one for one in results if isinstance(one, _Node))
    found, instead = list[_Node](), dict[_Node, _Node]()

    def turned(one: _Node) -> _Node:
        if one.turns:
            return cast(_Node, one.first)
        layout = tuple((axes[0], axes[2], axes[1]) for axes in one.layout)
        found.append(_Node(torch.ops.aten.transpose.int, ((one, 1, 2), ()), layout))
        return found[-1]

    for node in listed:
        node.given = _replaced(node.given, instead)
        product = node.first
        is_product = isinstance(product, _Node) and product.name == "bmm" and len(product.needs()) == 2
        if node.turns and is_product and users[product] == 1:
            first, second = product.given[0]
            shape, _ = node.layout
            factors = turned(second), turned(first)
            instead[node] = _Node(product.function, (factors, ()), (shape, (shape[1] * shape[2], shape[2], 1)))
        found.append(instead.get(node, node))
    return found, _replaced(results, instead)


def _called(node: _Node) -> Callable[..., Any]:
    if node.name == "bmm" and any(strides[0] % _VECTOR for strides in map(_strides, (*node.given[0], node))):
        return bmm_alike  # the bits of a product depend on its alignment
    if node.name in ("view", "_unsafe_view"):
        return Tensor.view
    if node.name in _CALLED:
        return cast(Callable[..., Any], getattr(torch, node.name))
    return cast(Callable[..., Any], node.function._op if isinstance(node.function, OpOverload) else node.function)


def _strides(one: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = one.layout[1] if isinstance(one, _Node) else one.stride()
    return found


def _written(given: Sequence[_Node], called: Sequence[tuple[_Node, Callable[..., Any]]], results: Any) -> Run:
    """Return operations as a function of Python's, which lets go of each array after its last use."""
    names = {node: f"v{i}" for i, node in enumerate((*given, *(node for node, _ in called)))}
    last = {one: node for node, _ in called for one in node.needs()}
    last |= dict.fromkeys([one for one in (*given, *results) if isinstance(one, _Node)])
    scope: dict[str, Any] = {}

    def word(one: Any) -> str:
        if isinstance(one, list | tuple):
            return f"[{', '.join(map(word, one))}]"
        if isinstance(one, _Node):
            return names[one]
        scope[f"c{len(scope)}"] = one
        return f"c{len(scope) - 1}"

    lines = [f"def run({', '.join(names[one] for one in given)}):"]
    for node, function in called:
        args, named = node.given
        words = [*map(word, args), *(f"{name}={word(one)}" for name, one in named)]
        lines.append(f"    {names[node]} = {word(function)}({', '.join(words)})")
        lines += [f"    del {names[one]}" for one in dict.fromkeys(node.needs()) if last[one] is node]
    exec("\n".join([*lines, f"    return {word(results)}"]), scope)  # noqa: S102 - the text is made above
    return cast(Run, scope["run"])


def bmm_alike(first: Tensor, second: Tensor) -> Tensor:
    """Return the products of matrices of all slots, from equally aligned copies."""
    found = _matrices((len(first), first.shape[1], second.shape[2]), first.dtype)
    return torch.bmm(_moved(first), _moved(second), out=found).contiguous()


def _moved(matrices: Tensor) -> Tensor:
    """Return matrices that lie apart by whole vectors of the processor."""
    if matrices.stride(0) % _VECTOR == 0:
        return matrices
    return _matrices(matrices.shape, matrices.dtype).copy_(matrices)


def _matrices(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    _, height, width = shape
    return torch.empty_strided(tuple(shape), (-(-height * width // _VECTOR) * _VECTOR, width, 1), dtype=dtype)
