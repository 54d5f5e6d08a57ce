"""Changes to a traced list of operations that make it cheaper, and alike in every slot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import torch
from torch import Tensor, fx
from torch._ops import OpOverload

_aten: Final = torch.ops.aten
_ALIASES: Final = frozenset(
    (
        *(_aten.view.default, _aten._unsafe_view.default, _aten.expand.default, _aten.permute.default),
        *(_aten.alias.default, _aten.detach.default, _aten.clone.default),
    )
)
"""Operations that return their argument if shape and strides stay."""

_PRODUCTS: Final = frozenset((_aten.mul.Scalar, _aten.mul.Tensor))

_DIRECT: Final[Mapping[str, Callable[..., Any]]] = {
    "_log_softmax": torch._log_softmax,
    "_log_softmax_backward_data": torch._log_softmax_backward_data,
    "add": torch.add,
    "amax": torch.amax,
    "bmm": torch.bmm,
    "cat": torch.cat,
    "convolution": torch.convolution,
    "div": torch.div,
    "exp": torch.exp,
    "log": torch.log,
    "mm": torch.mm,
    "mul": torch.mul,
    "neg": torch.neg,
    "permute": torch.permute,
    "relu": torch.relu,
    "relu_": torch.relu_,
    "sigmoid": torch.sigmoid,
    "squeeze": torch.squeeze,
    "sub": torch.sub,
    "sum": torch.sum,
    "tanh": torch.tanh,
    "transpose": torch.transpose,
    "unsqueeze": torch.unsqueeze,
    "view": Tensor.view,
}
"""Torch's functions that take the very arguments of the operators of these names."""

_VECTOR: Final = 16
"""Numbers of a processor's widest vector."""


def without_needless(graph: fx.GraphModule) -> None:
    """Remove operations that change nothing."""
    for node in list(graph.graph.nodes):
        if node.target in _ALIASES and isinstance(given := node.args[0], fx.Node):
            copied = node.target is _aten.clone.default and (_is_written(node) or _is_written(given))
            if _layout(given) == _layout(node) and _layout(node) and not copied:
                node.replace_all_uses_with(given)
        elif node.target in _PRODUCTS and node.args[1] == 1 and not _is_written(node):
            node.replace_all_uses_with(node.args[0])
    graph.graph.eliminate_dead_code()


def without_turns(graph: fx.GraphModule) -> None:
    """Write the transpose of a product as the product of the transposes, which copies nothing."""
    for node in list(graph.graph.nodes):
        product = node.args[0] if node.target is _aten.transpose.int and set(node.args[1:]) == {1, 2} else None
        if isinstance(product, fx.Node) and product.target is _aten.bmm.default and len(product.users) == 1:
            with graph.graph.inserting_before(node):
                second, first = (_turned(graph, cast(fx.Node, one)) for one in product.args)
                instead = graph.graph.call_function(_aten.bmm.default, (first, second))
            meta = node.meta["tensor_meta"]
            instead.meta["tensor_meta"] = meta._replace(stride=torch.empty(meta.shape, device="meta").stride())
            node.replace_all_uses_with(instead)
    graph.graph.eliminate_dead_code()


def aligned(graph: fx.GraphModule) -> None:
    """Let products of matrices find those of all slots equally aligned in memory, since their bits depend on that."""
    for node in graph.graph.nodes:
        if node.target is _aten.bmm.default:
            metas = [one.meta["tensor_meta"] for one in (*node.args, node)]
            if any(meta.stride[0] % _VECTOR for meta in metas):
                node.target = bmm_alike


def called_directly(graph: fx.GraphModule) -> None:
    """Call torch's own functions in place of operators, at a third of the cost."""
    for node in graph.graph.nodes:
        if isinstance(node.target, OpOverload):
            node.target = _DIRECT.get(node.target.overloadpacket.__name__, node.target)


def _layout(node: fx.Node) -> tuple[Any, Any] | None:
    meta = node.meta.get("tensor_meta")
    return (meta.shape, meta.stride) if meta else None


def _is_written(node: fx.Node) -> bool:
    """Return whether a later operation changes a result in place, itself or through a view."""
    for user in node.users:
        target = user.target
        if isinstance(target, OpOverload) and (target._schema.is_mutable or (target.is_view and _is_written(user))):
            return True
    return False


def _turned(graph: fx.GraphModule, node: fx.Node) -> fx.Node:
    if node.target is _aten.transpose.int and set(node.args[1:]) == {1, 2}:
        return cast(fx.Node, node.args[0])
    turned = graph.graph.call_function(_aten.transpose.int, (node, 1, 2))
    meta = node.meta["tensor_meta"]
    shape, stride = ((one[0], one[2], one[1]) for one in (meta.shape, meta.stride))
    turned.meta["tensor_meta"] = meta._replace(shape=torch.Size(shape), stride=stride)
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
