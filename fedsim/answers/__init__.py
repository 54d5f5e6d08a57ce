"""What parts of the user's own return, checked where it enters: one declared checker for each contract."""

from fedsim.answers.contract import Contract, PartOf, refuse_uncalled, unchecked
from fedsim.answers.guard import asked, attributed, attributing, failed
from fedsim.answers.kinds import (
    AnswerError,
    Flag,
    Free,
    Given,
    InstanceOf,
    Kind,
    Mask,
    Number,
    Numbers,
    OneOf,
    OptionalOf,
    in_words,
    same_shape,
    shaped,
)
from fedsim.answers.short_traceback import ShortTraceback

__all__ = [
    "AnswerError",
    "Contract",
    "Flag",
    "Free",
    "Given",
    "InstanceOf",
    "Kind",
    "Mask",
    "Number",
    "Numbers",
    "OneOf",
    "OptionalOf",
    "PartOf",
    "ShortTraceback",
    "asked",
    "attributed",
    "attributing",
    "failed",
    "in_words",
    "refuse_uncalled",
    "same_shape",
    "shaped",
    "unchecked",
]
