"""What a comparison allows to conclude, in words."""

import math

from fedsim.studies.comparing.lines import Line
from fedsim.studies.comparing.pairs import ENOUGH_FOR_SPREAD
from fedsim.studies.metrics import metric


def sentence(line: Line, level: float, family: int) -> str:
    """Return what one line says: the shares that reach a target first, then the difference, and what is not known."""
    one, quantity = line.paired, metric(line.metric)
    start = f"{line.metric}: {line.variant!r} against {line.baseline!r}: "
    words = []
    if any(one.unreached):
        a, b = one.unreached
        words.append(f"not reached by {b} and {a} of {one.pairs} runs (exact test p = {one.p_shares:.2g})")
    if one.refused:
        return start + "; ".join([*words, f"{one.refused}; nothing is concluded on the mean"]) + "."
    less, more = ("sooner", "later") if line.metric.startswith("time_to") else ("less", "more")
    how = f"{abs(one.difference):.3g} {quantity.unit}".strip()
    half = one.interval.half
    words.append(f"{how} {less if one.difference < 0 else more} (+- {half:.2g}, {level:.0%}, {one.pairs} pairs)")
    if math.isfinite(one.horizon):
        words.append(f"means of what was spent up to {one.horizon:.4g} {quantity.unit}, the horizon")
    if not math.isnan(one.ratio):
        words.append(f"{one.ratio:.3g} times ({one.ratio_interval.low:.3g} to {one.ratio_interval.high:.3g})")
    words.append(_concluded(line, level, family, quantity.better))
    if not math.isnan(one.variance_ratio):
        words.append(f"the variance is {one.variance_ratio:.2g} of that of runs without pairs")
    return start + "; ".join(words) + "."


def _concluded(line: Line, level: float, family: int, better: int) -> str:
    """Return whether the difference is one, after Holm's correction and without."""
    one = line.paired
    if math.isnan(one.p):
        return "all pairs differ by the same amount" if one.difference else "no pair differs"
    side = "" if not better else "better, " if (one.difference > 0) == (better > 0) else "worse, "
    if line.holm < 1 - level:
        return f"{side}also among {family} comparisons (Holm p = {line.holm:.2g})"
    if one.p < 1 - level:
        return f"{side}by itself (p = {one.p:.2g}), not among {family} comparisons (Holm p = {line.holm:.2g})"
    if one.pairs < ENOUGH_FOR_SPREAD:
        return f"not told apart from none by {one.pairs} pairs"
    if one.more_pairs is None:
        return "not told apart from none; if the difference is as seen, 1,000 pairs would not do"
    return (
        f"not told apart from none; if difference and spread are as seen, {one.more_pairs} more pairs would do in "
        "about half of the tries, and twice as many pairs in most"
    )
