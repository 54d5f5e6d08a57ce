"""Refusals of scores that have not the shape of targets, which torch would broadcast in silence."""

from typing import Any


def check_numbers(scores: Any, targets: Any) -> None:
    if scores.shape != targets.shape:
        raise ValueError(f"{_in_words(scores, targets)}; allowed: scores of the shape of the targets")


def check_places(scores: Any, targets: Any) -> None:
    """Refuse scores that have not as many places as the targets, and then one number for each token."""
    if scores.shape[:-1] != targets.shape:
        raise ValueError(
            f"{_in_words(scores, targets)}; allowed: scores of the shape of the targets, and then one for each token"
        )


def _in_words(scores: Any, targets: Any) -> str:
    said, true = (", ".join(map(str, ("n", *one.shape[1:]))) for one in (scores, targets))
    same = "" if scores.shape[:1] == targets.shape[:1] else f", of {len(scores)} and {len(targets)} samples"
    return f"scores of shape ({said}) and targets of shape ({true}){same}"
