"""What parts of the user's own return, checked where it enters: one declared checker for each contract."""

from fedsim.answers.contract import (
    Contract as Contract,
    PartOf as PartOf,
    refuse_uncalled as refuse_uncalled,
    unchecked as unchecked,
)
from fedsim.answers.guard import (
    FAILURES as FAILURES,
    ShortTraceback as ShortTraceback,
    asked as asked,
    attributed as attributed,
    attributing as attributing,
    failed as failed,
    in_a_line as in_a_line,
)
from fedsim.answers.kinds import (
    AnswerError as AnswerError,
    Flag as Flag,
    Free as Free,
    Given as Given,
    InstanceOf as InstanceOf,
    Kind as Kind,
    Mask as Mask,
    Number as Number,
    Numbers as Numbers,
    OneOf as OneOf,
    OptionalOf as OptionalOf,
    Several as Several,
    in_words as in_words,
    same_shape as same_shape,
    shaped as shaped,
)
