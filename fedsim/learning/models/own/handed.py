"""Models handed over or named in a file: a module of torch, or a class or function that gives one."""

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from fedsim.answers import in_a_line
from fedsim.code_digest import Code
from fedsim.errors import PartError
from fedsim.foreign import Foreign, code_of, place_of, required_of
from fedsim.learning.data.shapes import Shape
from fedsim.learning.models.settings import Names, Trains, chosen

if TYPE_CHECKING:
    from torch import nn


_GIVES: Final = "a class or function that gives the module"


class HandedModel(Foreign):
    """A model of the user's own: a module, whose numbers are the initial ones, or what makes one."""

    reads: ClassVar[frozenset[str]] = frozenset({"train"})

    @classmethod
    def of_place(cls, place: str, found: Any, options: Mapping[str, Any]) -> Self:
        """Return the part that a class or function makes with options, ``train`` among them."""
        part = super().of_place(place, found, options)
        Trains(train=part.train)
        return part

    @property
    def train(self) -> Names:
        """Names of what is trained, as `Trains` has them; all where the class or function has a parameter ``train``."""
        return self.options["train"] if "train" in self.options and "train" not in self.for_call else ()

    @classmethod
    def of_object(cls, value: Any) -> Self:
        from torch import nn

        from fedsim.learning.models.own.trial import content_of, unusable

        if isinstance(value, nn.Module):
            found, allowed = unusable(value)
            if hooked := _hooked(value):
                found, allowed = f"a copy of {hooked} has none of its hooks", _GIVES
            if not found:
                try:
                    return cls.holding(copy.deepcopy(value), place_of(value), content=content_of(value))
                except Exception as error:
                    found, allowed = f"it cannot be copied ({in_a_line(str(error))})", _GIVES
            raise ValueError(f"{place_of(value)}: {found}; allowed: {allowed}")
        if not callable(value):
            raise ValueError(
                f"{value!r} is no model; allowed: a torch.nn.Module, or a class or function that gives one, or a part "
                "that derives from fedsim.Component"
            )
        if further := [name for name in required_of(value) if name not in ("shape", "classes")]:
            raise ValueError(
                f"{place_of(value)} needs {', '.join(further)}; allowed: parameters with defaults, 'shape' and "
                "'classes', such as functools.partial makes them"
            )
        place = place_of(value)
        if code_of(value) is value and "<" not in place:
            return cls.holding(value, place)
        return cls.holding(value, place, content=content_of(value))

    def codes(self) -> Iterable[Code]:
        from torch import nn

        found = self.found
        return {type(module) for module in found.modules()} if isinstance(found, nn.Module) else super().codes()

    def build(self, shape: Shape, classes: int) -> "nn.Module":
        """Return a copy of the module, or a fresh one from a call with the options."""
        from torch import nn

        module = self.found
        if isinstance(module, nn.Module):
            return copy.deepcopy(module)
        made = self.called("model", shape=shape, classes=classes)
        if not isinstance(made, nn.Module):
            raise PartError(f"model {self.place} gave {type(made).__name__}", "allowed: a torch.nn.Module")
        return chosen(made, self.train)


def _hooked(module: "nn.Module") -> str:
    """Return the name of a parameter with hooks, of which torch makes no copies; empty without one."""
    hooked = (name for name, one in module.named_parameters() if one._backward_hooks or one._post_accumulate_grad_hooks)
    return next(hooked, "")
