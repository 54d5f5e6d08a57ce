"""A function of tensors as a list of torch's operations, made cheaper, and alike in every slot.

torch's own tracer imports its compiler, which takes longer than many runs.
"""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, cast

import torch
from torch import Tensor, fx
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


class _Recorder(TorchDispatchMode):
    """Writes down operations as they are called, below the mapping over clients and the gradients."""

    def __init__(self, lasting: Sequence[Tensor], example: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph, self.constants, self._nodes = fx.Graph(), SimpleNamespace(), dict[int, fx.Node]()
        self._alive = list[Tensor]()
        for i, one in enumerate(example):
            self._note(one, self.graph.placeholder(f"given_{i}"))
        for one in lasting:
            self.node_of(one)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        args, kwargs = (fx.node.map_aggregate(given, self.node_of) for given in (args, kwargs or {}))
        node = self.graph.call_function(func, args, kwargs)
        if isinstance(found, Tensor):
            self._note(found, node)
        for i, one in enumerate(found) if isinstance(found, tuple | list) else ():
            if isinstance(one, Tensor):
                self._note(one, self.graph.call_function(operator.getitem, (node, i)))
        return found

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: else the first operation imports torch's compiler."""
        return False

    def node_of(self, one: Any) -> Any:
        """Return what made a tensor; one that nothing here has made is a constant."""
        if isinstance(one, Tensor) and id(one) not in self._nodes:
            name = f"constant_{len(vars(self.constants))}"
            setattr(self.constants, name, one)
            self._note(one, self.graph.get_attr(name))
        return self._nodes[id(one)] if isinstance(one, Tensor) else one

    def _note(self, one: Tensor, node: fx.Node) -> None:
        self._nodes[id(one)] = node
        self._alive.append(one)  # so that no other tensor gets its id
        node.meta["layout"] = tuple(one.shape), one.stride()


def recorded(
    compute: Callable[..., list[Tensor]],
    lasting: Sequence[Tensor],
    example: Sequence[Tensor],
    drawing: Callable[[OpOverload], Callable[..., Any]],
) -> tuple[Run, bool]:
    """Return the operations that a function calls for arrays like the example, and whether one of them draws at random.

    The lasting arrays are constants, the same at each call. Operations that draw are exchanged by ``drawing``.
    """
    recorder, graph = (made := _Recorder(lasting, example)), made.graph
    with recorder:
        found = compute(*lasting, *example)
    graph.output([recorder.node_of(one) for one in found])
    _without_needless(graph)
    _without_turns(graph)
    _without_needless(graph)
    draws = [node for node in graph.nodes if _is(node, "draw")]
    for node in graph.nodes:
        if node.op == "call_function":
            node.target = drawing(node.target) if node in draws else _called(node)
    code, scope = graph.python_code("self"), dict[str, Any]()
    exec(code.src, {**code.globals}, scope)  # noqa: S102 - torch has made the text of the list
    return partial(cast(Run, scope["forward"]), recorder.constants), bool(draws)


def _name(node: Any) -> str:
    is_operation = isinstance(node, fx.Node) and isinstance(node.target, OpOverload)
    return cast(OpOverload, node.target)._opname if is_operation else ""


def _is(node: fx.Node, kind: str) -> bool:
    """Return whether an operation writes into its arguments, gives a view of them, or draws at random."""
    operation = node.target
    if not isinstance(operation, OpOverload):
        return False
    if kind == "draw":
        return torch.Tag.nondeterministic_seeded in operation.tags
    return operation._schema.is_mutable if kind == "write" else operation.is_view


def _turns(node: Any) -> bool:
    """Return whether a node transposes matrices of all slots."""
    return _name(node) == "transpose" and {int(axis) % 3 for axis in node.args[1:]} == {1, 2}


def _exchange(node: fx.Node, other: fx.Node) -> None:
    other.meta.setdefault("layout", node.meta["layout"])
    node.replace_all_uses_with(other)
    node.graph.erase_node(node)


def _without_needless(graph: fx.Graph) -> None:
    """Take out operations that change nothing, and those whose results are not used."""
    changed: set[fx.Node] = set()  # in place, by a later operation, itself or through a view
    for node in reversed(graph.nodes):
        if _is(node, "write") or (node in changed and _is(node, "view")):
            changed.update(node.all_input_nodes)
    for node in graph.nodes:
        first = node.args[0] if node.args else None
        if isinstance(first, fx.Node) and node.op == "call_function":
            copied = _name(node) == "clone" and (node in changed or first in changed)
            same = _name(node) in _SAME and node.meta["layout"] == first.meta["layout"] and not copied
            factor = node.args[1] if _name(node) == "mul" and node not in changed else None
            if same or (isinstance(factor, int | float) and factor == 1):
                _exchange(node, first)
    for node in reversed(graph.nodes):
        lasts = node.op in ("placeholder", "output") or _is(node, "write") or _is(node, "draw")
        if not node.users and not lasts:
            graph.erase_node(node)


def _without_turns(graph: fx.Graph) -> None:
    """Write the transpose of a product as the product of the transposes, which copies nothing."""

    def turned(one: fx.Node) -> fx.Node:
        if _turns(one):
            return cast(fx.Node, one.args[0])
        made = graph.call_function(torch.ops.aten.transpose.int, (one, 1, 2))
        made.meta["layout"] = tuple((axes[0], axes[2], axes[1]) for axes in one.meta["layout"])
        return made

    for node in graph.nodes:
        product = node.args[0] if _turns(node) else None
        if isinstance(product, fx.Node) and _name(product) == "bmm" and len(product.users) == 1:
            shape, _ = node.meta["layout"]
            with graph.inserting_before(node):
                factors = [turned(one) for one in reversed(cast(Sequence[fx.Node], product.args))]
                whole = graph.call_function(torch.ops.aten.bmm.default, tuple(factors))
            whole.meta["layout"] = shape, (shape[1] * shape[2], shape[2], 1)
            _exchange(node, whole)


def _called(node: fx.Node) -> Callable[..., Any]:
    name = _name(node)
    if name == "bmm" and any(one.meta["layout"][1][0] % _VECTOR for one in (*node.all_input_nodes, node)):
        return bmm_alike  # the bits of a product depend on its alignment
    if name in ("view", "_unsafe_view"):
        return Tensor.view
    return cast(Callable[..., Any], getattr(torch, name) if name in _CALLED else node.target)


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
