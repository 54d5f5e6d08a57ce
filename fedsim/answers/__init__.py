"""What parts of the user's own return, checked where it enters: one declared checker for each contract."""

from fedsim.answers.contract import Contract, PartOf, refuse_uncalled, unchecked
from fedsim.answers.guard import FAILURES, asked, attributed, attributing, failed, in_a_line
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
    Several,
    in_words,
    same_shape,
    shaped,
)
from fedsim.answers.short_traceback import ShortTraceback

__all__ = [
    "FAILURES",
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
    "Several",
    "ShortTraceback",
    "asked",
    "attributed",
    "attributing",
    "failed",
    "in_a_line",
    "in_words",
    "refuse_uncalled",
    "same_shape",
    "shaped",
    "unchecked",
]
