"""A line of a comparison: one variant against the baseline in one metric, as cells, as a row, and in words."""

import math
from dataclasses import dataclass
from typing import Any, Final

from fedsim.studies.comparing.pairs import ENOUGH_FOR_SPREAD, Paired
from fedsim.studies.metrics import metric
from fedsim.units import counted

COLUMNS: Final = ("metric", "variant", "pairs", "baseline", "mean", "difference", "times", "p (Holm)", "unreached")


@dataclass(frozen=True)
class Line:
    """One variant against the baseline in one metric; ``holm`` is the probability corrected for the whole family."""

    metric: str
    variant: str
    baseline: str
    paired: Paired
    holm: float = math.nan

    def cells(self) -> tuple[str, ...]:
        one = self.paired
        counts = f"{one.unreached[0]} / {one.unreached[1]}" if any(one.unreached) else "-"
        head = (metric(self.metric).label, self.variant, str(one.pairs))
        if one.refused:
            return (*head, "-", "-", "refused", "-", "-", counts)
        half = one.interval.half
        # Two digits of the half width, and as many places of the difference.
        places = 1 - math.floor(math.log10(half)) if half > 0 else -1
        difference = f"{one.difference:z.{places}f}" if places >= 0 else _number(one.difference)
        numbers = (*map(_number, one.means), f"{difference} +- {half:.2g}", _number(one.ratio))
        return (*head, *numbers, _number(self.holm, 2), counts)

    def row(self) -> dict[str, Any]:
        one = self.paired
        return {
            "metric": self.metric,
            "unit": metric(self.metric).unit,
            "variant": self.variant,
            "baseline": self.baseline,
            "pairs": one.pairs,
            "baseline_mean": one.means[0],
            "variant_mean": one.means[1],
            "difference": one.difference,
            "low": one.interval.low,
            "high": one.interval.high,
            "ratio": one.ratio,
            "ratio_low": one.ratio_interval.low,
            "ratio_high": one.ratio_interval.high,
            "p": one.p,
            "p_holm": self.holm,
            "horizon": one.horizon if math.isfinite(one.horizon) else math.nan,
            "baseline_unreached": one.unreached[0],
            "variant_unreached": one.unreached[1],
            "p_shares": one.p_shares,
            "variance_ratio": one.variance_ratio,
            "refused": one.refused,
        }


def _number(value: float, digits: int = 3) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


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
    more, less = ("later", "sooner") if line.metric.startswith("time_to") else ("more", "less")
    side = more if one.difference > 0 else less if one.difference else "apart"
    how = f"{abs(one.difference):.3g} {quantity.unit}".strip()
    words.append(f"{how} {side} (+- {one.interval.half:.2g}, {100 * level:g}%, {one.pairs} pairs)")
    if math.isfinite(one.horizon):
        words.append(f"means of what was spent up to {one.horizon:.4g} {quantity.unit}, the horizon")
    if not math.isnan(one.ratio):
        words.append(f"{one.ratio:.3g} times ({one.ratio_interval.low:.3g} to {one.ratio_interval.high:.3g})")
    words.append(_concluded(line, level, family, quantity.better))
    if not math.isnan(one.variance_ratio):
        words.append(f"the variance is {one.variance_ratio:.2g} of that of runs without pairs")
    return start + "; ".join(words) + "."


def _concluded(line: Line, level: float, family: int, better: int) -> str:
    one = line.paired
    if math.isnan(one.p):
        return "all pairs differ by the same amount" if one.difference else "no pair differs"
    among = f"among {counted(family, 'comparison')}"
    side = "" if not better else "better, " if (one.difference > 0) == (better > 0) else "worse, "
    if line.holm < 1 - level:
        return f"{side}also {among} (Holm p = {line.holm:.2g})"
    if one.p < 1 - level:
        return f"{side}by itself (p = {one.p:.2g}), not {among} (Holm p = {line.holm:.2g})"
    if one.pairs < ENOUGH_FOR_SPREAD:
        return f"not told apart from none by {one.pairs} pairs"
    if one.more_pairs is None:
        return "not told apart from none; if the difference is as seen, 1,000 pairs would not do"
    return (
        f"not told apart from none; if difference and spread are as seen, {one.more_pairs} more pairs would do in "
        "about half of the tries, and twice as many pairs in most"
    )
