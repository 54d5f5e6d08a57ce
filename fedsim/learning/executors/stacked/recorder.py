"""A function of tensors as a list of torch's operations, made cheaper, and alike in every slot.

torch's own tracer imports its compiler, which takes longer than many runs.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import torch
from torch import Tensor, fx, nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

Run = Callable[..., Sequence[Tensor]]
"""A function of arrays in a row."""

_LAYOUT: Final = "layout"
"""Shape and strides of a node's tensor."""
_SAME: Final = frozenset(("view", "_unsafe_view", "expand", "permute", "alias", "detach", "clone"))
"""Operations that return their argument if shape and strides stay."""
_CALLED: Final = frozenset([
    "_log_softmax", "_log_softmax_backward_data", "add", "amax", "bmm", "cat", "convolution", "div", "exp", "gather",
    "log", "mm", "mul", "neg", "permute", "relu", "relu_", "sigmoid", "squeeze", "sub", "sum", "tanh", "transpose",
    "unsqueeze", "where",
])  # fmt: skip
"""Torch's own functions that take the arguments of the operators of their names, at a third of the cost of a call."""
_VECTOR: Final = 16
"""Numbers of a processor's widest vector."""


class _Recorder(TorchDispatchMode):
    """Writes down operations as they are called, below the mapping over clients and the gradients."""

    def __init__(self, given: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.root = nn.Module()
        self.graph, self._nodes, self._alive = fx.Graph(), dict[int, fx.Node](), list[Tensor]()
        for i, one in enumerate(given):
            self._note(one, self.graph.placeholder(f"given_{i}"))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        node = self.graph.call_function(func, *tree_map(self.node_of, (args, kwargs or {})))
        for i, one in enumerate(found) if isinstance(found, tuple | list) else ():
            self._note(one, self.graph.call_function(operator.getitem, (node, i)))
        if isinstance(found, Tensor):
            self._note(found, node)
        return found

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: else the first operation imports torch's compiler."""
        return False

    def node_of(self, one: Any) -> Any:
        """Return what made a tensor; one that nothing here has made is a constant of the module."""
        if not isinstance(one, Tensor):
            return one
        if id(one) not in self._nodes:
            name = f"constant_{len(self._alive)}"
            self.root.register_buffer(name, one.detach(), persistent=False)
            self._note(one, self.graph.get_attr(name))
        return self._nodes[id(one)]

    def _note(self, one: Any, node: fx.Node) -> None:
        if isinstance(one, Tensor):
            self._nodes[id(one)] = node
            self._alive.append(one)  # so that no other tensor gets its id
            node.meta[_LAYOUT] = tuple(one.shape), one.stride()


def recorded(compute: Callable[..., Sequence[Tensor]], example: Sequence[Tensor]) -> fx.GraphModule:
    """Return a function as the operations that it calls for arrays like these."""
    recorder = _Recorder(example)
    with recorder:
        found = compute(*example)
    recorder.graph.output([recorder.node_of(one) for one in found])
    graph = fx.GraphModule(recorder.root, recorder.graph)
    _without_needless(graph)
    _without_turns(graph)
    _without_needless(graph)
    return graph


def called(graph: fx.GraphModule) -> Run:
    """Return the operations as a function; products of matrices find those of all slots equally aligned in memory."""
    for node in graph.graph.nodes:
        if not isinstance(node.target, OpOverload):
            continue
        name = node.target._opname
        if name == "bmm" and any(one.meta[_LAYOUT][1][0] % _VECTOR for one in (*node.args, node)):
            node.target = bmm_alike  # the bits of a product depend on its alignment
        elif name in _CALLED:
            node.target = getattr(torch, name)
        elif name == "view":
            node.target = Tensor.view
    graph.recompile()
    return cast(Run, graph.forward)


def _without_needless(graph: fx.GraphModule) -> None:
    """Remove operations that change nothing."""
    for node in list(graph.graph.nodes):
        name, given = _name(node), node.args[0] if node.args else None
        if not isinstance(given, fx.Node):
            continue
        if name in _SAME:
            copied = name == "clone" and (_is_written(node) or _is_written(given))
            if _LAYOUT in node.meta and node.meta[_LAYOUT] == given.meta.get(_LAYOUT) and not copied:
                node.replace_all_uses_with(given)
        elif name == "mul" and node.args[1] == 1 and not _is_written(node):
            node.replace_all_uses_with(given)
    graph.graph.eliminate_dead_code()


def _without_turns(graph: fx.GraphModule) -> None:
    """Write the transpose of a product as the product of the transposes, which copies nothing."""
    for node in list(graph.graph.nodes):
        product = node.args[0] if _turns(node) else None
        if isinstance(product, fx.Node) and _name(product) == "bmm" and len(product.users) == 1:
            with graph.graph.inserting_before(node):
                second, first = (_turned(graph, cast(fx.Node, one)) for one in product.args)
                instead = graph.graph.call_function(cast(Any, product.target), (first, second))
            shape = node.meta[_LAYOUT][0]
            instead.meta[_LAYOUT] = shape, torch.empty(shape, device="meta").stride()
            node.replace_all_uses_with(instead)
    graph.graph.eliminate_dead_code()


def _name(node: fx.Node) -> str:
    return node.target._opname if isinstance(node.target, OpOverload) else ""


def _turns(node: fx.Node) -> bool:
    return _name(node) == "transpose" and {int(axis) % 3 for axis in cast(Any, node.args[1:])} == {1, 2}


def _is_written(node: fx.Node) -> bool:
    """Return whether a later operation changes a result in place, itself or through a view."""
    for user in node.users:
        target = user.target
        if isinstance(target, OpOverload) and (target._schema.is_mutable or (target.is_view and _is_written(user))):
            return True
    return False


def _turned(graph: fx.GraphModule, node: fx.Node) -> fx.Node:
    if _turns(node):
        return cast(fx.Node, node.args[0])
    turned = graph.graph.call_function(torch.ops.aten.transpose.int, (node, 1, 2))
    turned.meta[_LAYOUT] = tuple((one[0], one[2], one[1]) for one in node.meta[_LAYOUT])
    return turned


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
